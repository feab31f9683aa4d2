"""`turnout serve`."""

import asyncio
import ctypes
import functools
import gc
import math
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final, Protocol, runtime_checkable

import structlog
import typer
import uvicorn

from gateway import logs
from gateway.api import fleet
from gateway.api.ops import snapshot
from gateway.app import Application, Gateway, create_app
from gateway.balance.drains import StandingOrders
from gateway.cli.listening import BACKLOG, Waiting, allow_connections, bind, url_of
from gateway.cli.report import read_settings, show_problems
from gateway.proxy.carriers import Carrier, protocol_of
from gateway.proxy.limiter import is_limited
from gateway.settings import ConfigErrors, Server, Settings
from gateway.supervisor.link import Link
from gateway.supervisor.listeners import spread
from gateway.supervisor.supervisor import CannotServe, Plan, Supervisor

KEPT_FREE: Final = 16 * 2**20
"""Bytes of free memory that may stay with the process, and the size from which blocks are mapped on their own."""

M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
"""Names of mallopt(3)."""

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


class GatewayServer(uvicorn.Server):
    """uvicorn, ended as a service manager expects: it drains, says so, and exits with code 0.

    A signal ends the accepting; Ctrl-C once more ends the drain. A background task that died ends the server too, with
    code 1: a gateway that does not see its engines any more should be restarted, not linger. `told` gets the URL once
    requests are taken; `drain` is how many seconds answers may take to finish.
    """

    def __init__(self, config: uvicorn.Config, drain: float, told: Callable[[str], None]) -> None:
        super().__init__(config)
        self.crashed = False
        self._drain = drain
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
        if self.started and sockets and not self.should_exit:
            self._told(url_of(sockets[0]))

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second."""
        if getattr(self.lifespan, "error_occurred", False) and not self.should_exit:
            self.crashed = True
            self.should_exit = True
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
        first = min(FIRST_REQUEST, self._drain)
        if await self._ended_within(first):
            return True
        self._end_idle()
        return await self._ended_within(self._drain - first)

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


class MemberServer(GatewayServer):
    """One of several servers on a port, with a line to the supervisor. Without the supervisor, it drains and ends."""

    def __init__(self, config: uvicorn.Config, drain: float, gateway: Gateway, line: socket.socket) -> None:
        super().__init__(config, drain, lambda _: self._link.ready())
        counts, obey = functools.partial(snapshot, gateway), functools.partial(fleet.answer, gateway)
        self._link = Link(line, counts, obey, self._orphaned)
        gateway.meters.ask_all = self._link.ask
        gateway.ask_all = self._link.ask_all

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serves until it is told to end."""
        await self._link.open()
        try:
            await super().serve(sockets)
        finally:
            await self._link.close()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Lets the supervisor start another one, and drains."""
        self._link.leaving()
        await super().shutdown(sockets)

    def _orphaned(self) -> None:
        _log.warning("the supervisor is gone")
        self.should_exit = True


def settle_memory() -> None:
    """Ends the start: what it has built stays for good, so the collector need not look at it again (5 to 10 % of a
    request's cost), and what it has thrown away goes back to the system.
    """
    gc.collect()
    gc.freeze()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim"):  # glibc
        # Bodies of a few hundred kilobytes would be mapped and unmapped by the kernel for each request.
        libc.mallopt(M_MMAP_THRESHOLD, KEPT_FREE)
        libc.mallopt(M_TRIM_THRESHOLD, KEPT_FREE)
        libc.malloc_trim(0)


def serve(
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The configuration; default: $TURNOUT_CONFIG, turnout.yaml, config/turnout.yaml."
        ),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes that serve.")] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=URL", help="An engine, instead of a file; its models are discovered. Repeatable."),
    ] = None,
    take_over: Annotated[  # noqa: FBT002 - an option
        bool,
        typer.Option(
            "--take-over", help="Share the port with a gateway that listens there; it ends with a SIGTERM to that one."
        ),
    ] = False,
    carrier: Annotated[
        Carrier, typer.Option(help="How calls are carried: inside the HTTP protocol, or as an ASGI application.")
    ] = Carrier.PROTOCOL,
) -> None:
    """Serve the models of a configuration file, or of engines named here."""
    settings, config_hash = _settings(config, engine or [])
    given = {"host": host, "port": port, "workers": workers}
    server = settings.server.model_copy(update={key: value for key, value in given.items() if value is not None})
    settings = settings.model_copy(update={"server": server})
    sockets = bind(server, take_over=take_over)
    allow_connections()
    logs.configure(sys.stderr)
    application = create_app(settings, config_hash=config_hash)
    _require_parts()
    if not settings.asks_for_keys:
        _log.info("no key is asked for: whoever reaches the port may call every model")
    code = (_serve_alone if server.workers == 1 else _serve_together)(application, server, sockets, carrier)
    if code:
        raise typer.Exit(code)


def _serve_alone(application: Application, server: Server, sockets: list[socket.socket], carrier: Carrier) -> int:
    return _run(server_for(application, server, _tell, carrier), sockets)


def _serve_together(application: Application, server: Server, sockets: list[socket.socket], carrier: Carrier) -> int:
    """Several processes; gives the supervisor's exit code, or that of the member that this process has become."""

    def member(listeners: list[socket.socket], line: socket.socket, standing: StandingOrders) -> int:
        application.gateway.standing = standing
        config = _config(application, server, carrier)
        return _run(MemberServer(config, server.drain, application.gateway, line), listeners)

    url = url_of(sockets[0])
    listeners = spread(sockets, server.workers, BACKLOG)
    _log.info("max_in_flight and the retry budget hold in each process by itself", processes=server.workers)
    settings = application.gateway.settings
    if is_limited(settings) and settings.state.redis is None:
        _log.warning(
            "without state.redis, each process holds its share of every limit: whose requests all come to one process "
            "gets no more than that",
            processes=server.workers,
        )
    settle_memory()
    try:
        return Supervisor(Plan(listeners, member, lambda: _tell(url), server.drain + LAST_WORDS)).run()
    except CannotServe as error:
        raise typer.TyperException(str(error)) from None


def _run(running: GatewayServer, sockets: list[socket.socket]) -> int:
    running.run(sockets)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end is near; one more Ctrl-C must not spoil the exit code
    return int(running.failed)


def _tell(url: str) -> None:
    typer.echo(f"turnout: listening on {url}")


def _settings(config: Path | None, engines: Sequence[str]) -> tuple[Settings, str]:
    if not engines:
        loaded = read_settings(config)
        return loaded.settings, loaded.text_hash
    if config is not None:
        raise typer.BadParameter("give --config or --engine, not both")
    try:
        return Settings.from_engines(map(_kind_and_url, engines)), ""
    except ConfigErrors as errors:
        show_problems(errors.problems, errors.lines_of)
        raise typer.Exit(2) from None


def _kind_and_url(text: str) -> tuple[str, str]:
    kind, equals, url = text.partition("=")
    if not equals:
        raise typer.BadParameter("expected KIND=URL, such as --engine vllm=http://127.0.0.1:8000")
    return kind, url


def server_for(
    application: Application, server: Server, told: Callable[[str], None], carrier: Carrier = Carrier.PROTOCOL
) -> GatewayServer:
    """A server, ready to `run` or `serve` on sockets."""
    _require_parts()
    return GatewayServer(_config(application, server, carrier), server.drain, told)


def _require_parts() -> None:
    missing = [name for name in ("uvloop", "httptools") if find_spec(name) is None]
    if missing:
        raise typer.TyperException(f"{' and '.join(missing)} must be installed: the gateway does not run without")


def _config(application: Application, server: Server, carrier: Carrier) -> uvicorn.Config:
    # uvicorn calls what it takes for a class; its annotation knows only classes.
    http: Any = protocol_of(application.gateway, carrier)
    return uvicorn.Config(
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
        timeout_keep_alive=math.ceil(server.keep_alive),
        timeout_graceful_shutdown=LAST_WORDS,
    )
