"""A lean HTTP/1.1 client for load: callbacks, httptools, and a time stamp for every read.

General clients cost more per event than the gateway under test, and would be measured in its place.
"""

import asyncio
import itertools
import socket
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Final

import httptools

from loadtests.sample import CUT, ERROR_EVENT, OK, REFUSED, UNFINISHED, Sample

KEEP: Final = 4.0
"""Seconds that an idle connection is used again; engines close theirs after 5."""

_END: Final = b"\n\n"
_ERROR: Final = b'data: {"error":'
_DONE: Final = b"data: [DONE]\n\n"
_SMALL_BUFFER: Final = 4096


class Link(asyncio.Protocol):
    """One connection; carries one request at a time."""

    def __init__(self, client: "Client", address: tuple[str, int], bytes_per_second: int | None = None) -> None:
        self.address = address
        self.idle_since = 0.0
        self.used = False
        self._client = client
        self._slowness = bytes_per_second
        self._sample: Sample | None = None
        self._request = b""
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._carry = b""
        self._tail = b""
        self._streamed = False
        self._answered = False
        self._complete = False
        self._keep = False
        self._at = 0.0
        self.transport: asyncio.Transport

    def send(self, request: bytes, sample: Sample) -> None:
        """Sends a request; `sample` is filled in as the answer arrives."""
        self._sample, self._request = sample, request
        self._carry = self._tail = b""
        self._answered = self._complete = self._streamed = False
        sample.sent = perf_counter()
        self.transport.write(request)

    def give_up(self) -> None:
        """Leaves in the middle of an answer."""
        self._end(UNFINISHED)
        self.transport.abort()

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # create_connection gives a Transport

    def data_received(self, data: bytes) -> None:
        self._at = perf_counter()
        if self._slowness is not None:
            self.transport.pause_reading()
            asyncio.get_running_loop().call_later(len(data) / self._slowness, self._read_on)
        self._answered = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._end(CUT)
            self.transport.abort()
            return
        if self._body:
            self._take(b"".join(self._body))
            self._body.clear()
        if self._complete:
            self._end(self._verdict())

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._client.lost(self)
        if self._sample is None:
            return
        if self.used and not self._answered:  # closed while the request was on its way: nobody has seen it
            sample, self._sample = self._sample, None
            self._client.again(self.address, self._request, sample)
        else:
            self._end(ERROR_EVENT if _ERROR in self._tail else CUT)

    # ---- httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"content-type":
            self._streamed = value.startswith(b"text/event-stream")

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        self._complete = True
        self._keep = self._parser.should_keep_alive()

    # ----

    def _read_on(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def _take(self, body: bytes) -> None:
        sample = self._sample
        if sample is None:
            return
        sample.received += len(body)
        self._tail = (self._tail + body)[-512:]
        if not self._streamed:
            return
        ends, self._carry = count_ends(self._carry, body)
        if body.endswith(_DONE):
            ends -= 1
        if ends <= 0:
            return
        if sample.first is None:
            sample.first = self._at
        else:
            sample.gaps.append(self._at - (sample.last or sample.first))
        sample.gaps.extend(itertools.repeat(0.0, ends - 1))
        sample.events += ends
        sample.last = self._at

    def _verdict(self) -> str:
        status = self._parser.get_status_code()
        if status != 200:
            return str(status)
        if not self._streamed:
            return OK
        if _ERROR in self._tail:  # vLLM ends even such a stream with [DONE]
            return ERROR_EVENT
        return OK if self._tail.endswith(_DONE) else CUT

    def _end(self, outcome: str) -> None:
        sample, self._sample = self._sample, None
        if sample is None:
            return
        sample.outcome = outcome
        if outcome != UNFINISHED:
            sample.last = self._at
        if self._complete and self._keep and not self.transport.is_closing():
            self.used = True
            self._parser = httptools.HttpResponseParser(self)
            self._client.idle(self)
        else:
            self.transport.abort()
        self._client.ended(sample)


def count_ends(carry: bytes, body: bytes) -> tuple[int, bytes]:
    """How many events end in `body`, and what to give as `carry` with the next part: blank lines may be cut in two."""
    whole = carry + body
    return whole.count(_END), b"\n" if whole.endswith(b"\n") and not whole.endswith(_END) else b""


class Client:
    """Connections to some addresses, as many as the load needs: waiting for one would hide latency."""

    def __init__(self, told: Callable[[Sample], None]) -> None:
        """`told` hears of every request that has ended."""
        self._told = told
        self._idle: dict[tuple[str, int], list[Link]] = {}
        self._open: set[Link] = set()
        self._dialling: set[asyncio.Task[None]] = set()
        self.running = 0

    def ask(self, address: tuple[str, int], request: bytes, sample: Sample, slowness: int | None = None) -> None:
        """Sends a request now. `slowness` is how many bytes per second are read of the answer."""
        self.running += 1
        waiting = self._idle.get(address, [])
        while slowness is None and waiting:
            link = waiting.pop()
            if perf_counter() - link.idle_since < KEEP and not link.transport.is_closing():
                link.send(request, sample)
                return
            link.transport.abort()
        self._dial(address, request, sample, slowness)

    def again(self, address: tuple[str, int], request: bytes, sample: Sample) -> None:
        """A kept connection was closed while the request was on its way: sends it on a new one."""
        self._dial(address, request, sample, None)

    def _dial(self, address: tuple[str, int], request: bytes, sample: Sample, slowness: int | None) -> None:
        task = asyncio.get_running_loop().create_task(self._connect(address, request, sample, slowness))
        self._dialling.add(task)
        task.add_done_callback(self._dialling.discard)

    async def _connect(self, address: tuple[str, int], request: bytes, sample: Sample, slowness: int | None) -> None:
        loop = asyncio.get_running_loop()
        sock = socket.socket()
        sock.settimeout(0)
        if slowness is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER)
        try:
            await loop.sock_connect(sock, address)
            _, link = await loop.create_connection(lambda: Link(self, address, slowness), sock=sock)
        except asyncio.CancelledError:
            sock.close()
            raise
        except OSError:
            sock.close()
            sample.sent, sample.outcome = perf_counter(), REFUSED
            self.ended(sample)
        else:
            self._open.add(link)
            link.send(request, sample)

    def idle(self, link: Link) -> None:
        """Called by a link that can carry the next request."""
        link.idle_since = perf_counter()
        self._idle.setdefault(link.address, []).append(link)

    def lost(self, link: Link) -> None:
        """Called by a link whose connection has ended."""
        self._open.discard(link)
        waiting: Sequence[Link] = self._idle.get(link.address, ())
        if link in waiting:
            self._idle[link.address].remove(link)

    def ended(self, sample: Sample) -> None:
        """Called once per request."""
        self.running -= 1
        self._told(sample)

    async def close(self) -> None:
        """Leaves: requests that are not answered stay unfinished."""
        for task in self._dialling:
            task.cancel()
        await asyncio.gather(*self._dialling, return_exceptions=True)
        for link in list(self._open):
            link.give_up()
        self._idle.clear()
