"""One request and its answer between uvicorn's protocol and an ASGI application, as uvicorn has it, for less.

The head is held until the first part of the body and leaves with it, as ASGI says a server should do; header lines are
checked all at once; bodies are not copied on the way. An application that knows this class may answer by calls
(`respond`, or `start`, `write` and `finish`) instead of messages, while `flow` is not paused.
"""

import asyncio
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, cast

from starlette.types import Message
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from gateway.wire.http1 import CONTINUE, LAST_CHUNK

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveEvent, ASGISendEvent

START: Final = "http.response.start"
BODY: Final = "http.response.body"

_CLEAN_LINES: Final = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [^\x00-\x08\x0a-\x1f\x7f]*\r\n)*")
"""What header lines may hold (RFC 9110 §5.5, §5.6.2): the same as uvicorn lets pass, and no name without a letter."""

CHUNKED: Final = b"transfer-encoding: chunked\r\n"
_FRAMING: Final = frozenset((b"content-length", b"transfer-encoding", b"connection"))


class Cycle(RequestResponseCycle):
    """One request and its answer.

    ``left`` is called when the client has closed the connection; whoever sets it needs no `receive` to learn of that.
    """

    def __init__(self, served: HttpToolsProtocol, *, keep_alive: bool) -> None:
        super().__init__(
            scope=served.scope,
            transport=served.transport,
            flow=served.flow,
            logger=served.logger,
            access_logger=served.access_logger,
            access_log=False,  # the journal tells of requests
            default_headers=served.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=served.expect_100_continue,
            keep_alive=keep_alive,
            on_response=served.on_response_complete,
        )
        self.parts: list[bytes] = []
        self.held = 0
        self.left: Callable[[], None] | None = None
        self._head = b""

    def take(self, body: bytes) -> None:
        """A part of the request's body has come."""
        self.parts.append(body)
        self.held += len(body)
        self.message_event.set()

    async def receive(self) -> "ASGIReceiveEvent":
        """The next part of the body, all that is there of it; or the client's leaving (ASGI's `receive`)."""
        if self.waiting_for_100_continue and not self.transport.is_closing():
            self.transport.write(CONTINUE)
            self.waiting_for_100_continue = False
        if not self.disconnected and not self.response_complete:
            self.flow.resume_reading()
            if not self.message_event.is_set():
                await self.message_event.wait()
            self.message_event.clear()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": self._taken(), "more_body": self.more_body}

    async def send(self, message: "ASGISendEvent") -> None:
        """The next message of the answer, when the client has room for it (ASGI's `send`)."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        kind = message["type"]
        if self.response_complete:
            raise RuntimeError(f"Unexpected ASGI message '{kind}' sent, after response already completed.")
        expected = BODY if self.response_started else START
        if kind != expected:
            raise RuntimeError(f"Expected ASGI message '{expected}', but got '{kind}'.")
        told = cast("Message", message)
        if kind == START:
            self._start(told["status"], told.get("headers", ()))
        else:
            self._write(told.get("body", b""), more=told.get("more_body", False))

    # ---- the same by calls; header blocks are lines that are known to be clean

    def whole_body(self) -> bytes | None:
        """The request's body, if all of it has come and none was received; like one `receive` then. Else None."""
        if self.more_body or self.disconnected:
            return None
        self.flow.resume_reading()
        self.message_event.clear()
        return self._taken()

    def _taken(self) -> bytes:
        parts, self.parts, self.held = self.parts, [], 0
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def respond(self, status: int, headers: bytes, body: bytes) -> None:
        """A whole answer."""
        if not self.disconnected:
            self._open(status, headers, b"content-length: %d\r\n" % len(body))
            self.transport.write(self._head + body)
            self._complete()

    def start(self, status: int, headers: bytes) -> None:
        """The head of an answer of unknown length."""
        self.chunked_encoding = True
        self._open(status, headers, CHUNKED)

    def write(self, body: bytes) -> None:
        """A part of the body; none is no part, because an empty chunk would be the end."""
        if body and not self.disconnected:
            head, self._head = self._head, b""
            self.transport.write(b"%s%x\r\n%s\r\n" % (head, len(body), body))

    def finish(self) -> None:
        """The end of the body."""
        if not self.disconnected:
            self._write(b"", more=False)

    # ---- framing

    def _open(self, status: int, lines: bytes, framing: bytes) -> None:
        self.response_started = True
        self.waiting_for_100_continue = False
        first = b"".join([b"%s: %s\r\n" % line for line in self.default_headers])
        last = framing if self.keep_alive else framing + b"connection: close\r\n"
        self._head = b"%s%s%s%s\r\n" % (STATUS_LINE[status], first, lines, last)

    def _start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.response_started = True
        lines = []
        for name, value in headers:
            lower = name.lower()
            if lower in _FRAMING:
                self._frame(lower, value)
            if lower != b"connection" or self.keep_alive:
                lines.append(b"%s: %s\r\n" % (lower, value))
        block = b"".join(lines)
        if _CLEAN_LINES.fullmatch(block) is None or block.count(b"\r\n") != len(lines):
            raise RuntimeError("Invalid HTTP header name or value.")
        framing = b""
        if self.chunked_encoding is None and self.scope["method"] != "HEAD" and status not in (204, 304):
            self.chunked_encoding = True
            framing = CHUNKED
        self._open(status, block, framing)

    def _frame(self, name: bytes, value: bytes) -> None:
        """Notes what a header says about framing, and about the connection's end."""
        if name == b"content-length":
            if self.chunked_encoding is None:
                self.expected_content_length = int(value)
                self.chunked_encoding = False
        elif name == b"transfer-encoding":
            if value.lower() == b"chunked":
                self.expected_content_length = 0
                self.chunked_encoding = True
        elif b"close" in (token.strip() for token in value.lower().split(b",")):
            self.keep_alive = False

    def _write(self, body: bytes, *, more: bool) -> None:
        head, self._head = self._head, b""
        if self.scope["method"] == "HEAD":
            self.expected_content_length = 0
            self.transport.write(head)
        elif self.chunked_encoding:
            chunk = b"%s%x\r\n%s\r\n" % (head, len(body), body) if body else head
            self.transport.write(chunk if more else chunk + LAST_CHUNK)
        else:
            if len(body) > self.expected_content_length:
                raise RuntimeError("Response content longer than Content-Length")
            self.expected_content_length -= len(body)
            self.transport.write(head + body)
        if not more:
            self._complete()

    def _complete(self) -> None:
        if self.expected_content_length != 0:
            raise RuntimeError("Response content shorter than Content-Length")
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()
