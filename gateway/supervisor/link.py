"""A member's end of the line to the supervisor."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec

from gateway.api.fleet import ProcessesUnreachable
from gateway.api.orders import Call, decoded, encoded
from gateway.api.view import Replies
from gateway.metrics import Snapshot, TotalUnavailable
from gateway.supervisor.frames import Frame, FrameReader, Kind
from gateway.supervisor.rounds import patience_with

PUSH: Final = 1.0
"""Seconds between two reports of counts that nobody asked for: all that is lost of a member that is killed."""

PATIENCE: Final = 2.0
"""Seconds to wait for a total. The supervisor waits for less, unless it is not well itself."""

LONGER: Final = 2.0
"""Seconds that a member waits longer than the supervisor does for all to have heeded an order."""


class Counts(Protocol):
    """Where a member's counts come from."""

    def __call__(self, *, thorough: bool) -> Snapshot:
        """All counts; those of the operating system only if they are worth the trouble."""


class Link(asyncio.Protocol):
    """Reports to the supervisor, asks it for what all members have counted, and passes on orders for all.

    ``obey`` heeds an order and gives the answer to it; orders are heeded one after another. ``orphaned`` is called when
    the supervisor is gone: nobody would replace this process or tell it to stop.
    """

    def __init__(
        self,
        line: socket.socket,
        counts: Counts,
        obey: Callable[[Call], Awaitable[bytes]],
        orphaned: Callable[[], None],
    ) -> None:
        self._line = line
        self._counts = counts
        self._obey = obey
        self._orphaned = orphaned
        self._reader = FrameReader()
        self._asks: dict[int, asyncio.Future[bytes]] = {}
        self._number = 0
        self._reported = b""
        self._timer: asyncio.TimerHandle | None = None
        self._closing = False
        self._orders: asyncio.Queue[Frame] = asyncio.Queue()

    async def open(self) -> None:
        """Begins; needs a running loop."""
        self._loop = asyncio.get_running_loop()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._transport, _ = await self._loop.create_unix_connection(lambda: self, sock=self._line)

    def ready(self) -> None:
        """Requests are taken from now on."""
        self._send(Frame(Kind.READY))
        self._timer = self._loop.call_later(PUSH, self._push)

    def leaving(self) -> None:
        """No more requests are taken."""
        self._send(Frame(Kind.LEAVING))

    async def ask(self, own: Snapshot) -> Snapshot:
        """The counts of all members, these included.

        Raises:
            TotalUnavailable: the supervisor does not answer.
        """
        try:
            total = await self._answer_to(Kind.ASK, msgspec.msgpack.encode(own), PATIENCE)
        except TimeoutError:
            raise TotalUnavailable from None
        return msgspec.msgpack.decode(total, type=Snapshot)

    async def obey_all(self) -> None:
        """Heeds orders as they come, until it is cancelled."""
        while True:
            frame = await self._orders.get()
            self._send(Frame(Kind.REPLY, frame.number, await self._obey(decoded(frame.payload))))

    async def ask_all(self, call: Call) -> Replies:
        """Lets all members heed a call, this one included, and gives their answers.

        Raises:
            ProcessesUnreachable: the supervisor does not answer.
        """
        try:
            replies = await self._answer_to(Kind.CALL, encoded(call), patience_with(call) + LONGER)
        except TimeoutError:
            message = "The other serving processes cannot be reached now, and may or may not hear of this request."
            raise ProcessesUnreachable(message) from None
        return msgspec.msgpack.decode(replies, type=Replies)

    async def _answer_to(self, kind: Kind, payload: bytes, patience: float) -> bytes:
        self._number = number = self._number + 1
        answer: asyncio.Future[bytes] = self._loop.create_future()
        self._asks[number] = answer
        self._send(Frame(kind, number, payload))
        try:
            async with asyncio.timeout(patience):
                return await answer
        finally:
            del self._asks[number]

    async def close(self) -> None:
        """Reports once more, and ends."""
        self._closing = True
        if self._timer is not None:
            self._push()
            self._timer.cancel()
        self._transport.close()
        await asyncio.wait([self._closed], timeout=PATIENCE)

    # ---- asyncio.Protocol

    def data_received(self, data: bytes) -> None:
        """The supervisor says something."""
        for frame in self._reader.feed(data):
            if frame.kind is Kind.POLL:
                self._send(Frame(Kind.COUNTS, frame.number, msgspec.msgpack.encode(self._counts(thorough=True))))
            elif frame.kind is Kind.ORDER:
                self._orders.put_nowait(frame)
            elif (answer := self._asks.get(frame.number)) is not None and not answer.done():
                answer.set_result(frame.payload)

    def connection_lost(self, exc: Exception | None) -> None:
        """The line is cut, by either end."""
        del exc
        self._closed.set_result(None)
        if not self._closing:
            self._orphaned()

    # ---- own

    def _send(self, frame: Frame) -> None:
        if not self._transport.is_closing():
            self._transport.write(frame.encode())

    def _push(self) -> None:
        """Reports if there is news, and if the last report has got through."""
        self._timer = self._loop.call_later(PUSH, self._push)
        report = msgspec.msgpack.encode(self._counts(thorough=False))
        if report != self._reported and self._transport.get_write_buffer_size() == 0:
            self._reported = report
            self._send(Frame(Kind.COUNTS, 0, report))
