"""KServe over gRPC, by tritonclient."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final, Self

from tritonclient.grpc.aio import InferenceServerClient
from tritonclient.utils import InferenceServerException

from engines.kserve import NOT_EXPLICIT, ModelEntry
from gateway.kserve import reading
from gateway.kserve.control import LOADING, ModelRefusedError, Statistics, TritonUnreachableError

_AWAY: Final = {"StatusCode.UNAVAILABLE", "StatusCode.UNIMPLEMENTED", "StatusCode.UNKNOWN"}
_LATE: Final = "StatusCode.DEADLINE_EXCEEDED"


class GrpcKServe:
    """One Triton's gRPC port (8001 unless it is told otherwise)."""

    def __init__(self, address: str, patience: float) -> None:
        self._address = address
        self._patience = patience

    async def __aenter__(self) -> Self:
        self._client = InferenceServerClient(self._address)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def server_ready(self) -> bool:
        """See KServe."""
        with self._told():
            return bool(await self._client.is_server_ready(client_timeout=self._patience))

    async def model_ready(self, model: str) -> bool:
        """See KServe."""
        with self._told():
            return bool(await self._client.is_model_ready(model, client_timeout=self._patience))

    async def index(self) -> Sequence[ModelEntry]:
        """See KServe."""
        with self._told():
            found = await self._client.get_model_repository_index(as_json=True, client_timeout=self._patience)
            return reading.entries(found.get("models"))

    async def load(self, model: str) -> None:
        """See KServe."""
        with self._told():
            await self._client.load_model(model, client_timeout=LOADING)

    async def unload(self, model: str) -> None:
        """See KServe."""
        with self._told():
            await self._client.unload_model(model, client_timeout=self._patience)

    async def metadata(self, model: str = "") -> dict[str, object]:
        """See KServe."""
        with self._told():
            if model:
                found = await self._client.get_model_metadata(model, as_json=True, client_timeout=self._patience)
            else:
                found = await self._client.get_server_metadata(as_json=True, client_timeout=self._patience)
            return dict(found)

    async def statistics(self, model: str = "") -> Sequence[Statistics]:
        """See KServe."""
        with self._told():
            found = await self._client.get_inference_statistics(model, as_json=True, client_timeout=self._patience)
            return reading.statistics(found)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except InferenceServerException as refused:
            status = refused.status()
            if status == _LATE:
                raise TritonUnreachableError(f"Triton at {self._address} does not answer in time") from None
            if status in _AWAY and NOT_EXPLICIT not in (refused.message() or ""):
                reason = f"Triton cannot be reached at {self._address} (gRPC)"
                raise TritonUnreachableError(reason, "is it KServe's gRPC port, 8001 unless set otherwise?") from None
            unknown = status == "StatusCode.NOT_FOUND"
            raise ModelRefusedError(refused.message() or "refused", unknown=unknown) from None


def connect(address: str, patience: float) -> GrpcKServe:
    """The Triton at host:port."""
    return GrpcKServe(address, patience)
