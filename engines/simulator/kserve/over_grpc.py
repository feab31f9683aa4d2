"""KServe's gRPC port of a simulated Triton, made of tritonclient's generated messages (the extra `triton`)."""

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import NoReturn, Protocol, TypeVar

import grpc
from google.protobuf.json_format import ParseDict
from tritonclient.grpc import service_pb2 as messages
from tritonclient.grpc import service_pb2_grpc as service

from engines.simulator.kserve.repository import Refused, SimulatedRepository

T = TypeVar("T")


class _Request(Protocol):
    """A message: it names a model, in one of the protocol's two ways, or asks for ready ones only."""

    name: str
    model_name: str
    ready: bool


class _Context(Protocol):
    """A call under way."""

    async def abort(self, code: object, details: str) -> NoReturn:
        """Ends it with an error."""


class GrpcKServe(service.GRPCInferenceServiceServicer):  # type: ignore[misc]  # has no types
    """The service. Its methods are named by the protocol."""

    def __init__(self, repository: SimulatedRepository) -> None:
        self._repository = repository

    async def ServerLive(self, _request: object, _context: object) -> object:  # noqa: N802
        """Always."""
        return messages.ServerLiveResponse(live=True)

    async def ServerReady(self, _request: object, _context: object) -> object:  # noqa: N802
        """Strict readiness."""
        return messages.ServerReadyResponse(ready=self._repository.ready)

    async def ModelReady(self, request: _Request, _context: object) -> object:  # noqa: N802
        """One model's."""
        return messages.ModelReadyResponse(ready=self._repository.model_ready(request.name))

    async def RepositoryIndex(self, request: _Request, _context: object) -> object:  # noqa: N802
        """The index."""
        return ParseDict({"models": self._repository.index(ready=request.ready)}, messages.RepositoryIndexResponse())

    async def RepositoryModelLoad(self, request: _Request, context: _Context) -> object:  # noqa: N802
        """Loads."""
        await _or_abort(context, lambda: self._repository.load(request.model_name))
        return messages.RepositoryModelLoadResponse()

    async def RepositoryModelUnload(self, request: _Request, context: _Context) -> object:  # noqa: N802
        """Begins to unload."""
        await _or_abort(context, lambda: self._repository.unload(request.model_name))
        return messages.RepositoryModelUnloadResponse()

    async def ServerMetadata(self, _request: object, _context: object) -> object:  # noqa: N802
        """The server's version."""
        return ParseDict(self._repository.server_metadata(), messages.ServerMetadataResponse())

    async def ModelMetadata(self, request: _Request, context: _Context) -> object:  # noqa: N802
        """A model's inputs and outputs."""
        found = await _or_abort(context, lambda: self._repository.metadata(request.name))
        return ParseDict(found, messages.ModelMetadataResponse())

    async def ModelStatistics(self, request: _Request, context: _Context) -> object:  # noqa: N802
        """What models have done."""
        found = await _or_abort(context, lambda: self._repository.statistics(request.name))
        return ParseDict({"model_stats": found}, messages.ModelStatisticsResponse())


async def _or_abort(context: _Context, act: Callable[[], T]) -> T:
    try:
        return act()
    except Refused as refused:
        return await context.abort(grpc.StatusCode[refused.grpc], refused.message)


@contextlib.asynccontextmanager
async def grpc_kserve(repository: SimulatedRepository) -> AsyncIterator[str]:
    """Serves on a free loopback port; yields host:port."""
    server = grpc.aio.server()
    service.add_GRPCInferenceServiceServicer_to_server(GrpcKServe(repository), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)
