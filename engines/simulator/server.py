"""Runs a simulated engine under uvicorn, as the real frontends do: httptools, 5 s keep-alive, no access log."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from engines.simulator.app import CLOSE, RESET, Receive, Scope, SimulatedEngine
from engines.simulator.load import Load
from engines.simulator.pace import Faults
from engines.simulator.run import Send

KEEP_ALIVE = 5
"""Seconds after which an idle connection is closed; the same for all three engines (`wire_keepalive_idle`)."""


class _Protocol(HttpToolsProtocol):
    """Lets the application close its connection as it stands, which ASGI itself has no word for."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"][CLOSE] = self.transport.close
        self.scope["state"][RESET] = self._reset

    def _reset(self) -> None:
        linger = self.transport.get_extra_info("socket")
        linger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


class RunningEngine:
    """A simulated engine that listens. Made by `start`; `stop` ends it."""

    def __init__(self, engine: SimulatedEngine, server: uvicorn.Server, host: str, port: int) -> None:
        self.engine = engine
        self.host, self.port = host, port
        self._server = server
        self._ticks = asyncio.create_task(server.main_loop())

    @property
    def url(self) -> str:
        """The base URL, without a path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def load(self) -> Load:
        """Running and waiting requests and the totals."""
        return self.engine.load

    @property
    def faults(self) -> Faults:
        """The scripted misbehaviour; may be set at any time."""
        return self.engine.faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self.engine.faults = faults

    @property
    def connections(self) -> int:
        """Open client connections."""
        return len(self._server.server_state.connections)

    def hush(self) -> None:
        """Ends as vLLM does at a SIGTERM: nobody can connect, and what runs falls silent (`wire_sigterm_stream`)."""
        self.engine.hushed = True
        for listener in self._server.servers:
            listener.close()

    async def stop(self) -> None:
        """Ends at once, as a killed engine does: closes the listener and all connections, cancels what runs."""
        self.engine.stopping = True
        self._server.should_exit = True
        for listener in self._server.servers:
            listener.close()
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
        # Lets the protocols learn of it, so that requests end as those of clients that left.
        await asyncio.sleep(0)
        running = list(self._server.server_state.tasks)
        for task in (self._ticks, *running):
            task.cancel()
        await asyncio.gather(self._ticks, *running, return_exceptions=True)
        for listener in self._server.servers:
            await listener.wait_closed()


async def start(
    engine: SimulatedEngine,
    host: str = "127.0.0.1",
    port: int = 0,
    keep_alive: float = KEEP_ALIVE,
    application: Callable[[Scope, Receive, Send], Awaitable[None]] | None = None,
) -> RunningEngine:
    """Starts to listen; port 0 takes a free one. `application`: what stands around the engine.

    Raises OSError when the address cannot be bound.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=1024)
    options: dict[str, Any] = {
        "http": _Protocol,
        "ws": "none",
        "lifespan": "off",
        "log_config": None,
        "proxy_headers": False,
    }
    config = uvicorn.Config(application or engine, access_log=False, **options)
    config.load()
    config.timeout_keep_alive = keep_alive  # type: ignore[assignment]  # whole seconds only for its command line
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    try:
        await server.startup(sockets=[listener])
    except BaseException:
        listener.close()
        raise
    return RunningEngine(engine, server, host, listener.getsockname()[1])


@contextlib.asynccontextmanager
async def listening(engine: SimulatedEngine, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[RunningEngine]:
    """Starts the engine and stops it on leaving."""
    running = await start(engine, host, port)
    try:
        yield running
    finally:
        await running.stop()
