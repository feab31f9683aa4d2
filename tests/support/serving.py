"""The gateway's data path under a real uvicorn server, in the test's own event loop."""

import asyncio
import socket
from collections.abc import Mapping
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send

from gateway.metrics import Meters
from gateway.proxy.asgi import carry
from gateway.proxy.paths import FORWARDED
from gateway.proxy.plane import Plane, build_plane
from gateway.settings.tree import Settings
from tests.support.client import Client
from tests.support.waiting import until, within

CARRIERS: Mapping[str, Any] = {"asgi": "httptools"}
"""What carries exchanges: uvicorn's ``http`` setting by name. Every integration test runs with each."""


class Application:
    """The forwarded paths and nothing else."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = FORWARDED.get(scope["path"])
        assert operation is not None, scope["path"]
        await carry(self.plane, operation, scope, receive, send)


class Serving:
    """A gateway that serves on a loopback port."""

    def __init__(self, settings: Mapping[str, Any], carrier: str) -> None:
        self.settings = Settings.model_validate(settings)
        self.meters = Meters()
        self._carrier = carrier
        self.port = 0

    async def start(self) -> None:
        self.plane = build_plane(self.settings, asyncio.get_running_loop(), self.meters)
        config = uvicorn.Config(
            Application(self.plane),
            http=CARRIERS[self._carrier],
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=int(self.settings.server.keep_alive),
        )
        config.load()
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", 0))
        self.port = sock.getsockname()[1]
        self._server = server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[sock])

    async def stop(self) -> None:
        server = self._server
        for listening in server.servers:
            listening.close()
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        await until(lambda: not server.server_state.tasks, what="the end of all requests")
        self.plane.close()
        pools = [link.pool for link in self.plane.endpoints.values()]
        await until(lambda: sum(pool.open for pool in pools) == 0, what="the end of the engine connections")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def connect(self, *, limit: int = 2**16, receive: int | None = None) -> Client:
        return await within(Client.open(self.port, limit=limit, receive=receive), what="a connection to the gateway")

    @property
    def in_flight(self) -> list[int]:
        """All gauges of requests in flight: those of the endpoints and those of the meters."""
        meters = [asked.destinations.values() for asked in self.plane.asked.values()]
        return [endpoint.in_flight for endpoint in self.plane.endpoints] + [
            destination.meter.in_flight for destinations in meters for destination in destinations
        ]

    @property
    def tasks(self) -> int:
        """Requests that the server still works on."""
        return len(self._server.server_state.tasks)

    async def settled(self) -> None:
        """Returns when nothing is in flight any more: gauges exactly 0, no task, no deadline."""
        await until(lambda: not any(self.in_flight), what=f"gauges at zero ({self.in_flight})")
        assert all(gauge == 0 for gauge in self.in_flight)
        await until(lambda: self.tasks == 0, what="the end of the server's tasks")
        assert len(self.plane.deadlines) == 0

    def outcomes(self, model: str = "m", engine: str = "e") -> dict[str, int]:
        return self.meters.meter(model, engine).outcomes

    def retries(self, model: str = "m", engine: str = "e") -> dict[str, int]:
        return self.meters.meter(model, engine).retries
