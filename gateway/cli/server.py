"""The server around the application: uvicorn, ended as a service manager expects, alone or as one of several."""

import asyncio
import math
import signal
import socket
import time
from collections.abc import Callable
from importlib.util import find_spec
from types import FrameType
from typing import Any, Final, Protocol, runtime_checkable

import structlog
from uvicorn.config import Config
from uvicorn.server import Server

from gateway.app import Application, Gateway
from gateway.cli.failing import Failure
from gateway.cli.listening import BACKLOG, Waiting, url_of
from gateway.cli.memory import GIVE_BACK_EVERY, give_back, settle_memory
from gateway.proxy.carriers import Carrier, protocol_of

LAST_WORDS: Final = 1
"""Seconds in which answers that were cut after the drain may still be told so."""

FIRST_REQUEST: Final = 1.0
"""Seconds that a new connection has for its first request when the gateway is told to stop."""

TICK: Final = 0.02
"""Seconds between two looks whether all answers have ended."""

ONE_KEYSTROKE: Final = 0.5
"""Seconds in which several interrupts count as one: `make` and shells pass on a Ctrl-C that everyone has seen."""

_log = structlog.get_logger()


@runtime_checkable
class Interruptible(Protocol):
    """A connection that can end its answers by itself. Others have their tasks cancelled."""

    def interrupt(self) -> None:
        """Ends what is being answered: with an error event where a stream has begun, and closes."""


class GatewayServer(Server):
    """uvicorn, ended as a service manager expects: it drains, says so, and exits with code 0.

    A signal ends the accepting; Ctrl-C once more ends the drain. A background task that died ends the server too, with
    code 1: a gateway that does not see its engines any more should be restarted, not linger. SIGHUP has the
    configuration's file read. `told` gets the URL once requests are taken.
    """

    def __init__(self, config: Config, gateway: Gateway, told: Callable[[str], None]) -> None:
        super().__init__(config)
        self.crashed = False
        self._gateway = gateway
        self._told = told
        self._asked_at = 0.0

    @property
    def failed(self) -> bool:
        """Whether it ended by a fault of its own, at the start or later."""
        return self.crashed or not self.started

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Notes a signal. uvicorn would raise it again at the end, and so die of it."""
        del frame
        now = time.monotonic()
        if not self.should_exit:
            self._asked_at = now
        elif sig == signal.SIGINT and now - self._asked_at > ONE_KEYSTROKE:
            self.force_exit = True
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts the application, then takes requests."""
        self._waiting = Waiting(sockets or ())
        await super().startup(sockets)
        settle_memory()
        if self._gateway.reload_soon is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._gateway.reload_soon)
        if self.started and sockets and not self.should_exit:
            self._told(url_of(sockets[0]))

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second."""
        if getattr(self.lifespan, "error_occurred", False) and not self.should_exit:
            self.crashed = True
            self.should_exit = True
        if self._gateway.started:  # what uvicorn's own protocol gives to new connections
            self.config.timeout_keep_alive = math.ceil(self._gateway.settings.server.keep_alive)
        if counter % (10 * GIVE_BACK_EVERY) == 0:
            give_back()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops accepting, lets answers finish, and cuts what is left after the drain."""
        state = self.server_state
        for listener in self.servers:
            listener.close()
        await self._take_waiting()
        self._end_idle()
        if not await self._ended_within(TICK):
            _log.info("draining", connections=len(state.connections))
            if not await self._drained():
                _log.warning("cutting what has not ended", connections=len(state.connections))
                self._cut()
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()
        await self._ended_within(LAST_WORDS)
        _log.info("stopped")

    async def _take_waiting(self) -> None:
        """Serves those that the kernel has accepted already: they would be reset otherwise."""
        loop = asyncio.get_running_loop()
        # As uvicorn makes the others; its annotation knows only the base class.
        make: Any = self.config.http_protocol_class
        for late in self._waiting.take():
            await loop.connect_accepted_socket(
                lambda: make(self.config, self.server_state, self.lifespan.state, loop), late
            )

    def _end_idle(self) -> None:
        """Ends connections that carry nothing; the first time, new ones may still make their first request."""
        for connection in list(self.server_state.connections):
            connection.shutdown()

    async def _drained(self) -> bool:
        """Whether all answers have ended in time."""
        drain = self._gateway.settings.server.drain
        first = min(FIRST_REQUEST, drain)
        if await self._ended_within(first):
            return True
        self._end_idle()
        return await self._ended_within(drain - first)

    async def _ended_within(self, seconds: float) -> bool:
        """Whether all answers ended in time; at once if nobody wants to wait."""
        state = self.server_state
        for _ in range(max(1, math.ceil(seconds / TICK))):
            if not (state.connections or state.tasks) or self.force_exit:
                break
            await asyncio.sleep(TICK)
        return not (state.connections or state.tasks)

    def _cut(self) -> None:
        for connection in list(self.server_state.connections):
            if isinstance(connection, Interruptible):
                connection.interrupt()
        for task in list(self.server_state.tasks):
            task.cancel()


def server_for(
    application: Application, told: Callable[[str], None], carrier: Carrier = Carrier.PROTOCOL
) -> GatewayServer:
    """A server, ready to `run` or `serve` on sockets."""
    require_parts()
    return GatewayServer(config_for(application, carrier), application.gateway, told)


def require_parts() -> None:
    """Raises Failure."""
    missing = [name for name in ("uvloop", "httptools") if find_spec(name) is None]
    if missing:
        raise Failure(f"{' and '.join(missing)} must be installed: the gateway does not run without")


def config_for(application: Application, carrier: Carrier) -> Config:
    """How uvicorn serves."""
    # uvicorn calls what it takes for a class; its annotation knows only classes.
    http: Any = protocol_of(application.gateway, carrier)
    return Config(
        application,
        loop="uvloop",
        http=http,
        ws="none",
        lifespan="on",
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=math.ceil(application.gateway.settings.server.keep_alive),
        timeout_graceful_shutdown=LAST_WORDS,
    )
