"""An HTTP client on plain sockets that sees what libraries hide: framing, the kind of close, every byte."""

import asyncio
import json
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tests.support.json_type import Json
from tests.support.waiting import within


@dataclass(slots=True, eq=False)
class Answer:
    """One answer. ``whole`` is false when the connection ended before the body did."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""
    whole: bool = False

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    def header(self, name: str) -> str | None:
        found = self.all(name)
        assert len(found) <= 1, f"{name} is there {len(found)} times: {found}"
        return found[0] if found else None

    @property
    def json(self) -> Json:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Json]:
        """The error object, after a check of its shape (CONTRACT §4)."""
        return error_in(self.json)

    @property
    def events(self) -> list[bytes]:
        """The data of the events of a stream, which must be framed as ``data: …`` LF LF and nothing else."""
        return events_of(self.body)


def error_in(document: Json) -> dict[str, Json]:
    assert list(document) == ["error"], document
    error = document["error"]
    assert set(error) == {"message", "type", "param", "code"}, error
    assert isinstance(error["message"], str)
    assert error["message"]
    assert error["type"] in {
        "invalid_request_error",
        "authentication_error",
        "permission_error",
        "not_found_error",
        "rate_limit_error",
        "server_error",
    }
    assert isinstance(error, dict)
    return error


def events_of(body: bytes) -> list[bytes]:
    assert body == b"" or body.endswith(b"\n\n"), body[-200:]
    events = body.split(b"\n\n")[:-1]
    for event in events:
        assert event.startswith(b"data: "), event
        assert b"\n" not in event, event
    return [event.removeprefix(b"data: ") for event in events]


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, port: int, *, host: str = "127.0.0.1", limit: int = 2**16, receive: int | None = None) -> Self:
        """``receive`` makes the kernel's receive buffer small, for a client that does not read."""
        sock = socket.socket()
        if receive is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, (host, port))
        return cls(*await asyncio.open_connection(sock=sock, limit=limit))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.writer.transport.abort()

    # ---- sending

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()

    async def post(
        self,
        path: str,
        body: bytes | dict[str, Json],
        headers: Iterable[tuple[str, str]] = (),
        *,
        chunked: bool = False,
    ) -> None:
        await self.send(post(path, body, headers, chunked=chunked))

    def leave(self) -> None:
        """Closes with FIN."""
        self.writer.close()

    def reset(self) -> None:
        """Closes with RST."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    # ---- reading

    def stop_reading(self) -> None:
        """Leaves everything in the kernel's buffers."""
        self._transport.pause_reading()

    def go_on_reading(self) -> None:
        self._transport.resume_reading()

    @property
    def _transport(self) -> asyncio.Transport:
        return self.writer.transport  # type: ignore[return-value]  # a connection's is one for both ways

    async def line(self) -> bytes:
        """One line, with its end."""
        return await within(self.reader.readline(), what="a line")

    async def head(self) -> Answer:
        """The head of the next answer, interim answers (1xx) left out."""
        while True:
            raw = await within(self.reader.readuntil(b"\r\n\r\n"), what="the head of an answer")
            first, *lines = raw[:-4].decode("latin-1").split("\r\n")
            version, status, *_ = first.split(" ")
            assert version == "HTTP/1.1", first
            pairs = [line.partition(":") for line in lines]
            if not status.startswith("1"):
                return Answer(int(status), [(name.lower(), value.strip()) for name, _, value in pairs])

    async def chunk(self) -> bytes:
        """The next chunk of a body; b"" is the end.

        Raises:
            IncompleteReadError, ConnectionError: the connection ended first.
        """
        line = await within(self.reader.readuntil(b"\r\n"), what="a chunk")
        size = int(line, 16)
        return (await within(self.reader.readexactly(size + 2), what="a chunk's bytes"))[:-2]

    async def body(self, answer: Answer) -> Answer:
        """Reads the answer's body to its end, or to the end of the connection."""
        length = answer.header("content-length")
        coding = answer.header("transfer-encoding")
        assert length is None or coding is None, "both framings at once"
        parts = [answer.body]
        try:
            if coding == "chunked":
                while part := await self.chunk():
                    parts.append(part)
            else:
                assert length is not None, "a body without any framing"
                parts.append(await within(self.reader.readexactly(int(length)), what="a body"))
            answer.whole = True
        except asyncio.IncompleteReadError as cut:
            if coding != "chunked":
                parts.append(cut.partial)
        except ConnectionError:
            pass
        answer.body = b"".join(parts)
        return answer

    async def answer(self) -> Answer:
        return await self.body(await self.head())

    async def closed(self) -> bool:
        """Whether the peer closes now without another byte."""
        try:
            return await within(self.reader.read(1), what="the end of the connection") == b""
        except ConnectionError:
            return True


def post(
    path: str, body: bytes | dict[str, Json], headers: Iterable[tuple[str, str]] = (), *, chunked: bool = False
) -> bytes:
    """A request's bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "host: gateway.test", "content-type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers]
    if chunked:
        lines.append("transfer-encoding: chunked")
        data = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (data[:7], data[7:]) if part) + b"0\r\n\r\n"
    else:
        lines.append(f"content-length: {len(data)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + data
