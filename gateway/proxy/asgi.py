"""An exchange carried by any ASGI server.

One coroutine per request: it reads the body, lets the exchange work by callbacks, and sends what the exchange has put
into the outbox. The client's leaving is watched from the moment the request is forwarded, in both modes; the watcher
costs a task, so it is made only for requests that are still open after `WATCH_AFTER`.

Where the server is the gateway's own (`cycle`), and no middleware stands between, answers are written by calls, without
waking the coroutine, while the client keeps up; and the client's leaving is told by a call.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from math import inf
from typing import Final

from starlette.types import Message, Receive, Scope, Send

from engines.profile import Operation
from gateway.errors import ApiError
from gateway.proxy import replies
from gateway.proxy.cycle import BODY, START, Cycle
from gateway.proxy.downstream import Carrier
from gateway.proxy.exchange import Exchange
from gateway.proxy.inbound import read_headers, too_large
from gateway.proxy.plane import Plane
from gateway.proxy.refusing import note_refusal

WATCH_AFTER: Final = 0.2
"""Seconds; well within the second in which a client's leaving must reach the engine."""

OUTBOX_LIMIT: Final = 256 * 1024
"""Bytes that may wait for the server before the engine is asked to slow down."""


class ClientLeft(Exception):
    """The client closed its connection before its request was whole."""


async def carry(plane: Plane, operation: Operation, scope: Scope, receive: Receive, send: Send) -> None:
    """Serves one request to a forwarded path."""
    carrier = AsgiCarrier(plane, send)
    inbound = read_headers(plane, operation, scope["headers"])
    try:
        if plane.guard is not None:
            plane.guard.let_in(inbound.caller)  # nobody's body is kept
        body = carrier.whole_body()
        if body is None:
            body = await read_body(plane, scope, receive)
    except ClientLeft:
        return
    except ApiError as error:
        request_id = inbound.request_id or plane.ids()
        note_refusal(plane, inbound, request_id, error)
        headers = replies.refusal(error, operation, request_id, inbound.echo)
        carrier.respond(error.status, headers, replies.error_body(error, operation, request_id))
        await carrier.flush()
        return
    await carrier.run(Exchange(plane, carrier, inbound, body), receive)


async def read_body(plane: Plane, scope: Scope, receive: Receive) -> bytes:
    """The whole body. Raises BodyTooLarge as soon as it is known, ClientLeft."""
    limit = plane.settings.server.max_body
    for name, value in scope["headers"]:
        if name == b"content-length" and int(value) > limit:
            raise too_large(limit)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientLeft
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False) and len(body) <= limit:
        return body
    parts = [body]
    size = len(body)
    while message.get("more_body", False):
        if size > limit:
            raise too_large(limit)
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        parts.append(message.get("body", b""))
        size += len(parts[-1])
    if size > limit:
        raise too_large(limit)
    return b"".join(parts)


class AsgiCarrier(Carrier):
    """The `Downstream` of one ASGI request."""

    __slots__ = (
        "_cycle",
        "_ended",
        "_look",
        "_outbox",
        "_paused",
        "_plane",
        "_send",
        "_waiting",
        "_wake",
        "_watch_from",
        "_watched",
        "bucket",
        "exchange",
    )
    exchange: Exchange

    def __init__(self, plane: Plane, send: Send) -> None:
        self._plane = plane
        self._send = send
        owner = getattr(send, "__self__", None)
        self._cycle = owner if isinstance(owner, Cycle) else None
        self._outbox: deque[Message] = deque()
        self._waiting = 0
        self._wake: asyncio.Future[None] | None = None
        self._ended = False
        self._paused = False
        self._look = inf
        self._watch_from = inf
        self._watched = False
        self.bucket = -1

    def whole_body(self) -> bytes | None:
        """The body, if it has come already. Raises BodyTooLarge."""
        body = None if self._cycle is None else self._cycle.whole_body()
        limit = self._plane.settings.server.max_body
        if body is not None and len(body) > limit:
            raise too_large(limit)
        return body

    # Downstream

    def respond(self, status: int, headers: bytes, body: bytes) -> None:
        """A whole answer (`Downstream`)."""
        cycle = self._ready()
        if cycle is not None:
            cycle.respond(status, headers, body)
        else:
            lines = asgi_headers(headers + b"content-length: %d\r\n" % len(body))
            self._outbox.append({"type": START, "status": status, "headers": lines})
            self._outbox.append({"type": BODY, "body": body})
        self._end()

    def start(self, status: int, headers: bytes) -> None:
        """The head of a stream (`Downstream`)."""
        cycle = self._ready()
        if cycle is not None:
            cycle.start(status, headers)
        else:
            self._outbox.append({"type": START, "status": status, "headers": asgi_headers(headers)})

    def write(self, data: bytes) -> None:
        """A part of the body (`Downstream`)."""
        cycle = self._ready()
        if cycle is not None:
            cycle.write(data)
            return
        self._outbox.append({"type": BODY, "body": data, "more_body": True})
        self._rouse()
        self._waiting += len(data)
        if self._waiting > OUTBOX_LIMIT and not self._paused:
            self._paused = True
            self.exchange.client_paused()

    def wake_at(self, deadline: float) -> None:
        """The exchange has a deadline (`Downstream`)."""
        if deadline < self._look:
            self._look = deadline
            self._plane.deadlines.put(self, deadline)

    def finish(self) -> None:
        """The end of the body (`Downstream`)."""
        cycle = self._ready()
        if cycle is not None:
            cycle.finish()
        else:
            self._outbox.append({"type": BODY, "body": b""})
        self._end()

    def abort(self) -> None:
        """No end (`Downstream`): a server closes the connection of an application that returns in the middle."""
        self._end()

    def _ready(self) -> Cycle | None:
        """Where to write now; None if it has to be left to the coroutine, because of the server, or of the client."""
        cycle = self._cycle
        return cycle if cycle is not None and not cycle.flow.write_paused and not self._outbox else None

    def _end(self) -> None:
        """There will be no more messages."""
        self._ended = True
        self._rouse()

    def _rouse(self) -> None:
        wake = self._wake
        if wake is not None and not wake.done():
            wake.set_result(None)

    # The coroutine's side

    async def flush(self) -> None:
        """Sends what is in the outbox."""
        outbox = self._outbox
        while outbox:
            await self._send(outbox[0])
            outbox.popleft()  # not before: as long as anything waits, nothing may overtake it
        self._waiting = 0
        if self._paused:
            self._paused = False
            self.exchange.client_resumed()

    async def run(self, exchange: Exchange, receive: Receive) -> None:
        """Sends until the exchange is over, and tells it when the client leaves."""
        watcher: asyncio.Future[None] | None = None
        loop = self._plane.loop
        self.exchange = exchange
        if self._cycle is not None:
            self._watched = True
            self._cycle.left = self._client_left
        else:
            self._watch_from = loop.time() + WATCH_AFTER
            self.wake_at(self._watch_from)
        try:
            exchange.begin()
            while not self._ended or self._outbox:
                if self._outbox:
                    await self.flush()
                    continue
                self._wake = loop.create_future()
                await self._wake
                if watcher is None and self._watched and self._cycle is None and not self._ended:
                    watcher = asyncio.ensure_future(self._watch(receive))
        finally:
            self._plane.deadlines.drop(self)
            exchange.client_gone()
            if watcher is not None:
                watcher.cancel()
            if self._cycle is not None:
                self._cycle.left = None
            del self.exchange  # they know each other: both would wait for the garbage collector

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._client_left()

    def _client_left(self) -> None:
        self.exchange.client_gone()
        self._end()

    def on_deadline(self, now: float) -> float | None:
        """The request takes long enough to be watched, or a deadline of the exchange has come (`Timed`)."""
        self._look = inf
        if not self._watched and now >= self._watch_from:
            # First things first: a client that has left by now, as it said that it would, is gone and not late.
            self._watched = True
            self._rouse()
            self._look = now
            return now
        due = self.exchange.on_deadline(now)
        for later in (due, None if self._watched else self._watch_from):
            if later is not None and later < self._look:
                self._look = later
        return None if self._look == inf else self._look


def asgi_headers(block: bytes) -> Iterable[tuple[bytes, bytes]]:
    """A block of header lines in ASGI's form."""
    return [(name, value) for name, _, value in (line.partition(b": ") for line in block[:-2].split(b"\r\n"))]
