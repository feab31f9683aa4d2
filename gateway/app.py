"""The composition root: builds every object of a running gateway, and the ASGI application around them.

The lifespan owns everything that lives as long as the process: the one group of background tasks, the meters, the
wheel of deadlines, and the plane in force.
"""

import asyncio
import contextlib
import importlib
import math
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import structlog
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engines.profile import Operation
from gateway import logs
from gateway.api.application import build_api
from gateway.api.errors import internal_error
from gateway.api.view import AskAll, ConfigState
from gateway.background.discovery import Discovery
from gateway.background.fetch import Fetch
from gateway.background.prober import Prober
from gateway.background.reloader import Reloader
from gateway.background.resolver import Resolver
from gateway.background.shared.load import hear, tell
from gateway.background.shared.store import SharedAccounts
from gateway.balance.drains import DrainOrder, StandingOrders
from gateway.balance.endpoint import StateChange
from gateway.balance.engine import SERVING
from gateway.errors import ApiError
from gateway.metrics import Meters
from gateway.proxy.asgi import carry
from gateway.proxy.building import build_plane
from gateway.proxy.deadlines import Deadlines
from gateway.proxy.links import Addresses, addresses_of
from gateway.proxy.paths import FORWARDED
from gateway.proxy.plane import Ids, Plane
from gateway.proxy.reactions import Reactions
from gateway.proxy.verdicts import going_away
from gateway.settings.source import ConfigFile, Configuration, held
from gateway.settings.tree import Settings
from gateway.usage import UsageRow
from gateway.wire.headers import REQUEST_ID, clean_request_id
from gateway.wire.sse import with_data

_log = structlog.get_logger()


FAULTS: Final = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)
"""What a configuration that was accepted could still lead to, by a fault of ours. The one before has to stay then."""


class Gateway:
    """A running gateway. `plane`, `deadlines` and `ids` exist from the start of the lifespan on.

    `configured` is what was put in force last, `settings` what that says; with engines whose models are discovered, the
    plane's settings have more.
    """

    plane: Plane
    deadlines: Deadlines
    ids: Ids
    journal: logs.Journal
    shared: SharedAccounts

    def __init__(self, configured: Configuration, file: ConfigFile | None = None) -> None:
        self.configured = configured
        self.config = ConfigState(configured.hash, configured.source, configured.loaded_at)
        self.meters = Meters()
        self._count_config()
        self.started = False
        self.standing = StandingOrders()
        self.ask_all: AskAll | None = None
        self.reread: Callable[[], Awaitable[None]] | None = None
        self.reload_soon: Callable[[], None] | None = None
        self.api = build_api(self, self._lifespan)
        self._file = file
        self._server = configured.settings.server
        self._changing = asyncio.Lock()

    @property
    def settings(self) -> Settings:
        """What is configured."""
        return self.configured.settings

    @contextlib.asynccontextmanager
    async def _lifespan(self, _app: FastAPI) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        self.deadlines = Deadlines(loop)
        self.ids = Ids()
        self.journal = logs.Journal(loop.call_later, random.random, self.settings.logged_requests)
        self.shared = SharedAccounts(self.meters, self._own_load, self._hear_load)
        fetch = Fetch()
        self._resolver = Resolver(lambda: self.plane)
        self._discovery = Discovery(lambda: self.settings, lambda: self.plane, self.apply, fetch)
        try:
            async with asyncio.TaskGroup() as group:
                async with self._changing:
                    self.plane = self._build(self.settings)
                    self.started = True
                    await self.shared.look()
                    await self._resolver.look()
                    if self.settings.discovers_models:
                        await self._discover()
                running = [self._resolver.run(), self._discovery.run(), Prober(lambda: self.plane, fetch).run()]
                running.append(self.shared.run())
                if self._file is not None:
                    reloader = Reloader(self._file, self.take, lambda: self.settings)
                    self.reread, self.reload_soon = reloader.read, reloader.wake
                    running.append(reloader.run())
                tasks = [group.create_task(one) for one in running]
                yield
                for task in tasks:
                    task.cancel()
        finally:
            await fetch.close()
            self.plane.close()
            self.journal.flush()

    async def _discover(self) -> None:
        """The first look for models."""
        found = await self._discovery.ahead(self.settings, addresses_of(self.plane.engines.values()))
        self.apply(found)
        _log.info("models discovered", models=", ".join(found.models))

    async def take(self, found: Configuration | str) -> None:
        """Puts a configuration in force, or notes why there is none to be put; of what cannot be, it notes that.

        Names are resolved and models discovered first, as at a start, so that it lacks nothing when it begins to serve.
        """
        async with self._changing:
            if isinstance(found, str):
                self.config = replace(self.config, error=found)
            else:
                try:
                    await self._follow(found)
                except FAULTS as fault:
                    _log.exception("a configuration cannot be put in force; this is a fault of the gateway")
                    error = f"The gateway failed to put it in force ({type(fault).__name__}); the log has more."
                    self.config = replace(self.config, error=error)
            self._count_config()

    async def _follow(self, found: Configuration) -> None:
        wanted, waiting = held(found, self._server)
        if self.started and wanted.settings != self.settings:
            addresses = await self._resolver.ahead(wanted.settings)
            known = {**addresses, **addresses_of(self.plane.engines.values())}
            found_models = await self._discovery.ahead(wanted.settings, known)
            await self.shared.ahead(wanted.settings.state)
            self.apply(found_models, addresses)
            await self.shared.leave()
        if waiting != self.config.waiting and waiting:
            _log.warning("some of the configuration needs a restart", keys=list(waiting))
        if wanted.settings.logs.level != self.settings.logs.level:
            logs.set_level(wanted.settings.logs.level)
        self.configured = wanted
        self.config = ConfigState(found.hash, found.source, found.loaded_at, waiting=waiting)

    def _count_config(self) -> None:
        """Lets the metrics know."""
        self.meters.config_hash = self.config.hash
        self.meters.config_loaded_at = self.config.loaded_at
        self.meters.config_refused = bool(self.config.error)

    def begin_with(self, configured: Configuration, error: str, drains: StandingOrders) -> None:
        """Before the start: what has come to hold since this object was made."""
        self.standing = drains
        self.configured, waiting = held(configured, self._server)
        self.config = ConfigState(configured.hash, configured.source, configured.loaded_at, error, waiting)
        self._count_config()

    def apply(self, settings: Settings, addresses: Addresses = MappingProxyType({})) -> None:
        """Puts new settings in force. Exchanges that have begun end on the plane they began with.

        ``addresses`` is what new names stand for.
        """
        old, self.plane = self.plane, self._build(settings, self.plane, addresses)
        self.journal.which = settings.logged_requests
        old.close(self.plane)

    def _own_load(self) -> str:
        return tell({name: link.engine for name, link in self.plane.engines.items()})

    def _hear_load(self, told: Sequence[str]) -> None:
        hear({name: link.engine for name, link in self.plane.engines.items()}, told, asyncio.get_running_loop().time())

    async def shared_usage(self, since: str, until: str) -> list[UsageRow] | None:
        """The usage that all gateways have, None where Redis does not keep it (`api.view.View`)."""
        return await self.shared.usage(since, until)

    async def plan(self, new: Settings, *, probe: bool) -> dict[str, Any]:
        """What would become of the models if this took the place of what is in force (`api.view.View`)."""
        planning = await asyncio.to_thread(importlib.import_module, "gateway.background.planning")
        found: dict[str, Any] = await planning.tree_of_plan(self.plane, new, probe=probe)
        return found

    @property
    def trouble(self) -> str:
        """What is wrong with the counts that are shared with others; "" if nothing is."""
        return self.shared.trouble

    def heed(self, order: DrainOrder) -> None:
        """Drains or undrains in this process, now and whenever the configuration changes."""
        self.standing.note(order)
        if self.started:
            _heed(self.plane, order)

    def _build(
        self, settings: Settings, old: Plane | None = None, addresses: Addresses = MappingProxyType({})
    ) -> Plane:
        loop = asyncio.get_running_loop()
        plane = build_plane(
            settings,
            loop,
            self.meters,
            deadlines=self.deadlines,
            ids=self.ids,
            notice=Reactions(loop, self.deadlines, self.meters, log_change),
            journal=self.journal,
            old=old,
            addresses=addresses,
            now=int(time.time()),
        )
        for name, link in plane.engines.items():
            link.engine.settle(self.standing.of(name), loop.time())
        self.shared.use(settings.state, None if plane.guard is None else plane.guard.limiter)
        return plane


def _heed(plane: Plane, order: DrainOrder) -> None:
    link = plane.engines.get(order.engine)
    if link is None:
        return
    if order.drained:
        link.engine.drain(link.loop.time(), order.url)
    else:
        link.engine.undrain(link.loop.time(), order.url)


def log_change(change: StateChange) -> None:
    """One line per change of an endpoint's state."""
    write = _log.info if change.new in SERVING else _log.warning
    write(
        f"endpoint is {change.new.value}",
        engine=change.engine,
        endpoint=change.endpoint.url,
        before=change.old.value,
        reason=change.reason,
    )


class Application:
    """The ASGI application: forwarded paths go straight to the data plane, everything else to FastAPI."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, or the lifespan."""
        if scope["type"] != "http":
            await self.gateway.api(scope, receive, send)
            return
        operation = FORWARDED.get(scope["path"])
        if operation is None or scope["method"] != "POST":
            await _answer_named(self.gateway.api, scope, receive, send)
            return
        await self._forward(operation, scope, receive, send)

    async def _forward(self, operation: Operation, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await carry(self.gateway.plane, operation, scope, receive, send)
        except asyncio.CancelledError:
            # The server waits no longer. Whoever still listens is told, and the server then closes the connection.
            await _last_words(scope, send, going_away())
        except Exception:
            await _last_words(scope, send, internal_error())
            raise


async def _last_words(scope: Scope, send: Send, error: ApiError) -> None:
    """Ends an answer, begun or not, with an error; what has begun stays incomplete."""
    headers = [(b"content-type", b"application/json"), (REQUEST_ID, _request_id(scope)), (b"connection", b"close")]
    if error.retry_after is not None:
        headers.append((b"retry-after", b"%d" % math.ceil(error.retry_after)))
    try:
        await send({"type": "http.response.start", "status": error.status, "headers": headers})
    except RuntimeError:
        with contextlib.suppress(RuntimeError):
            await send({"type": "http.response.body", "body": with_data(error.body()), "more_body": True})
    else:
        await send({"type": "http.response.body", "body": error.body()})


def _request_id(scope: Scope) -> bytes:
    """The client's id if it is clean, else a new one."""
    given = next((value for name, value in scope["headers"] if name == REQUEST_ID), None)
    return clean_request_id(given) or os.urandom(12).hex().encode()


async def _answer_named(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Adds to an answer of the control plane the headers that every answer has; the id also names log lines."""
    started = time.perf_counter()
    request_id = _request_id(scope)

    async def send_named(message: Message) -> None:
        if message["type"] == "http.response.start":
            spent = (time.perf_counter() - started) * 1000.0
            headers = [*message.get("headers", ()), (b"openai-processing-ms", b"%d" % spent)]
            if all(name.lower() != REQUEST_ID for name, _ in headers):
                headers.append((REQUEST_ID, request_id))
            message["headers"] = headers
        await send(message)

    with structlog.contextvars.bound_contextvars(request_id=request_id.decode()):
        await app(scope, receive, send_named)


def create_app(settings: Settings, *, config_hash: str = "") -> Application:
    """The ASGI application of a gateway with these settings; it starts and ends with its lifespan."""
    return Application(Gateway(Configuration(settings, config_hash, loaded_at=time.time())))
