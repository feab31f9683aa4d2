"""The gateway under a real uvicorn server, in the test's own event loop."""

import asyncio
import functools
import json
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.app import Application, create_app
from gateway.app import Gateway as Whole
from gateway.metrics import Meters
from gateway.proxy.asgi import carry
from gateway.proxy.building import build_plane
from gateway.proxy.carriers import Carrier, protocol_of
from gateway.proxy.paths import FORWARDED
from gateway.proxy.plane import Plane, PlaneSource
from gateway.settings.loading import load
from gateway.settings.source import ConfigFile
from gateway.settings.tree import Settings
from tests.support.client import Client
from tests.support.json_type import Json
from tests.support.waiting import until, within

CARRIERS: Mapping[str, Callable[[PlaneSource], Json]] = {
    carrier.value: functools.partial(protocol_of, carrier=carrier) for carrier in reversed(Carrier)
}
"""What carries exchanges: uvicorn's ``http`` setting by name. Every integration test runs with each."""

SERVERS: Mapping[str, Callable[[PlaneSource], Json]] = {
    **CARRIERS,
    "plain-httptools": lambda _: "httptools",
    "plain-h11": lambda _: "h11",
}
"""The same, and servers that know nothing of the gateway: what any ASGI server is like."""


class DataPath:
    """The forwarded paths and nothing else: no control plane, no health checks."""

    def __init__(self, settings: Settings) -> None:
        self.plane = build_plane(settings, asyncio.get_running_loop(), Meters())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await carry(self.plane, FORWARDED[scope["path"]], scope, receive, send)


class Serving:
    """A gateway that serves on a loopback port: its data path alone, or ``whole``, with everything around it.

    With a ``file``, the settings are written there, and the gateway follows what becomes of it.
    """

    def __init__(
        self, settings: Mapping[str, Json], carrier: str, *, whole: bool = False, file: Path | None = None
    ) -> None:
        self.file = file
        self.settings = Settings.model_validate(settings)
        self._carrier = carrier
        self._whole = whole
        self.port = 0

    async def start(self) -> None:
        app: ASGIApp
        if self._whole:
            app = application = create_app(self.settings) if self.file is None else self._following(self.file)
            self._source: PlaneSource = application.gateway
        else:
            app = self._source = DataPath(self.settings)
        config = uvicorn.Config(
            app,
            http=SERVERS[self._carrier](self._source),
            ws="none",
            lifespan="on" if self._whole else "off",
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
        await within(server.startup(sockets=[sock]), what="the start of the gateway")

    def _following(self, file: Path) -> Application:
        self.write(self.settings.model_dump(mode="json", exclude_unset=True))
        loaded = load(file, {})
        config = ConfigFile(loaded, {}, {})
        return Application(Whole(config.first(loaded, time.time()), config))

    def write(self, settings: Mapping[str, Json] | str) -> None:
        """Changes the configuration's file, as an editor does."""
        assert self.file is not None
        new = self.file.with_suffix(".new")
        new.write_text(settings if isinstance(settings, str) else json.dumps(settings))
        new.rename(self.file)

    async def stop(self) -> None:
        """Ends it without uvicorn's pauses."""
        server = self._server
        for listening in server.servers:
            listening.close()
        for connection in list(server.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await until(lambda: self.tasks == 0, what="the end of all requests")
        await within(server.lifespan.shutdown(), what="the end of the gateway")
        self.plane.close()
        pools = [link.pool for link in self.plane.endpoints.values()]
        await until(lambda: sum(pool.open for pool in pools) == 0, what="the end of the engine connections")

    def apply(self, settings: Mapping[str, Json]) -> None:
        """Puts other settings in force; only for a whole gateway."""
        assert isinstance(self._source, Whole)
        self._source.apply(Settings.model_validate(settings))

    @property
    def plane(self) -> Plane:
        return self._source.plane

    @property
    def meters(self) -> Meters:
        return self.plane.meters

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

    @property
    def connections(self) -> int:
        """Clients' connections that are open."""
        return len(self._server.server_state.connections)

    async def settled(self) -> None:
        """Returns when nothing is in flight any more: every gauge exactly 0, no task left."""
        await until(lambda: not any(self.in_flight), what="gauges at zero")
        await until(lambda: self.tasks == 0, what="the end of the server's tasks")
        assert set(self.in_flight) <= {0}

    def outcomes(self, model: str = "m", engine: str = "e") -> dict[str, int]:
        return self.meters.meter(model, engine).outcomes

    def retries(self, model: str = "m", engine: str = "e") -> dict[str, int]:
        return self.meters.meter(model, engine).retries
