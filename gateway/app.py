"""The composition root: builds every object of a running gateway, and the ASGI application around them.

The lifespan owns everything that lives as long as the process: the one group of background tasks, the meters, the
wheel of deadlines, and the plane in force.
"""

import asyncio
import contextlib
import math
import os
import time
from collections.abc import AsyncIterator

import structlog
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engines.profile import Operation
from gateway.api.application import build_api
from gateway.api.errors import internal_error
from gateway.api.view import AskAll
from gateway.background.discovery import Discovery
from gateway.background.fetch import Fetch
from gateway.background.prober import Prober
from gateway.background.resolver import Resolver
from gateway.background.shared.store import SharedAccounts
from gateway.balance.drains import DrainOrder, StandingOrders
from gateway.balance.endpoint import StateChange
from gateway.balance.engine import SERVING
from gateway.errors import ApiError
from gateway.logs import access_log
from gateway.metrics import Meters
from gateway.proxy.asgi import carry
from gateway.proxy.building import build_plane
from gateway.proxy.deadlines import Deadlines
from gateway.proxy.paths import FORWARDED
from gateway.proxy.plane import Ids, Plane
from gateway.proxy.reactions import Reactions
from gateway.proxy.verdicts import going_away
from gateway.settings.tree import Settings
from gateway.wire.headers import REQUEST_ID, clean_request_id
from gateway.wire.sse import with_data

_log = structlog.get_logger()


class Gateway:
    """A running gateway. `plane`, `deadlines` and `ids` exist from the start of the lifespan on."""

    plane: Plane
    deadlines: Deadlines
    ids: Ids
    shared: SharedAccounts

    def __init__(self, settings: Settings, *, config_hash: str = "") -> None:
        self.settings = settings
        self.meters = Meters()
        self.meters.config_hash = config_hash
        self.started = False
        self.standing = StandingOrders()
        self.ask_all: AskAll | None = None
        self.api = build_api(self, self._lifespan, settings.server.cors_origins)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _app: FastAPI) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        self.deadlines = Deadlines(loop)
        self.ids = Ids()
        self.shared = SharedAccounts(self.meters, lambda: "", lambda _: None)
        self.plane = self._build(self.settings)
        self.started = True
        fetch = Fetch()
        await self.shared.look()
        try:
            async with asyncio.TaskGroup() as group:
                tasks = []
                resolver = Resolver(lambda: self.plane)
                await resolver.look()
                tasks.append(group.create_task(resolver.run()))
                if self.settings.discovers_models:
                    discovery = Discovery(self.settings, lambda: self.plane, self.apply, fetch)
                    await discovery.first_look()
                    tasks.append(group.create_task(discovery.run()))
                tasks.append(group.create_task(Prober(lambda: self.plane, fetch).run()))
                tasks.append(group.create_task(self.shared.run()))
                yield
                for task in tasks:
                    task.cancel()
        finally:
            await fetch.close()
            self.plane.close()

    def apply(self, settings: Settings) -> None:
        """Puts new settings in force. Exchanges that have begun end on the plane they began with."""
        old, self.plane = self.plane, self._build(settings, self.plane)
        old.close(self.plane)

    @property
    def trouble(self) -> str:
        """What is wrong with the counts that are shared with others; "" if nothing is."""
        return self.shared.trouble

    def heed(self, order: DrainOrder) -> None:
        """Drains or undrains in this process, now and whenever the configuration changes."""
        self.standing.note(order)
        if self.started:
            _heed(self.plane, order)

    def _build(self, settings: Settings, old: Plane | None = None) -> Plane:
        loop = asyncio.get_running_loop()
        plane = build_plane(
            settings,
            loop,
            self.meters,
            deadlines=self.deadlines,
            ids=self.ids,
            notice=Reactions(loop, self.deadlines, self.meters, log_change),
            observe=access_log() if settings.server.access_log else None,
            old=old,
            now=int(time.time()),
        )
        for order in self.standing:
            _heed(plane, order)
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
    return Application(Gateway(settings, config_hash=config_hash))
