"""An engine whose every byte is chosen by a test: plain sockets, no HTTP library.

A test gives it a *script* per path. A script gets a `Talk`, one request with the power over its connection: it sends
bytes as it likes, waits for events of the test (never for time), ends the connection with FIN or RST, or does nothing.
The engine writes down every call (POST), byte for byte, and when the peer closed. Health checks are answered apart.
"""

import asyncio
import json
import socket
import struct
import zlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from tests.support.json_type import Json
from tests.support.waiting import until, within

Script = Callable[["Talk"], Awaitable[None]]
Headers = Sequence[tuple[bytes, bytes]]


@dataclass(slots=True, eq=False)
class Request:
    """A request as it came: header names as they were spelled, in their order."""

    method: bytes
    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""
    connection: int = 0
    """Which connection of the engine it came on, counted from 1; those of health checks are not counted."""

    def all(self, name: str) -> list[bytes]:
        return [value for key, value in self.headers if key.lower() == name.encode()]

    def header(self, name: str) -> bytes | None:
        found = self.all(name)
        assert len(found) <= 1, f"{name} is there {len(found)} times"
        return found[0] if found else None

    @property
    def names(self) -> list[str]:
        return [name.decode().lower() for name, _ in self.headers]

    @property
    def json(self) -> Json:
        return json.loads(self.body)


def _at_least(count: int) -> Callable[[bytes], int]:
    return lambda buffer: count if len(buffer) >= count else 0


class Line(asyncio.Protocol):
    """One accepted connection."""

    def __init__(self, engine: "ScriptedEngine") -> None:
        self.engine = engine
        self.buffer = b""
        self.number = 0
        self.gone = asyncio.Event()
        self.drained = asyncio.Event()
        self.drained.set()
        self.error: Exception | None = None
        self.served = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]  # uvloop's are not subclasses
        self.engine.lines.append(self)
        self.task = asyncio.ensure_future(self._serve())
        self.arrived = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self.arrived.set()

    def eof_received(self) -> bool:
        self.gone.set()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.error = exc
        self.gone.set()
        self.drained.set()
        self.arrived.set()
        self.engine.lines.remove(self)
        self.engine.closed += 1

    def pause_writing(self) -> None:
        self.drained.clear()

    def resume_writing(self) -> None:
        self.drained.set()

    async def _until(self, have: Callable[[bytes], int]) -> bytes | None:
        """The first bytes, as many as ``have`` finds (0: not there yet); None when the peer has gone."""
        while (count := have(self.buffer)) == 0:
            if self.gone.is_set():
                return None
            self.arrived.clear()
            await self.arrived.wait()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    async def _read_request(self) -> Request | None:
        head = await self._until(lambda buffer: buffer.find(b"\r\n\r\n") + 4 if b"\r\n\r\n" in buffer else 0)
        if head is None:
            return None
        first, *lines = head[:-4].split(b"\r\n")
        method, target, version = first.split(b" ")
        assert version == b"HTTP/1.1", first
        headers = []
        for line in lines:
            name, colon, value = line.partition(b":")
            assert colon, line
            assert name == name.strip(), line
            headers.append((name, value.strip()))
        if method == b"POST" and not self.number:
            self.engine.accepted += 1
            self.number = self.engine.accepted
        request = Request(method, target, headers, connection=self.number)
        length = request.header("content-length")
        coding = request.header("transfer-encoding")
        assert length is None or coding is None, "both framings at once"
        if coding is not None:
            request.body = await self._read_chunks()
        elif length is not None and int(length):
            body = await self._until(_at_least(int(length)))
            if body is None:
                return None
            request.body = body
        return request

    async def _read_chunks(self) -> bytes:
        body = b""
        while True:
            line = await self._until(lambda buffer: buffer.find(b"\r\n") + 2 if b"\r\n" in buffer else 0)
            if line is None:
                return body
            size = int(line[:-2].split(b";")[0], 16)
            part = await self._until(_at_least(size + 2))
            if part is None or size == 0:
                return body
            body += part[:-2]

    async def _serve(self) -> None:
        while (request := await self._read_request()) is not None:
            self.served += 1
            talk = Talk(self, request)
            if request.method == b"POST":
                self.engine.note(talk)
            script = self.engine.script_for(request)
            await script(talk)
            if self.transport.is_closing():
                return


@dataclass(slots=True, eq=False)
class Talk:
    """One request on one connection, with the power to answer it in any way."""

    line: Line
    request: Request
    left: asyncio.Event = field(init=False)
    """Set when the peer has closed (or reset) the connection."""

    def __post_init__(self) -> None:
        self.left = self.line.gone

    async def send(self, *parts: bytes) -> None:
        """Each part in a packet of its own, as far as the loopback device keeps them apart."""
        for part in parts:
            if self.line.transport.is_closing():
                return
            self.line.transport.write(part)
            await asyncio.sleep(0)
            await self.line.drained.wait()

    async def chunk(self, *parts: bytes) -> None:
        """Each part as one chunk of a chunked body."""
        await self.send(*(chunked(part) for part in parts))

    async def end_chunks(self) -> None:
        await self.send(b"0\r\n\r\n")

    async def start_stream(self, *lines: bytes, status: bytes = b"200 OK") -> None:
        """The head of a chunked event stream."""
        await self.send(stream_head(*lines, status=status))

    def fin(self) -> None:
        """Closes properly, after everything sent has gone out."""
        self.line.transport.close()

    def reset(self) -> None:
        """Closes with RST; what has not left the machine is lost."""
        sock = self.line.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.line.transport.abort()

    async def stall(self) -> None:
        """Says nothing more, until the peer leaves."""
        await self.left.wait()


class ScriptedEngine:
    """A server on loopback that answers as its scripts say."""

    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {
            "/health": reply(b""),
            "/v2/health/ready": reply(b""),
            "/v1/models": reply(json.dumps({"object": "list", "data": []}).encode()),
        }
        self.otherwise: Script = reply(b'{"detail":"Not Found"}', status=404)
        self.requests: list[Request] = []
        self.talks: list[Talk] = []
        self.lines: list[Line] = []
        self.accepted = 0
        """Connections that carried a call."""
        self.closed = 0
        self.port = 0
        self._server: asyncio.Server | None = None
        self._tasks: list[asyncio.Future[None]] = []
        self._noted = asyncio.Event()

    async def start(self, port: int = 0, host: str = "127.0.0.1") -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._line, host, port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def _line(self) -> Line:
        return Line(self)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def on(self, path: str, script: Script) -> None:
        """Answers requests to this path with this script from now on."""
        self.scripts[path] = script

    def answer(self, script: Script) -> None:
        """Answers requests to every forwarded path with this script from now on."""
        for path in ("/v1/chat/completions", "/v1/completions", "/v1/embeddings"):
            self.scripts[path] = script

    def script_for(self, request: Request) -> Script:
        return self.scripts.get(request.target.decode(), self.otherwise)

    def note(self, talk: Talk) -> None:
        self.requests.append(talk.request)
        self.talks.append(talk)
        self._noted.set()

    async def request(self, number: int = 1) -> Talk:
        """The talk of the so-manieth request, waited for."""

        async def wait() -> Talk:
            while len(self.talks) < number:
                self._noted.clear()
                await self._noted.wait()
            return self.talks[number - 1]

        return await within(wait(), what=f"request {number} at the engine")

    async def stop(self) -> None:
        """Closes the listening socket and all connections."""
        if self._server is not None:
            self._server.close()
        lines = list(self.lines)
        for line in lines:
            line.task.cancel()
            line.transport.abort()
        await asyncio.gather(*(line.task for line in lines), return_exceptions=True)
        await until(lambda: not self.lines, what="the end of the engine's connections")
        self._server = None

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


# ---- ready-made bytes


def chunked(part: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(part), part)


def stream_head(*lines: bytes, status: bytes = b"200 OK") -> bytes:
    return b"".join(
        (
            b"HTTP/1.1 %s\r\ncontent-type: text/event-stream; charset=utf-8\r\n" % status,
            *(line + b"\r\n" for line in lines),
            b"transfer-encoding: chunked\r\n\r\n",
        )
    )


def whole(
    body: bytes, *, status: int = 200, content_type: bytes = b"application/json", headers: Iterable[bytes] = ()
) -> bytes:
    """An answer with Content-Length."""
    lines = b"".join(line + b"\r\n" for line in headers)
    return b"HTTP/1.1 %d X\r\ncontent-type: %s\r\n%scontent-length: %d\r\n\r\n%s" % (
        status,
        content_type,
        lines,
        len(body),
        body,
    )


def gzipped(*parts: bytes) -> list[bytes]:
    """The parts as one gzip stream with a flush after each."""
    squeeze = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    out = [squeeze.compress(part) + squeeze.flush(zlib.Z_SYNC_FLUSH) for part in parts]
    out[-1] += squeeze.flush()
    return out


# ---- ready-made scripts


def reply(
    body: bytes | dict[str, Json],
    *,
    status: int = 200,
    content_type: bytes = b"application/json",
    headers: Iterable[bytes] = (),
) -> Script:
    """A whole answer."""
    data = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
    sent = whole(data, status=status, content_type=content_type, headers=tuple(headers))

    async def script(talk: Talk) -> None:
        await talk.send(sent)

    return script


def stream(*events: bytes, headers: Sequence[bytes] = ()) -> Script:
    """A chunked event stream, one chunk per event, ended properly."""

    async def script(talk: Talk) -> None:
        await talk.start_stream(*headers)
        await talk.chunk(*events)
        await talk.end_chunks()

    return script


def packets(*parts: bytes, fin: bool = False) -> Script:
    """Exactly these bytes, in these packets."""

    async def script(talk: Talk) -> None:
        await talk.send(*parts)
        if fin:
            talk.fin()

    return script


async def silent(talk: Talk) -> None:
    """Takes the request and never answers."""
    await talk.stall()


async def reset(talk: Talk) -> None:
    """Takes the request and resets the connection."""
    talk.reset()


async def hang_up(talk: Talk) -> None:
    """Takes the request and closes the connection."""
    talk.fin()


def in_turn(*scripts: Script) -> Script:
    """The first script for the first request, and so on; the last one for all further ones."""
    left = list(scripts)

    async def script(talk: Talk) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(talk)

    return script
