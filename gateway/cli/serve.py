"""`turnout serve`."""

import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import structlog
import typer

from gateway import logs
from gateway.app import Application, Gateway
from gateway.background.reloader import log_open
from gateway.cli.listening import BACKLOG, allow_connections, bind, url_of
from gateway.cli.report import read_settings, show_problems
from gateway.cli.server import (
    LAST_WORDS,
    GatewayServer,
    member_server,
    require_parts,
    server_for,
    settle_memory,
)
from gateway.proxy.carriers import Carrier
from gateway.proxy.limiter import is_limited
from gateway.settings import ConfigErrors, Settings
from gateway.settings.source import ConfigFile, Configuration, with_server
from gateway.supervisor.configured import Configured, Standing
from gateway.supervisor.listeners import spread
from gateway.supervisor.supervisor import CannotServe, Plan, Supervisor

_log = structlog.get_logger()


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
    options = {"host": host, "port": port, "workers": workers}
    given = {key: value for key, value in options.items() if value is not None}
    configured, file = _configured(config, engine or [], given)
    settings = configured.settings
    sockets = bind(settings.server, take_over=take_over)
    allow_connections()
    logs.configure(sys.stderr, logs.LEVELS[settings.logs.level])
    require_parts()
    log_open(None, settings)
    code = (_serve_alone if settings.server.workers == 1 else _serve_together)(configured, file, sockets, carrier)
    if code:
        raise typer.Exit(code)


def _serve_alone(
    configured: Configuration, file: ConfigFile | None, sockets: list[socket.socket], carrier: Carrier
) -> int:
    return _run(server_for(Application(Gateway(configured, file)), _tell, carrier), sockets)


def _serve_together(
    configured: Configuration, file: ConfigFile | None, sockets: list[socket.socket], carrier: Carrier
) -> int:
    """Several processes; gives the supervisor's exit code, or that of the member that this process has become."""
    application = Application(Gateway(configured))

    def member(listeners: list[socket.socket], line: socket.socket, standing: Standing) -> int:
        application.gateway.begin_with(standing.configuration, standing.error, standing.drains)
        return _run(member_server(application, line, carrier), listeners)

    url = url_of(sockets[0])
    settings = configured.settings
    listeners = spread(sockets, settings.server.workers, BACKLOG)
    _log.info("max_in_flight and the retry budget hold in each process by itself", processes=len(listeners))
    if is_limited(settings) and settings.state.redis is None:
        _log.warning(
            "without state.redis, each process holds its share of every limit: whose requests all come to one process "
            "gets no more than that",
            processes=settings.server.workers,
        )
    settle_memory()
    try:
        plan = Plan(listeners, member, lambda: _tell(url), LAST_WORDS)
        return Supervisor(plan, Configured(configured, file)).run()
    except CannotServe as error:
        raise typer.TyperException(str(error)) from None


def _run(running: GatewayServer, sockets: list[socket.socket]) -> int:
    running.run(sockets)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end is near; one more Ctrl-C must not spoil the exit code
    return int(running.failed)


def _tell(url: str) -> None:
    typer.echo(f"turnout: listening on {url}")


def _configured(
    config: Path | None, engines: Sequence[str], given: Mapping[str, object]
) -> tuple[Configuration, ConfigFile | None]:
    """What to serve, and the file that it is in. ``given``: keys of `server` from the command line."""
    now = time.time()
    if not engines:
        loaded = read_settings(config)
        file = ConfigFile(loaded, os.environ, given)
        return file.first(loaded, now), file
    if config is not None:
        raise typer.BadParameter("give --config or --engine, not both")
    try:
        settings = Settings.from_engines(map(_kind_and_url, engines))
    except ConfigErrors as errors:
        show_problems(errors.problems, errors.lines_of)
        raise typer.Exit(2) from None
    return Configuration(with_server(settings, given), loaded_at=now), None


def _kind_and_url(text: str) -> tuple[str, str]:
    kind, equals, url = text.partition("=")
    if not equals:
        raise typer.BadParameter("expected KIND=URL, such as --engine vllm=http://127.0.0.1:8000")
    return kind, url
