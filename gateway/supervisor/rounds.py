"""Orders that go round all members, and the answers as they come in. Time is an argument."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from gateway.api.orders import Call, Put, Refused, Reread

PATIENCE: Final = 2.0
"""Seconds after which the caller is told who has not answered."""

LONG_PATIENCE: Final = 12.0
"""The same for a new configuration: names may have to be resolved for it, and engines asked for their models."""


def patience_with(call: Call) -> float:
    """Seconds that a call may take."""
    return LONG_PATIENCE if isinstance(call, Put | Refused | Reread) else PATIENCE


@dataclass(slots=True, eq=False)
class Round:
    """One order under way, for the member that called it."""

    caller: int
    number: int
    order: int
    waiting: set[int]
    until: float
    replies: dict[int, bytes] = field(default_factory=dict)


class Rounds:
    """The rounds that are not over, by process ids."""

    def __init__(self) -> None:
        self._rounds: list[Round] = []
        self._orders = 0

    def begin(self, caller: int, number: int, members: Collection[int], now: float, patience: float = PATIENCE) -> int:
        """Opens a round; gives the number of the order to send to the members."""
        self._orders += 1
        self._rounds.append(Round(caller, number, self._orders, set(members), now + patience))
        return self._orders

    def replied(self, member: int, order: int, payload: bytes) -> None:
        """A member's answer. One that comes too late is nobody's."""
        for one in self._rounds:
            if one.order == order and member in one.waiting:
                one.waiting.discard(member)
                one.replies[member] = payload

    def gone(self, member: int) -> None:
        """A member has ended: nobody waits for it, and nobody answers it."""
        self._rounds = [one for one in self._rounds if one.caller != member]
        for one in self._rounds:
            one.waiting.discard(member)

    def over(self, now: float) -> list[Round]:
        """The rounds that wait for nobody any more; each is given once. Who has not answered is left in `waiting`."""
        done = [one for one in self._rounds if not one.waiting or one.until <= now]
        self._rounds = [one for one in self._rounds if one not in done]
        return done

    def until(self) -> float | None:
        """When the next round stops waiting."""
        return min((one.until for one in self._rounds), default=None)
