"""KServe over HTTP, by tritonclient."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Self

import aiohttp
from tritonclient.http.aio import InferenceServerClient
from tritonclient.utils import InferenceServerException

from engines.kserve import ModelEntry
from gateway.kserve import reading
from gateway.kserve.control import LOADING, ModelRefusedError, Statistics, TritonUnreachableError
from gateway.proxy.trust import trusted


class HttpKServe:
    """One Triton's HTTP port (8000 unless it is told otherwise)."""

    def __init__(self, url: str, patience: float) -> None:
        self._url = url
        self._patience = patience

    async def __aenter__(self) -> Self:
        self._client = self._connect(self._patience)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    def _connect(self, patience: float) -> InferenceServerClient:
        scheme, _, address = self._url.partition("://")
        secure = scheme == "https"
        context = trusted() if secure else None
        return InferenceServerClient(address, conn_timeout=patience, ssl=secure, ssl_context=context)

    async def server_ready(self) -> bool:
        """See KServe."""
        with self._told():
            return bool(await self._client.is_server_ready())

    async def model_ready(self, model: str) -> bool:
        """See KServe."""
        with self._told():
            return bool(await self._client.is_model_ready(model))

    async def index(self) -> Sequence[ModelEntry]:
        """See KServe."""
        with self._told():
            return reading.entries(await self._client.get_model_repository_index())

    async def load(self, model: str) -> None:
        """See KServe."""
        patient = self._connect(LOADING)
        try:
            with self._told():
                await patient.load_model(model)
        finally:
            await patient.close()

    async def unload(self, model: str) -> None:
        """See KServe."""
        with self._told():
            await self._client.unload_model(model)

    async def metadata(self, model: str = "") -> dict[str, object]:
        """See KServe."""
        with self._told():
            asked = self._client.get_model_metadata(model) if model else self._client.get_server_metadata()
            return dict(await asked)

    async def statistics(self, model: str = "") -> Sequence[Statistics]:
        """See KServe."""
        with self._told():
            return reading.statistics(await self._client.get_inference_statistics(model))

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except InferenceServerException as refused:
            raise ModelRefusedError(refused.message() or "refused", unknown=refused.status() == "404") from None
        except TimeoutError:
            raise TritonUnreachableError(f"Triton at {self._url} does not answer in time") from None
        except aiohttp.ClientError as error:
            reason = f"Triton cannot be reached at {self._url} ({type(error).__name__})"
            raise TritonUnreachableError(reason, "is it KServe's HTTP port, 8000 unless set otherwise?") from None
        except ValueError:
            raise TritonUnreachableError(f"what answers at {self._url} does not speak KServe") from None


def connect(url: str, patience: float) -> HttpKServe:
    """The Triton with this base URL."""
    return HttpKServe(url, patience)
