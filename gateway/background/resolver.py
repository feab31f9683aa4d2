"""Names that stand for several addresses: looked up again and again, so that replicas come and go without a restart."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import structlog

from gateway.proxy.links import EngineLink, addresses_of
from gateway.proxy.plane import Plane
from gateway.settings.tree import Settings
from gateway.settings.values import MANY_ADDRESSES

EVERY: Final = 5.0
"""Seconds between two looks. Resolvers keep answers for as long as they may live, so asking again costs little."""

TICK: Final = 0.2
"""Seconds after which a name that nobody knows yet is taken up, as after a change of the configuration."""

PATIENCE: Final = 5.0
"""Seconds that the start, and one look, wait for answers."""

Lookup: TypeAlias = Callable[[str, int], Awaitable[tuple[str, ...]]]
"""The addresses of a host's name. Raises OSError when there is none, or no answer."""

_log = structlog.get_logger()


async def look_up(host: str, port: int) -> tuple[str, ...]:
    """Asks the system, in a thread: its resolver cannot be asked in any other way."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(sorted({str(address[0]) for *_, address in found}))


class Resolver:
    """Keeps the endpoints of engines with ``dns+`` URLs equal to what the names stand for.

    An address that is gone gets no more requests, and what runs there goes on. A name that cannot be resolved keeps the
    addresses it had: a dead name server must not stop engines that live.
    """

    def __init__(self, plane: Callable[[], Plane], lookup: Lookup = look_up) -> None:
        self._plane = plane
        self._lookup = lookup
        self._failing: set[str] = set()

    async def run(self) -> None:
        """Looks again and again, until it is cancelled."""
        loop = asyncio.get_running_loop()
        seen, due = self._plane(), loop.time() + EVERY
        while True:
            await asyncio.sleep(TICK)
            plane = self._plane()
            if plane is not seen or loop.time() >= due:
                seen, due = plane, loop.time() + EVERY
                await self.look()

    async def ahead(self, settings: Settings) -> dict[str, tuple[str, ...]]:
        """What the names of settings that are not in force yet stand for, those left out that are known already."""
        known = addresses_of(self._plane().engines.values())
        found: dict[str, tuple[str, ...]] = {}

        async def ask(engine: str, url: str) -> None:
            addresses = await self._ask(engine, url)
            if addresses:
                found[url] = addresses

        async with asyncio.TaskGroup() as group:
            for name, engine in settings.engines.items():
                for url in engine.urls:
                    if url.startswith(MANY_ADDRESSES) and url not in known:
                        group.create_task(ask(name, url))
        return found

    async def look(self) -> None:
        """Asks for all names once and applies what is new."""
        async with asyncio.TaskGroup() as group:
            for link in self._plane().engines.values():
                names = [url for url in link.settings.urls if url.startswith(MANY_ADDRESSES)]
                if names:
                    group.create_task(self._follow(link, names))

    async def _follow(self, link: EngineLink, names: list[str]) -> None:
        for url in names:
            addresses = await self._ask(link.engine.name, url)
            if addresses:
                link.addresses[url] = addresses
        before = {endpoint.url for endpoint in link.engine.endpoints}
        link.follow(link.loop.time())
        after = {endpoint.url for endpoint in link.engine.endpoints}
        if before != after:
            _log.info(
                "endpoints changed",
                engine=link.engine.name,
                added=", ".join(sorted(after - before)),
                removed=", ".join(sorted(before - after)),
            )

    async def _ask(self, engine: str, url: str) -> tuple[str, ...]:
        parts = urlsplit(url.removeprefix(MANY_ADDRESSES))
        try:
            async with asyncio.timeout(PATIENCE):
                found = await self._lookup(parts.hostname or "", parts.port or 80)
        except (OSError, UnicodeError) as error:  # TimeoutError is an OSError
            if url not in self._failing:
                self._failing.add(url)
                _log.warning("a name cannot be resolved", engine=engine, name=parts.hostname, reason=str(error))
            return ()
        self._failing.discard(url)
        return found
