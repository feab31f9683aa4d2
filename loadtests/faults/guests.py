"""Rude clients: they vanish, do not read, or drip. What they do not do is wait for their own requests' good."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator
from random import Random
from typing import Final

from loadtests.faults.scenario import Guests
from loadtests.faults.traffic import SEED, chat

DRIP: Final = 0.2
"""Seconds between two bytes."""

SMALL: Final = 4096
"""The receive buffer of those that do not read."""

LONG: Final = 3_500
"""Tokens that they ask for: more than every buffer between them and the replica holds."""

LONGEST_STAY: Final = 0.4


class Party:
    """All guests of a scenario. An async context; leaving it closes whatever they hold open."""

    def __init__(self, guests: Guests, address: tuple[str, int], numbers: Callable[[], int]) -> None:
        self._guests = guests
        self._address = address
        self._numbers = numbers
        self._rng = Random(SEED)
        self._tasks: list[asyncio.Task[None]] = []
        self._deaf: list[socket.socket] = []
        self.numbers: list[int] = []
        """Of their requests."""

    async def begin(self) -> None:
        """They come."""
        for _ in range(self._guests.deaf):
            await self._ask_and_ignore()
        kinds = [self._vanish] * self._guests.vanishing + [self._drip] * self._guests.dripping
        self._tasks = [asyncio.create_task(self._again_and_again(kind)) for kind in kinds]

    async def stop(self) -> None:
        """They leave, but those that do not read stay connected: the gateway has to get rid of them by itself."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def leave(self) -> None:
        """Those go too."""
        for sock in self._deaf:
            sock.close()

    def _next(self) -> int:
        self.numbers.append(self._numbers())
        return self.numbers[-1]

    async def _again_and_again(self, kind: Callable[[], Awaitable[None]]) -> None:
        while True:
            with contextlib.suppress(OSError):
                await kind()
            await asyncio.sleep(0.02)

    async def _vanish(self) -> None:
        """Asks, stays for a moment that ends before the answer or in the middle of it, and closes."""
        reader, writer = await asyncio.open_connection(*self._address)
        try:
            writer.write(chat(self._next(), stream=self._rng.random() < 0.7, tokens=200))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._rng.random() * LONGEST_STAY):
                    await reader.read()
        finally:
            writer.transport.abort()

    async def _drip(self) -> None:
        """Sends a request byte by byte, and gives up when its time is over."""
        _, writer = await asyncio.open_connection(*self._address)
        try:
            for byte in self._dripped():
                writer.write(byte)
                await writer.drain()
                await asyncio.sleep(DRIP)
        finally:
            writer.transport.abort()

    def _dripped(self) -> Iterator[bytes]:
        """The head in drops, or the head at once and the body in drops."""
        whole = chat(self._next(), stream=True)
        at = 0 if self._rng.random() < 0.5 else whole.index(b"\r\n\r\n") + 4
        if at:
            yield whole[:at]
        for index in range(at, len(whole)):
            yield whole[index : index + 1]

    async def _ask_and_ignore(self) -> None:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        sock.settimeout(0)
        self._deaf.append(sock)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(sock, self._address)
        await loop.sock_sendall(sock, chat(self._next(), stream=True, tokens=LONG, bulky=True))
