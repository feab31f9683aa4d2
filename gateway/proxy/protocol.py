"""An exchange carried by callbacks inside uvicorn: no ASGI cycle and no task per request.

uvicorn takes a protocol class as its ``http``. A connection starts here; requests to the forwarded paths are read,
served and answered by this class alone. The first other request hands the connection, with every byte not yet used,
to uvicorn's own protocol, and so to FastAPI: for good, as uvicorn does with WebSockets.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.server import ServerState

from engines.profile import Operation
from gateway.errors import ApiError
from gateway.proxy import replies
from gateway.proxy.ageing import AgeingConnection, State
from gateway.proxy.downstream import Inbound
from gateway.proxy.exchange import Exchange
from gateway.proxy.guarded import LOOK_EVERY, GuardedProtocol
from gateway.proxy.inbound import read_headers, too_large
from gateway.proxy.paths import FORWARDED
from gateway.proxy.plane import Plane, PlaneSource
from gateway.proxy.refusing import note_refusal
from gateway.wire.http1 import CONTINUE, HEAD_LIMIT, ChunkedBody, Head, HeadMemo, HeadTooLarge, SizedBody, parse_head

OPERATIONS: Final = {b"POST " + path.encode(): operation for path, operation in FORWARDED.items()}
STARTS: Final = tuple(start + end for start in OPERATIONS for end in (b" ", b"?"))
"""How a request for this class begins; Anthropic's clients add a query (``?beta=true``), which nobody needs."""

LONGEST_START: Final = max(map(len, STARTS))
PIPELINE_LIMIT: Final = 64 * 1024
"""Bytes that a client may send ahead while its request is served; then reading pauses."""

_UNREAD: Final = Inbound(Operation.CHAT)
"""Stands for a head that could not be read."""


_HEAD: Final = State.HEAD
_BUSY: Final = State.BUSY
"""The states that every request passes, as plain names: looking a member up costs more than the comparison."""


class GatewayProtocol(AgeingConnection):
    """One client connection, and the `Downstream` of its exchange."""

    __slots__ = (
        "_body",
        "_handover",
        "_head",
        "_inbound",
        "_memo",
        "_read_paused",
        "_source",
    )
    _head: Head
    _inbound: Inbound

    def __init__(
        self,
        source: PlaneSource,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._source = source
        self._handover: Callable[[], GuardedProtocol] = lambda: GuardedProtocol(
            source, config, server_state, app_state, _loop
        )
        super().__init__(server_state)
        self._body: ChunkedBody | SizedBody | None = None
        self._memo: HeadMemo | None = None
        self._read_paused = False

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # a server's transports are Transports
        self.server_state.connections.add(self)  # type: ignore[arg-type]  # its set is of uvicorn's own classes
        self._plane = plane = self._source.plane
        self._since = now = plane.loop.time()
        self._look = now + LOOK_EVERY
        plane.deadlines.put(self, self._look)

    def data_received(self, data: bytes) -> None:
        state = self._state
        if state is _HEAD and self._memo is not None and not (self._buffer or self._write_paused):
            # Most likely a whole request, with a head like the last one's.
            body, plane = self._memo.body(data), self._plane
            if body is not None and plane is self._source.plane and len(body) <= plane.max_body:
                self._serve(body)
                return
        if state is _BUSY or (self._write_paused and state is _HEAD):
            self._hold(data)
            return
        try:
            if self._body is not None:
                self._take_body(self._body, data)
            elif state is _HEAD:
                self._take_head(self._buffer + data if self._buffer else data)
        except ApiError as error:
            self._refuse(error)

    def eof_received(self) -> None:
        """A client that shuts its sending side has left, as for uvicorn: the transport closes."""

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._leave()
        self._state = State.CLOSING
        self._body = None
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.client_gone()

    def pause_writing(self) -> None:
        self._write_paused = True
        if self.exchange is not None:
            self.exchange.client_paused()

    def resume_writing(self) -> None:
        self._write_paused = False
        if self.exchange is not None:
            self.exchange.client_resumed()
        elif self._state is State.HEAD:
            self._await_request()

    # ---- uvicorn

    def shutdown(self) -> None:
        """uvicorn is about to stop: now if idle, else after the answer.

        A request that is on its way is waited for, until the second call: so nobody who has just connected is reset.
        """
        told_before, self._keep_alive = not self._keep_alive, False
        if self._state is State.HEAD and (told_before or (hasattr(self, "_head") and not self._buffer)):
            self._close()

    def interrupt(self) -> None:
        """The server waits no longer for this connection's answer."""
        self._keep_alive = False
        if self.exchange is not None:
            self.exchange.interrupt()
        elif self._state is not State.CLOSING:
            self._close()

    def _leave(self) -> None:
        self.server_state.connections.discard(self)
        self._plane.deadlines.drop(self)

    def _close(self) -> None:
        self._state = State.CLOSING
        self._since = self._plane.loop.time()
        self.transport.close()

    def _part(self) -> None:
        """Ends the connection after an answer.

        A client that is still sending would lose the answer to a reset, so after a refusal its bytes are read, and
        thrown away, for a moment.
        """
        if self._linger and self.transport.can_write_eof():
            self._state = State.CLOSING
            self._since = self._plane.loop.time()
            self.transport.write_eof()
        else:
            self._close()

    def _hand_over(self, data: bytes) -> None:
        self._leave()
        self._state = State.CLOSING
        self._buffer = b""
        protocol = self._handover()
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        protocol.data_received(data)
        if not self._keep_alive:
            protocol.shutdown()

    # ---- reading requests

    def _hold(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > PIPELINE_LIMIT and not self._read_paused:
            self._read_paused = True
            self.transport.pause_reading()

    def _take_head(self, data: bytes) -> None:
        plane = self._source.plane
        if self._memo is not None and plane is self._plane and (like := self._memo.like(data)) is not None:
            start, length = like
            self._take_body_after(start, data, plane, length)
            return
        if not data.startswith(STARTS):
            if len(data) < LONGEST_START and any(start.startswith(data) for start in STARTS):
                self._wait_for_head(data)
            else:
                self._hand_over(data)
            return
        end = data.find(b"\r\n\r\n", 0, HEAD_LIMIT)
        if end < 0:
            if len(data) >= HEAD_LIMIT:
                raise HeadTooLarge(f"The request's headers are larger than {HEAD_LIMIT} bytes.", code=None)
            self._wait_for_head(data)
            return
        self._take_body_after(end + 4, data, plane, self._read_head(data[:end], plane))

    def _take_body_after(self, start: int, data: bytes, plane: Plane, length: int | None) -> None:
        """Goes on after a head, with or without its body, which begins at ``start``."""
        self._buffer = b""
        rest = data[start:]
        if len(rest) == length and length <= plane.max_body:
            self._serve(rest)
        else:
            self._begin_body(plane, length, rest)

    def _read_head(self, block: bytes, plane: Plane) -> int | None:
        """Reads a head that is not like the one before; returns the length of the body, None if it is chunked."""
        self._memo = None
        self._plane = plane
        self._head = head = parse_head(block)
        self.http11 = head.http11
        self._keep_alive = self._keep_alive and head.keep_alive
        self._inbound = read_headers(plane, OPERATIONS[b"POST " + head.target.partition(b"?")[0]], head.headers)
        self._memo = HeadMemo.of(block, head)
        return None if head.chunked else head.length or 0

    def _wait_for_head(self, data: bytes) -> None:
        if not self._buffer:
            self._since = self._plane.loop.time()
        self._buffer = data

    def _begin_body(self, plane: Plane, length: int | None, rest: bytes) -> None:
        self._state = State.BODY
        if plane.guard is not None:
            plane.guard.let_in(self._inbound.caller)  # nobody's body is kept
        if length is not None and length > plane.max_body:
            raise too_large(plane.max_body)
        self._since, self._seen = plane.loop.time(), 0
        self._body = ChunkedBody() if length is None else SizedBody(length)
        if self._head.expects_continue and not rest:
            self.transport.write(CONTINUE)
        self._take_body(self._body, rest)

    def _take_body(self, body: ChunkedBody | SizedBody, data: bytes) -> None:
        self._seen += len(data)
        rest = body.feed(data)
        limit = self._plane.max_body
        if body.size > limit:
            raise too_large(limit)
        if rest is not None:
            self._body = None
            self._buffer = rest
            self._serve(body.body())

    def _serve(self, body: bytes) -> None:
        self._state = _BUSY
        self.exchange = exchange = Exchange(self._plane, self, self._inbound, body)
        exchange.begin()
        if self._write_paused and self.exchange is exchange:
            exchange.client_paused()

    def _refuse(self, error: ApiError) -> None:
        """Answers what is not a request that can be served; the connection cannot be used further."""
        inbound = self._inbound if self._state is State.BODY else _UNREAD
        self._keep_alive = False
        self._body = None
        self._linger = True
        request_id = inbound.request_id or self._plane.ids()
        note_refusal(self._plane, inbound, request_id, error)
        headers = replies.refusal(error, inbound.operation, request_id, inbound.echo)
        self.respond(error.status, headers, replies.error_body(error, inbound.operation, request_id))

    def answered(self) -> None:
        """The next request may be read (`AnswerWriter`)."""
        self.exchange = None
        if not self._keep_alive:
            self._part()
            return
        self._state = _HEAD
        self._since = self._plane.loop.time()
        if (self._buffer or self._read_paused) and not self._write_paused:
            self._await_request()  # a client that reads no answers gets no more of them

    def _await_request(self) -> None:
        if self._read_paused:
            self._read_paused = False
            self.transport.resume_reading()
        if self._buffer:
            # Not from inside the exchange's own call: a long pipeline must not become a deep stack.
            self._plane.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        data, self._buffer = self._buffer, b""
        if data and self._state is State.HEAD:
            self.data_received(data)

    def abort(self) -> None:
        """Closes after what was written (`Downstream`), at once if the client does not read."""
        self.exchange = None
        if self._write_paused:
            self._state = State.CLOSING
            self.transport.abort()
        else:
            self._close()
