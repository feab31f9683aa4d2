"""One connection to an engine: HTTP/1.1 over an asyncio transport, httptools reads the answers.

It carries one call at a time.
"""

import asyncio
from typing import Final, Protocol

import httptools

from gateway.wire.http1 import HeadMemo

JOINED: Final = 64 * 1024
"""Bytes of a body below which copying it behind its head costs less than a second buffer on its way to the kernel."""

FULL_READ: Final = 256_000
"""Bytes that uvloop reads at once at most. After as many there are more, and it would go on, 32 times, before anybody
else has a turn: for half a second, if each of the events in them must be read.
"""


class Listener(Protocol):
    """Who waits for an answer."""

    def on_connected(self, connection: "Connection") -> None:
        """A new connection is there; nothing has been sent on it."""

    def on_refused(self, error: OSError) -> None:
        """No connection could be made; TimeoutError when it took too long."""

    def on_answer(self, connection: "Connection", data: bytes, *, complete: bool) -> None:
        """The head is known (``connection.status`` …) and ``data`` is the next part of the body, b"" at times."""

    def on_lost(self, connection: "Connection", error: Exception | None) -> None:
        """The connection ended or broke before the answer was complete."""


class Home(Protocol):
    """Where a connection belongs (`upstream.ConnectionPool`)."""

    def opened(self, connection: "Connection") -> None:
        """It is there."""

    def keep(self, connection: "Connection") -> None:
        """It waits for the next call."""

    def closed(self, connection: "Connection") -> None:
        """It is no more."""


class Connection(asyncio.Protocol):
    """One connection. The answer's head is in ``status``, ``content_type``, ``encoding``, ``retry_after``."""

    __slots__ = (
        "_breathing",
        "_complete",
        "_head_read",
        "_keep",
        "_length_known",
        "_memo",
        "_memo_type",
        "_parser",
        "_parts",
        "_paused",
        "answered",
        "content_type",
        "encoding",
        "idle_since",
        "listener",
        "pool",
        "retry_after",
        "reused",
        "status",
        "transport",
    )
    transport: asyncio.Transport

    def __init__(self, pool: Home) -> None:
        self.pool = pool
        self.listener: Listener | None = None
        self.reused = False
        self.idle_since = 0.0
        self._parser = httptools.HttpResponseParser(self)
        self._paused = False
        self._breathing = False
        self._memo: HeadMemo | None = None
        self._memo_type = b""
        self._parts: list[bytes] = []
        self._head_read = False
        self._length_known = False
        self._complete = False
        self.answered = False
        self._reset()

    def _reset(self) -> None:
        self.status = 0
        self.content_type = b""
        self.encoding = b""
        self.retry_after = b""
        self._head_read = False
        self._length_known = False
        self._complete = False
        self._keep = False
        self._parts.clear()

    def send(self, listener: Listener, head: bytes, body: bytes) -> None:
        """Sends a request; the answer goes to ``listener``."""
        self.listener = listener
        self.answered = self._head_read = False
        if len(body) < JOINED:
            self.transport.write(head + body)
        else:
            self.transport.write(head)
            self.transport.write(body)

    def pause(self) -> None:
        """Stops reading, until `resume`: the client does not keep up. After the answer there is nothing to stop."""
        if not self._paused and self.listener is not None:
            self._paused = True
            if not self._breathing:
                self.transport.pause_reading()

    def resume(self) -> None:
        """Reads again."""
        if self._paused:
            self._paused = False
            if not self._breathing:
                self.transport.resume_reading()

    def _breathe(self) -> None:
        """Lets everybody else have a turn before it reads on."""
        if not self._breathing and not self._paused:
            self._breathing = True
            self.transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._read_on)

    def _read_on(self) -> None:
        self._breathing = False
        if not self._paused and not self.transport.is_closing():
            self.transport.resume_reading()

    def abandon(self) -> None:
        """Ends the call: the listener hears nothing more, and the engine sees the connection close."""
        self.listener = None
        self.transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # create_connection gives a Transport
        self.pool.opened(self)

    def data_received(self, data: bytes) -> None:
        listener = self.listener
        if listener is None:
            self.transport.abort()
            return
        if len(data) >= FULL_READ:
            self._breathe()
        first, self.answered = not self.answered, True
        if first:
            whole = None if self._memo is None else self._memo.body(data)
            if whole is not None:
                # A whole answer with a head like the last one's: the parser is spared.
                self.status = 200
                self.content_type = self._memo_type
                self.encoding = self.retry_after = b""
                self._keep = True
                self._finish(listener, whole)
                return
            self._reset()
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self._complete:
                self.listener = None
                self.transport.abort()
                listener.on_lost(self, error)
                return
            self._keep = False  # bytes after the answer: the answer stands, the connection does not
        if not self._head_read:
            return
        parts = self._parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        if self._complete:
            if first and self._keep:
                self._remember(data)
            self._finish(listener, body)
        elif body:
            parts.clear()
            listener.on_answer(self, body, complete=False)

    def _remember(self, data: bytes) -> None:
        plain = self.status == 200 and not self.encoding and not self.retry_after
        self._memo = HeadMemo.around_length(data[: data.find(b"\r\n\r\n")]) if plain else None
        self._memo_type = self.content_type

    def _finish(self, listener: Listener, body: bytes) -> None:
        self.listener = None
        if self._paused:
            self.resume()
        if self._keep and not self.transport.is_closing():
            self.pool.keep(self)
        else:
            self.transport.abort()
        listener.on_answer(self, body, complete=True)

    def connection_lost(self, exc: Exception | None) -> None:
        self.pool.closed(self)
        listener, self.listener = self.listener, None
        if listener is None:
            return
        if exc is None and self._head_read and not self._length_known:
            listener.on_answer(self, b"", complete=True)  # a body that ends with the connection (HTTP/1.0 style)
        else:
            listener.on_lost(self, exc)

    # httptools

    def on_message_begin(self) -> None:
        if self._complete:
            raise ValueError("bytes after the answer")  # the parser stops here; what it has found stays

    def on_header(self, name: bytes, value: bytes) -> None:
        length = len(name)
        if length == 12 and name.lower() == b"content-type":
            self.content_type = value
        elif length == 14 and name.lower() == b"content-length":
            self._length_known = True
        elif length == 17 and name.lower() == b"transfer-encoding":
            self._length_known = value.lower().endswith(b"chunked")
        elif length == 11 and name.lower() == b"retry-after":
            self.retry_after = value
        elif length == 16 and name.lower() == b"content-encoding" and value.lower() != b"identity":
            self.encoding = value.lower()

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._head_read = self.status >= 200

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        if self.status < 200:  # 100 Continue and its kind: the answer is still to come
            self._reset()
            return
        self._complete = True
        self._keep = self._parser.should_keep_alive()  # httptools knows this only inside this callback
