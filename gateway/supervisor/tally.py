"""The counts of all members as one, those of members that are gone included. Time is an argument.

A member that asks for the total brings its own counts along, and shows nothing that the supervisor has not got: so
what was shown once is never taken back, however a member ends.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from gateway.metrics import Meters, Snapshot

PATIENCE: Final = 0.5
"""Seconds after which a member that does not answer is counted as it was known last."""


@dataclass(slots=True, eq=False)
class Ask:
    """A member's wish for the total that is not yet fulfilled."""

    member: int
    number: int
    poll: int
    waiting: set[int]
    until: float


class Tally:
    """The last known counts of every member, by process id, and the sum of those that are gone."""

    def __init__(self) -> None:
        self._last: dict[int, Snapshot] = {}
        self._gone = Meters()
        self._asks: list[Ask] = []
        self._polls = 0

    def note(self, member: int, counts: Snapshot, poll: int = 0) -> None:
        """A member's counts, perhaps as the answer to a poll."""
        if not counts.process and member in self._last:
            counts.process = self._last[member].process
        self._last[member] = counts
        for ask in self._asks:
            if ask.poll <= poll:
                ask.waiting.discard(member)

    def ask(self, member: int, number: int, others: Collection[int], now: float) -> int:
        """Remembers an ask; gives the number of the poll to send to the others."""
        self._polls += 1
        self._asks.append(Ask(member, number, self._polls, set(others), now + PATIENCE))
        return self._polls

    def gone(self, member: int) -> None:
        """A member has ended: what it counted stays, what was in flight there is over."""
        last = self._last.pop(member, None)
        if last is not None:
            self._gone.add(last.final())
        self._asks = [ask for ask in self._asks if ask.member != member]
        for ask in self._asks:
            ask.waiting.discard(member)

    def fulfilled(self, now: float) -> list[Ask]:
        """The asks that wait for nobody any more; each is given once."""
        done = [ask for ask in self._asks if not ask.waiting or ask.until <= now]
        self._asks = [ask for ask in self._asks if ask not in done]
        return done

    def until(self) -> float | None:
        """When the next ask stops waiting."""
        return min((ask.until for ask in self._asks), default=None)

    def total(self) -> Snapshot:
        """The counts of all."""
        total = Meters()
        total.add(self._gone.snapshot())
        for counts in self._last.values():
            total.add(counts)
        return total.snapshot()
