"""The clients of a process: the one of a Redis that is to be used next, and those that are not used any more."""

import asyncio
from typing import Final

from gateway.background.shared.calling import close, greet
from gateway.background.shared.client import Client, Connect, load_clients
from gateway.settings.keys import State

GREETING: Final = 1.0
"""Seconds that a reload waits for the first word of another Redis, before it takes it into force without."""
CLOSING: Final = 1.5
"""Seconds that the end of connections may take."""


class Succession:
    """Makes clients, and keeps those that are not in use."""

    def __init__(self) -> None:
        self._connect: Connect | None = None
        self._next: tuple[State, Client | None, str] | None = None
        self._left: list[Client] = []

    async def client(self, state: State) -> Client:
        """A new one. Raises RedisFault."""
        return (await self._connecting())(state)

    async def _connecting(self) -> Connect:
        if self._connect is None:
            self._connect = await asyncio.to_thread(load_clients)
        return self._connect

    async def meet(self, state: State) -> None:
        """Gets to know a Redis that is to be used soon."""
        await self.end()
        client, reason = await greet(await self._connecting(), state, GREETING)
        self._next = (state, client, reason)

    def take(self, state: State) -> tuple[Client | None, str] | None:
        """What is known of this Redis: its client, or None and why there is none; None if nothing is known."""
        found, self._next = self._next, None
        if found is None:
            return None
        met, client, reason = found
        if place(met) == place(state):
            return client, reason
        self.leave(client)
        return None

    def leave(self, client: Client | None) -> None:
        """One that is not used any more; `close` ends it."""
        if client is not None:
            self._left.append(client)

    async def close(self) -> None:
        """Ends the connections of all that were left. Cut short, it can be called again."""
        while self._left:
            client = self._left[-1]
            await close(client, CLOSING)
            if client in self._left:
                self._left.remove(client)

    async def end(self) -> None:
        """The same, and for what has not been taken."""
        found, self._next = self._next, None
        if found is not None:
            self.leave(found[1])
        await self.close()


def place(state: State) -> tuple[object, ...]:
    """What makes another Redis of it, or other names there."""
    return state.redis, state.password, state.prefix
