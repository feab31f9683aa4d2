"""What `turnout serve` does: reads the configuration, takes the port, and serves until it is told to end."""

import importlib
import os
import signal
import socket
import sys
import time

import structlog

from gateway import logs
from gateway.app import Application, Gateway
from gateway.background.reloader import log_open
from gateway.background.shared.client import load_clients
from gateway.cli.failing import Failure, Told
from gateway.cli.listening import BACKLOG, allow_connections, bind, url_of
from gateway.cli.plain import ServeOrder
from gateway.cli.server import (
    LAST_WORDS,
    GatewayServer,
    member_server,
    require_parts,
    server_for,
    settle_memory,
)
from gateway.cli.sparing import spared_libraries
from gateway.proxy.carriers import Carrier
from gateway.proxy.limiter import is_limited
from gateway.settings import ConfigErrors, Settings, load
from gateway.settings.source import ConfigFile, Configuration, with_server
from gateway.supervisor.configured import Configured, Standing
from gateway.supervisor.listeners import spread
from gateway.supervisor.supervisor import CannotServe, Plan, Supervisor

_log = structlog.get_logger()


def serve(order: ServeOrder) -> int:
    """Serves the models of a configuration file, or of engines named in the order; gives the exit code.

    Raises:
        Failure: it cannot.
        Told: what is wrong with the configuration has been shown.
    """
    configured, file = _configured(order)
    settings = configured.settings
    sockets = bind(settings.server, take_over=order.take_over)
    allow_connections()
    logs.configure(sys.stderr, logs.LEVELS[settings.logs.level])
    require_parts()
    log_open(None, settings)
    if settings.state.redis is not None:
        load_clients()  # now, so that several processes share it
    serving = _serve_alone if settings.server.workers == 1 else _serve_together
    return serving(configured, file, sockets, Carrier(order.carrier))


def _serve_alone(
    configured: Configuration, file: ConfigFile | None, sockets: list[socket.socket], carrier: Carrier
) -> int:
    return _run(server_for(_application(configured, file), _tell, carrier), sockets)


def _application(configured: Configuration, file: ConfigFile | None = None) -> Application:
    with spared_libraries():
        return Application(Gateway(configured, file))


def _serve_together(
    configured: Configuration, file: ConfigFile | None, sockets: list[socket.socket], carrier: Carrier
) -> int:
    """Several processes; gives the supervisor's exit code, or that of the member that this process has become."""
    application = _application(configured)

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
        raise Failure(str(error)) from None


def _run(running: GatewayServer, sockets: list[socket.socket]) -> int:
    running.run(sockets)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end is near; one more Ctrl-C must not spoil the exit code
    return int(running.failed)


def _tell(url: str) -> None:
    print(f"turnout: listening on {url}", flush=True)


def _configured(order: ServeOrder) -> tuple[Configuration, ConfigFile | None]:
    """What to serve, and the file that it is in. Raises Told."""
    now = time.time()
    options = {"host": order.host, "port": order.port, "workers": order.workers}
    given = {key: value for key, value in options.items() if value is not None}
    try:
        if not order.engines:
            loaded = load(order.config, os.environ)
            file = ConfigFile(loaded, os.environ, given)
            return file.first(loaded, now), file
        settings = Settings.from_engines(map(_kind_and_url, order.engines))
    except ConfigErrors as errors:
        importlib.import_module("gateway.cli.report").show_problems(errors.problems, errors.lines_of)
        raise Told(2) from None
    return Configuration(with_server(settings, given), loaded_at=now), None


def _kind_and_url(text: str) -> tuple[str, str]:
    kind, _, url = text.partition("=")
    return kind, url
