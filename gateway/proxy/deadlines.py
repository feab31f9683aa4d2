"""Timeouts for many exchanges at the price of one timer.

An event loop's timer per request and phase would cost more than the rest of the bookkeeping. Here everybody waits in
a bucket of a tenth of a second; one timer turns the wheel, and only while someone waits. An entry that is asked
whether its time has come may name a later time, so that nothing has to be rescheduled per streamed event.
"""

import asyncio
from typing import Final, Protocol

TICK: Final = 0.1
"""Seconds; how late a deadline may be noticed."""


_NOBODY: Final[set["Timed"]] = set()


class Timed(Protocol):
    """Somebody who waits."""

    bucket: int
    """The owner's place in the wheel, -1 outside of it. Only `Deadlines` writes it."""

    def on_deadline(self, now: float) -> float | None:
        """The asked-for time has come. The next deadline (loop time), or None to be left alone."""


class Deadlines:
    """A timer wheel over one event loop."""

    __slots__ = ("_buckets", "_loop", "_timer", "_turned")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._buckets: dict[int, set[Timed]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._turned = 0

    def __len__(self) -> int:
        return sum(map(len, self._buckets.values()))

    def entries(self) -> list[Timed]:
        """Everybody who waits."""
        return [entry for bucket in self._buckets.values() for entry in bucket]

    def put(self, entry: Timed, deadline: float) -> None:
        """Has ``entry.on_deadline`` called at ``deadline`` (loop time) or up to a tick later; one deadline each."""
        if entry.bucket >= 0:
            self.drop(entry)
        if self._timer is None:
            self._turned = int(self._loop.time() / TICK)
            self._timer = self._loop.call_later(TICK, self._turn)
        place = max(int(deadline / TICK) + 1, self._turned)  # a time that has passed comes with the next turn
        entry.bucket = place
        waiting = self._buckets.get(place)
        if waiting is None:
            self._buckets[place] = {entry}
        else:
            waiting.add(entry)

    def drop(self, entry: Timed) -> None:
        """Forgets the entry's deadline, if it has one."""
        place = entry.bucket
        if place < 0:
            return
        entry.bucket = -1
        waiting = self._buckets.get(place)
        if waiting is not None:
            waiting.discard(entry)

    def _turn(self) -> None:
        now = self._loop.time()
        place = int(now / TICK)
        try:
            for due in range(self._turned, place + 1):
                waiting = self._buckets.get(due, _NOBODY)
                while waiting:  # one entry may drop another
                    entry = waiting.pop()
                    entry.bucket = -1
                    later = entry.on_deadline(now)
                    if later is not None:
                        self.put(entry, max(later, now + TICK))
                self._buckets.pop(due, None)
            self._turned = place
        finally:  # whoever fails does not stop the clock for the others
            self._timer = self._loop.call_later(TICK, self._turn) if self._buckets else None
