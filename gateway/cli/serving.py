"""What `turnout serve` does: reads the configuration, takes the port, and serves until it is told to end."""

import importlib
import os
import signal
import socket
import sys
import time
from dataclasses import replace

import structlog

from gateway import logs
from gateway.app import Application, Gateway
from gateway.background.reloader import log_open
from gateway.background.shared.client import load_clients
from gateway.cli.failing import Told
from gateway.cli.listening import allow_connections, bind
from gateway.cli.plain import ServeOrder
from gateway.cli.server import (
    GatewayServer,
    require_parts,
    server_for,
)
from gateway.proxy.carriers import Carrier
from gateway.settings import ConfigErrors, Settings, load
from gateway.settings.source import ConfigFile, Configuration, with_server

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
    if settings.server.workers == 1:
        return _serve_alone(configured, file, sockets, Carrier(order.carrier))
    code: int = importlib.import_module("gateway.cli.together").serve_together(
        configured, file, sockets, Carrier(order.carrier)
    )
    return code


def _serve_alone(
    configured: Configuration, file: ConfigFile | None, sockets: list[socket.socket], carrier: Carrier
) -> int:
    return run(server_for(Application(Gateway(configured, file)), tell, carrier), sockets)


def run(running: GatewayServer, sockets: list[socket.socket]) -> int:
    """Serves until it is told to end; gives the exit code."""
    running.run(sockets)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end is near; one more Ctrl-C must not spoil the exit code
    return int(running.failed)


def tell(url: str) -> None:
    """Says on standard output that requests are taken; they are, also where that cannot be written."""
    try:
        print(f"turnout: listening on {url}", flush=True)
    except OSError as error:
        _log.warning("standard output cannot be written", reason=error.strerror)


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
        problems = [
            replace(one, variable=f"turnout serve: {one.variable}") if order.engines else one for one in errors.problems
        ]
        importlib.import_module("gateway.cli.report").show_problems(problems, errors.lines_of)
        raise Told(2) from None
    return Configuration(with_server(settings, given), loaded_at=now), None


def _kind_and_url(text: str) -> tuple[str, str]:
    kind, _, url = text.partition("=")
    return kind, url
