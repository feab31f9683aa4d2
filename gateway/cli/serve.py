"""`turnout serve`."""

import asyncio
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import structlog
import typer
import uvicorn
from pydantic import ValidationError

from gateway import logs
from gateway.app import Application, create_app
from gateway.cli.report import read_settings
from gateway.settings import Server, Settings

BACKLOG: Final = 4096
"""Connections that the kernel keeps while the loop is busy."""

LAST_WORDS: Final = 1.0
"""Seconds in which streams that were cut after the drain may still be told so."""

TICK: Final = 0.02
"""Seconds between two looks whether they have been."""

ONE_KEYSTROKE: Final = 0.5
"""Seconds in which several interrupts count as one: `make` and shells pass a Ctrl-C on to whom it has reached already."""

_log = structlog.get_logger()


class GatewayServer(uvicorn.Server):
    """uvicorn, ended as a service manager expects: it drains, says so, and exits with code 0.

    A signal ends the accepting; Ctrl-C once more ends the drain. A background task that died ends the server too, with
    code 1: a gateway that does not see its engines any more should be restarted, not linger.
    """

    crashed = False
    _asked_at = 0.0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Notes a signal. uvicorn would raise it again at the end, and so die of it."""
        del frame
        now = time.monotonic()
        if not self.should_exit:
            self._asked_at = now
        elif sig == signal.SIGINT and now - self._asked_at > ONE_KEYSTROKE:
            self.force_exit = True
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second."""
        if self.lifespan_failed() and not self.should_exit:
            self.crashed = True
            self.should_exit = True
        return await super().on_tick(counter)

    def lifespan_failed(self) -> bool:
        """Whether the application's own tasks are gone."""
        return bool(getattr(self.lifespan, "error_occurred", False))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops accepting, lets answers finish, and cuts what is left after the drain."""
        state = self.server_state
        _log.info("draining", open=len(state.tasks))
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()
        for _ in range(round(LAST_WORDS / TICK)):
            if not (state.tasks or state.connections):
                break
            await asyncio.sleep(TICK)
        _log.info("stopped")


def serve(
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The configuration; default: $TURNOUT_CONFIG, turnout.yaml, config/turnout.yaml."
        ),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=1, help="Processes that serve; only 1 for now.")] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=URL", help="An engine, instead of a file; its models are discovered. Repeatable."),
    ] = None,
) -> None:
    """Serve the models of a configuration file, or of engines named here."""
    settings, config_hash = _settings(config, engine or [])
    given = {"host": host, "port": port, "workers": workers}
    server = settings.server.model_copy(update={key: value for key, value in given.items() if value is not None})
    settings = settings.model_copy(update={"server": server})
    logs.configure(sys.stderr)
    sockets = bind(server)
    application = create_app(settings, config_hash=config_hash)
    code = run(application, server, sockets, lambda url: typer.echo(f"turnout: listening on {url}"))
    if code:
        raise typer.Exit(code)


def _settings(config: Path | None, engines: Sequence[str]) -> tuple[Settings, str]:
    if not engines:
        loaded = read_settings(config)
        return loaded.settings, loaded.text_hash
    if config is not None:
        raise typer.BadParameter("give --config or --engine, not both")
    pairs = [_kind_and_url(text) for text in engines]
    try:
        return Settings.from_engines(pairs), ""
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = str(first.get("ctx", {}).get("error", first["msg"]))
        raise typer.BadParameter(f"{what}; such as --engine vllm=http://127.0.0.1:8000") from None


def _kind_and_url(text: str) -> tuple[str, str]:
    kind, equals, url = text.partition("=")
    if not equals:
        raise typer.BadParameter("expected KIND=URL, such as --engine vllm=http://127.0.0.1:8000")
    return kind, url


def bind(server: Server) -> list[socket.socket]:
    """Sockets on every address of the host, all with one port.

    Raises:
        typer.TyperException: the address cannot be had.
    """
    bound: list[socket.socket] = []
    port = server.port
    try:
        found = socket.getaddrinfo(server.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in dict.fromkeys(found):
            one = socket.socket(family, socket.SOCK_STREAM)
            bound.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6 and len(found) > 1:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind((address[0], port, *address[2:]))
            port = one.getsockname()[1]
            one.settimeout(0)
            one.listen(BACKLOG)
    except OSError as error:
        for one in bound:
            one.close()
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise typer.TyperException(f"cannot listen on {server.host}:{port}: {why}") from None
    return bound


def url_of(listener: socket.socket) -> str:
    """The base URL under which a listening socket can be reached from this machine."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def uvicorn_config(application: Application, server: Server) -> uvicorn.Config:
    """How uvicorn runs the gateway. `http` is where the protocol class goes in.

    Raises:
        ImportError: uvloop or httptools is not installed; without them the gateway would be many times slower.
    """
    return uvicorn.Config(
        application,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=math.ceil(server.keep_alive),
        timeout_graceful_shutdown=math.ceil(server.drain),
    )


def run(application: Application, server: Server, sockets: list[socket.socket], told: Callable[[str], None]) -> int:
    """Serves until a signal comes; `told` gets the URL once requests are taken. Gives the exit code."""

    class Announcing(GatewayServer):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if sockets and self.started:
                told(url_of(sockets[0]))

    running = Announcing(uvicorn_config(application, server))
    try:
        running.run(sockets)
    except KeyboardInterrupt:
        return 0
    return 1 if running.crashed or not running.started else 0
