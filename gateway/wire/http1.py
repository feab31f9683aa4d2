"""HTTP/1.1 requests as bytes (RFC 9112), for the carrier that answers without ASGI.

Strict where a proxy and an engine could disagree about where a request ends (RFC 9112 §11.2): two lengths, a repeated
length, a length beside chunks, folded lines, bare CR or LF, odd chunk sizes: all refused, and the connection closes.
The same goes for HTTP/1.1 without a host, and for two hosts (RFC 9112 §3.2).
"""

import re
from http import HTTPStatus
from typing import Final

from gateway.errors import ApiError, InvalidRequest

HEAD_LIMIT: Final = 64 * 1024
"""Bytes of a request's head; llhttp and uvicorn have about the same."""

_CHUNK_LINE_LIMIT = 256
_TRAILER_LIMIT = 8 * 1024
_TOKEN = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_HEX = frozenset(b"0123456789abcdefABCDEF")
_CONTENT_LENGTH = b"content-length"
_LENGTH_DIGITS = 18
_END = b"\r\n\r\n"
_LENGTH_LINE = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)[ \t]*(?:\r\n|\Z)", re.IGNORECASE)
_TRANSFER_ENCODING = b"transfer-encoding"
_CONNECTION = b"connection"
_EXPECT = b"expect"
_HOST = b"host"


CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
OK: Final = b"HTTP/1.1 200 OK\r\n"
_REASONS: Final = {status.value: status.phrase.encode() for status in HTTPStatus}


class HeadTooLarge(InvalidRequest):
    """More header bytes than `HEAD_LIMIT`."""

    status = 431
    code = "headers_too_large"


def bad_request(what: str) -> ApiError:
    """A request that is not HTTP as the standard has it."""
    return InvalidRequest(f"The request is not valid HTTP: {what}.", code="invalid_http")


class Head:
    """A request's head. ``headers`` has lower-case names; ``length`` is None without a content-length."""

    __slots__ = ("chunked", "expects_continue", "headers", "hosts", "http11", "keep_alive", "length", "target")

    def __init__(self, target: bytes, *, http11: bool) -> None:
        self.target = target
        self.http11 = http11
        self.keep_alive = http11
        self.length: int | None = None
        self.chunked = False
        self.expects_continue = False
        self.hosts = 0
        self.headers: list[tuple[bytes, bytes]] = []


def parse_head(block: bytes) -> Head:
    """Reads a head, given without the empty line that ends it. Raises ApiError for anything not clean."""
    lines = block.split(b"\r\n")
    breaks = len(lines) - 1
    if block.count(b"\n") != breaks or block.count(b"\r") != breaks or b"\0" in block:
        raise bad_request("a stray line end or NUL in the head")
    parts = lines[0].split(b" ")
    if len(parts) != 3 or not parts[1] or parts[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise bad_request("a malformed request line")
    head = Head(parts[1], http11=parts[2] == b"HTTP/1.1")
    add = head.headers.append
    del lines[0]
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not name or name.translate(None, _TOKEN):
            raise bad_request("a malformed header line")
        name = name.lower()
        value = value.strip(b" \t")
        if name in _FRAMING:
            _FRAMING[name](head, value)
        else:
            add((name, value))
    if head.chunked and (head.length is not None or not head.http11):
        raise bad_request("transfer-encoding where it cannot be")
    if head.hosts != 1 and (head.http11 or head.hosts):
        raise bad_request("more than one host" if head.hosts else "no host")
    return head


def _take_host(head: Head, value: bytes) -> None:
    head.hosts += 1
    head.headers.append((_HOST, value))


def _take_length(head: Head, value: bytes) -> None:
    if head.length is not None:
        raise bad_request("more than one content-length")
    if not value.isdigit() or len(value) > _LENGTH_DIGITS:
        raise bad_request("a malformed content-length")
    head.length = int(value)


def _take_encoding(head: Head, value: bytes) -> None:
    if head.chunked or value.lower() != b"chunked":
        raise bad_request("a transfer-encoding other than chunked")
    head.chunked = True


def _take_connection(head: Head, value: bytes) -> None:
    for token in value.lower().split(b","):
        match token.strip():
            case b"close":
                head.keep_alive = False
            case b"keep-alive":
                head.keep_alive = True


def _take_expect(head: Head, value: bytes) -> None:
    head.expects_continue = value.lower() == b"100-continue" and head.http11


_FRAMING: Final = {
    _CONTENT_LENGTH: _take_length,
    _TRANSFER_ENCODING: _take_encoding,
    _CONNECTION: _take_connection,
    _EXPECT: _take_expect,
    _HOST: _take_host,
}
"""Headers that say where the request ends and what becomes of the connection, and the one that must be there."""


class HeadMemo:
    """A head that was found clean, to know its like again.

    A connection's requests come from one client program: most of their heads differ in the content-length alone.
    """

    __slots__ = ("_after", "_before", "_first", "_form", "_last", "_rest", "_size")

    def __init__(self, before: bytes, after: bytes) -> None:
        self._before = before
        self._after = after + _END
        self._form = b"%s%%d%s" % (before.replace(b"%", b"%%"), self._after.replace(b"%", b"%%"))
        self._first = len(before)
        self._last = self._first + _LENGTH_DIGITS + 1
        self._rest = len(self._after)
        self._size = self._first + self._rest + 1

    @classmethod
    def of(cls, block: bytes, head: Head) -> "HeadMemo | None":
        """The memo of a head that `parse_head` has taken; None where the next one cannot be foretold."""
        if head.length is None or not head.keep_alive or head.expects_continue:
            return None
        return cls.around_length(block)

    @classmethod
    def around_length(cls, block: bytes) -> "HeadMemo | None":
        """The memo of a clean head with a content-length, of a request or of an answer."""
        found = _LENGTH_LINE.search(block)
        return None if found is None else cls(block[: found.start(1)], block[found.end(1) :])

    def body(self, data: bytes) -> bytes | None:
        """The body, if ``data`` is one whole message whose head differs from this one in its length alone.

        None means only that it must be looked at. The head is foretold and compared in one piece: that costs a third of
        searching it for its ends. It is foretold with as many digits as the last one `like` this had.
        """
        size = self._size
        length = len(data) - size
        if length >= 0 and data[:size] == self._form % length:
            return data[size:]
        like = self.like(data)
        return data[like[0] :] if like is not None and like[0] + like[1] == len(data) else None

    def like(self, data: bytes) -> tuple[int, int] | None:
        """Where the body begins and its length, if ``data`` opens with a head that differs in nothing else."""
        first = self._first
        stop = data.find(b"\r", first, self._last)
        start = stop + self._rest
        digits = data[first:stop]
        if digits.isdigit() and data[stop:start] == self._after and data[:first] == self._before:
            self._size = start
            return start, int(digits)
        return None


class SizedBody:
    """Collects a body whose length is known. ``size`` is what has been collected so far, in bytes."""

    __slots__ = ("_length", "_parts", "size")

    def __init__(self, length: int) -> None:
        self._length = length
        self._parts: list[bytes] = []
        self.size = 0

    def feed(self, data: bytes) -> bytes | None:
        """Takes bytes; None while the body is not complete, then what follows it."""
        left = self._length - self.size
        rest = None
        if len(data) >= left:
            data, rest = data[:left], data[left:]
        self._parts.append(data)
        self.size += len(data)
        return rest

    def body(self) -> bytes:
        """All of it."""
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


class ChunkedBody:
    """Undoes chunked framing. ``size`` is what has been collected so far, in bytes."""

    __slots__ = ("_buffer", "_left", "_parts", "_trailer", "size")

    def __init__(self) -> None:
        self._buffer = b""
        self._parts: list[bytes] = []
        self._left = -1  # of the current chunk; -1: its size line is awaited
        self._trailer = 0
        self.size = 0

    def feed(self, data: bytes) -> bytes | None:
        """Takes bytes; None while the body is not complete, then what follows it. Raises ApiError when malformed."""
        buffer = self._buffer + data
        at = 0
        while True:
            if self._trailer:
                return self._end(buffer, at)
            if self._left < 0:
                end = buffer.find(b"\r\n", at)
                if end < 0:
                    if len(buffer) - at > _CHUNK_LINE_LIMIT or b"\n" in buffer[at:]:
                        raise bad_request("a malformed chunk size")
                    break
                self._left = _chunk_size(buffer[at:end])
                at = end + 2
                if self._left == 0:
                    self._trailer = 1
                    continue
            piece = buffer[at : at + self._left]
            if piece:
                self._parts.append(piece)
                self.size += len(piece)
                self._left -= len(piece)
                at += len(piece)
            if self._left or len(buffer) - at < 2:
                if self._left == 0 and buffer[at:] not in (b"", b"\r"):
                    raise bad_request("a chunk without its end")
                break
            if buffer[at : at + 2] != b"\r\n":
                raise bad_request("a chunk without its end")
            at += 2
            self._left = -1
        self._buffer = buffer[at:]
        return None

    def body(self) -> bytes:
        """All chunks."""
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    def _end(self, buffer: bytes, at: int) -> bytes | None:
        while (end := buffer.find(b"\r\n", at)) >= 0:
            line = buffer[at:end]
            at = end + 2
            if not line:
                return buffer[at:]
            self._trailer += len(line)
            if b":" not in line or b"\n" in line or b"\r" in line or line[:1] in b" \t":
                raise bad_request("a malformed trailer")
        self._buffer = buffer[at:]
        if self._trailer + len(self._buffer) > _TRAILER_LIMIT:
            raise bad_request("too many trailers")
        return None


def _chunk_size(line: bytes) -> int:
    digits, _, _extension = line.partition(b";")
    digits = digits.rstrip(b" \t")
    if not 0 < len(digits) <= 15 or not _HEX.issuperset(digits) or b"\r" in line or b"\n" in line:
        raise bad_request("a malformed chunk size")
    return int(digits, 16)


def status_line(status: int) -> bytes:
    """The first line of an answer."""
    if status == 200:
        return OK
    return b"HTTP/1.1 %d %s\r\n" % (status, _REASONS.get(status, b"Error"))
