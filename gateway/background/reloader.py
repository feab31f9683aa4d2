"""Follows the configuration's file while the gateway runs, where one process serves; else the supervisor does."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from gateway.settings.problems import ConfigErrors
from gateway.settings.source import LOOK_EVERY, ConfigFile, Configuration
from gateway.settings.tree import Settings

MANY: Final = 20
"""Problems that a line of the log names."""

_log = structlog.get_logger()


class Reloader:
    """Looks at the file, and has it read when it has changed or somebody asks for it.

    Files are looked at and read in a thread: they may lie on a network, and a long one takes a while to be checked.
    """

    def __init__(
        self,
        file: ConfigFile,
        take: Callable[[Configuration | str], Awaitable[None]],
        in_force: Callable[[], Settings],
    ) -> None:
        self._file = file
        self._take = take
        self._in_force = in_force
        self._asked = asyncio.Event()
        self._busy = asyncio.Lock()

    def wake(self) -> None:
        """Has the file read now (for a signal)."""
        self._asked.set()

    async def run(self) -> None:
        """Looks again and again, until it is cancelled."""
        while True:
            try:
                async with asyncio.timeout(LOOK_EVERY):
                    await self._asked.wait()
            except TimeoutError:
                await self._look()
            else:
                self._asked.clear()
                await self.read()

    async def read(self) -> None:
        """Reads the file, changed or not, and hands over what is found."""
        async with self._busy:
            await self._give(await asyncio.to_thread(self._file.read, time.monotonic(), time.time()))

    async def _look(self) -> None:
        async with self._busy:
            found = await asyncio.to_thread(self._file.poll, time.monotonic(), time.time())
            if found is not None:
                await self._give(found)

    async def _give(self, found: Configuration | ConfigErrors) -> None:
        log_found(found)
        before = self._in_force()
        await self._take(str(found) if isinstance(found, ConfigErrors) else found)
        log_open(before, self._in_force())


def log_found(found: Configuration | ConfigErrors) -> None:
    """One line for what a file has turned out to be."""
    if isinstance(found, ConfigErrors):
        more = {"more": len(found.problems) - MANY} if len(found.problems) > MANY else {}
        problems = [str(problem) for problem in found.problems[:MANY]]
        _log.error("the configuration's file cannot be used, the one before stays in force", problems=problems, **more)
    else:
        _log.info("configuration read", source=found.source, hash=found.hash[:12])


def log_open(before: Settings | None, now: Settings) -> None:
    """One line where everybody is let in from now on; ``before`` is None at a start."""
    if not now.asks_for_keys and (before is None or before.asks_for_keys):
        _log.info("no key is asked for: whoever reaches the port may call every model")
