"""The writing half of a client's connection: HTTP/1.1 framing of answers, by callbacks (`Downstream`)."""

import asyncio
from abc import abstractmethod

from uvicorn.server import ServerState

from gateway.wire.http1 import LAST_CHUNK, OK, status_line


class AnswerWriter(asyncio.Protocol):
    """Frames what an exchange says. Its other half reads requests, and is told when an answer has ended."""

    __slots__ = (
        "_chunked",
        "_date_lines",
        "_date_source",
        "_keep_alive",
        "_opening",
        "_write_paused",
        "http11",
        "server_state",
        "transport",
    )
    transport: asyncio.Transport

    def __init__(self, server_state: ServerState) -> None:
        self.server_state = server_state
        self.http11 = True
        self._keep_alive = True
        self._chunked = True
        self._opening = b""
        self._write_paused = False
        self._date_source: object = None
        self._date_lines = b""

    @abstractmethod
    def answered(self) -> None:
        """The answer is out, whole."""

    @abstractmethod
    def abort(self) -> None:
        """No end (`Downstream`): what was written is sent, then the connection closes."""

    def respond(self, status: int, headers: bytes, body: bytes) -> None:
        """A whole answer (`Downstream`)."""
        first = OK if status == 200 else status_line(status)
        fresh = self.server_state.default_headers is self._date_source and self._keep_alive and self.http11
        last = self._date_lines if fresh else self._last_lines()
        self.transport.write(b"%s%s%scontent-length: %d\r\n\r\n%s" % (first, headers, last, len(body), body))
        self.answered()

    def start(self, status: int, headers: bytes) -> None:
        """The head of a stream (`Downstream`); held until the first bytes of its body."""
        if self.http11:
            self._chunked = True
            framing = b"transfer-encoding: chunked\r\n\r\n"
        else:
            self._chunked = self._keep_alive = False
            framing = b"\r\n"
        self._opening = status_line(status) + headers + self._last_lines() + framing

    def write(self, data: bytes) -> None:
        """A part of the body (`Downstream`)."""
        if self._chunked:
            data = b"%x\r\n%s\r\n" % (len(data), data)
        if self._opening:
            data = self._opening + data
            self._opening = b""
        self.transport.write(data)

    def finish(self) -> None:
        """The end of the body (`Downstream`)."""
        if self._chunked:
            self.transport.write(self._opening + LAST_CHUNK)
            self._opening = b""
        self.answered()

    def _last_lines(self) -> bytes:
        source = self.server_state.default_headers
        if source is not self._date_source:
            self._date_source = source
            self._date_lines = b"".join(b"%s: %s\r\n" % line for line in source)
        if not self._keep_alive:
            return self._date_lines + b"connection: close\r\n"
        if not self.http11:
            return self._date_lines + b"connection: keep-alive\r\n"
        return self._date_lines
