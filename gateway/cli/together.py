"""`turnout serve` with several processes: what makes the supervisor, and what each member runs."""

import asyncio
import functools
import socket

import structlog
from uvicorn.config import Config

from gateway.api.obeying import obey
from gateway.api.ops import snapshot
from gateway.app import Application, Gateway
from gateway.cli.failing import Failure
from gateway.cli.listening import BACKLOG, url_of
from gateway.cli.memory import settle_memory
from gateway.cli.server import LAST_WORDS, GatewayServer, config_for
from gateway.cli.serving import run, tell
from gateway.proxy.carriers import Carrier
from gateway.proxy.limiter import is_limited
from gateway.settings.source import ConfigFile, Configuration
from gateway.supervisor.configured import Configured, Standing
from gateway.supervisor.link import Link
from gateway.supervisor.listeners import spread
from gateway.supervisor.supervisor import CannotServe, Plan, Supervisor

_log = structlog.get_logger()


class MemberServer(GatewayServer):
    """One of several servers on a port, with a line to the supervisor. Without the supervisor, it drains and ends."""

    def __init__(self, config: Config, gateway: Gateway, line: socket.socket) -> None:
        super().__init__(config, gateway, lambda _: self._link.ready())
        counts, heed = functools.partial(snapshot, gateway), functools.partial(obey, gateway)
        self._link = Link(line, counts, heed, self._orphaned)
        gateway.meters.ask_all = self._link.ask
        gateway.ask_all = self._link.ask_all

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serves until it is told to end."""
        await self._link.open()
        try:
            async with asyncio.TaskGroup() as group:
                obeying = group.create_task(self._link.obey_all())
                await super().serve(sockets)
                obeying.cancel()
        finally:
            await self._link.close()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Lets the supervisor start another one, and drains."""
        self._link.leaving()
        await super().shutdown(sockets)

    def _orphaned(self) -> None:
        _log.warning("the supervisor is gone")
        self.should_exit = True


def serve_together(
    configured: Configuration, file: ConfigFile | None, sockets: list[socket.socket], carrier: Carrier
) -> int:
    """Several processes; gives the supervisor's exit code, or that of the member that this process has become."""
    application = Application(Gateway(configured))

    def member(listeners: list[socket.socket], line: socket.socket, standing: Standing) -> int:
        application.gateway.begin_with(standing.configuration, standing.error, standing.drains)
        return run(_member_server(application, line, carrier), listeners)

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
        plan = Plan(listeners, member, lambda: tell(url), LAST_WORDS)
        return Supervisor(plan, Configured(configured, file)).run()
    except CannotServe as error:
        raise Failure(str(error)) from None


def _member_server(application: Application, line: socket.socket, carrier: Carrier) -> MemberServer:
    return MemberServer(config_for(application, carrier), application.gateway, line)
