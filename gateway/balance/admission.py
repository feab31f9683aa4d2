"""Who waits when every endpoint is at its limit, who goes next, and who is sent away.

Priorities age: one point of priority is worth `aging` seconds of waiting. All who wait age alike, so their order never
changes, and it is simply the order of (time of arrival - priority * aging).

Invariants:
- Nobody is overtaken by someone who came more than aging * (difference of priority) seconds later: nobody starves.
- Equal priorities leave in the order of their arrival.
- At most `queue` wait. When it is full, one who would stand before the last one takes that one's place; else is shed.
- Who has left, expired or been displaced is never called, and frees its place at once.
- The shell must let nobody pass while somebody waits (`waiting`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Generic, Literal, TypeVar

from gateway.balance.ewma import Rate

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """`queue`: how many may wait; `wait`: for how many seconds; `aging`: seconds worth a point of priority."""

    queue: int = 512
    wait: float = 10.0
    aging: float = 1.0
    shortest_retry: float = 1.0
    longest_retry: float = 60.0


@dataclass(order=True, slots=True)
class Ticket(Generic[T]):
    """A place in the queue, for `owner`. It is void at `deadline`."""

    rank: float
    number: int
    owner: T = field(compare=False)
    joined: float = field(compare=False)
    deadline: float = field(compare=False)
    waiting: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class Shed:
    """Sent away. `retry_after` seconds is when the queue will have drained at its present rate."""

    reason: Literal["queue_full"]
    retry_after: float


@dataclass(frozen=True, slots=True)
class Queued(Generic[T]):
    """A place was found; `displaced` has lost its own to it and must be told so (as if shed)."""

    ticket: Ticket[T]
    displaced: Ticket[T] | None = None


class WaitingRoom(Generic[T]):
    """The bounded queue of one route."""

    __slots__ = ("_calls", "_heap", "_number", "settings", "waiting")

    def __init__(self, settings: AdmissionSettings) -> None:
        """Start empty. Other `settings` may be put in later: they hold for those who join from then on."""
        self.settings = settings
        self._heap: list[Ticket[T]] = []
        self._number = 0
        self._calls = Rate(half_life=5.0)
        self.waiting = 0

    def __len__(self) -> int:
        """How many tickets are kept, those included that are void but not yet cleared away."""
        return len(self._heap)

    def join(self, owner: T, priority: float, now: float) -> Queued[T] | Shed:
        """Ask for a place. A higher priority goes first."""
        settings = self.settings
        self._number += 1
        ticket = Ticket(now - priority * settings.aging, self._number, owner, now, now + settings.wait)
        displaced = None
        if self.waiting >= settings.queue:
            last = max(self._alive(), default=None)
            if last is None or last < ticket:
                return Shed("queue_full", self.retry_after(now))
            self.leave(last)
            displaced = last
        heappush(self._heap, ticket)
        self.waiting += 1
        return Queued(ticket, displaced)

    def leave(self, ticket: Ticket[T]) -> bool:
        """Give the place up (the client has gone, or waits no longer); False if it was not waiting any more."""
        if not ticket.waiting:
            return False
        ticket.waiting = False
        self.waiting -= 1
        if len(self._heap) > 2 * self.waiting + 16:
            self._heap = list(self._alive())
            heapify(self._heap)
        return True

    def first(self) -> Ticket[T] | None:
        """The next in line, who stays there."""
        heap = self._heap
        while heap:
            if heap[0].waiting:
                return heap[0]
            heappop(heap)
        return None

    def in_line(self) -> list[Ticket[T]]:
        """Everybody who waits, first in line first; for the shell to find one who has room where the first has not."""
        return sorted(self._alive())

    def called(self, ticket: Ticket[T], now: float) -> None:
        """Note that this one has gone; nothing if it was not waiting any more."""
        if self.leave(ticket):
            self._calls.tick(now)

    def call(self, now: float) -> Ticket[T] | None:
        """Take out the next in line; for the shell to call when there is room for whoever it is."""
        ticket = self.first()
        if ticket is not None:
            self.called(ticket, now)
        return ticket

    def expire(self, now: float) -> list[Ticket[T]]:
        """Take out everybody whose deadline has come."""
        late = [ticket for ticket in self._alive() if ticket.deadline <= now]
        for ticket in late:
            self.leave(ticket)
        return late

    def flush(self) -> list[Ticket[T]]:
        """Take out everybody, first in line first: there is nothing left to wait for (all endpoints are down)."""
        everybody = self.in_line()
        for ticket in everybody:
            self.leave(ticket)
        return everybody

    def retry_after(self, now: float) -> float:
        """Seconds until those who wait now will have gone, at the rate of late; within the bounds of the settings."""
        settings = self.settings
        if not self._calls.count:
            return max(settings.shortest_retry, min(settings.wait, settings.longest_retry))
        rate = self._calls.per_second(now)
        ahead = self.waiting + 1
        needed = ahead / rate if rate * settings.longest_retry > ahead else settings.longest_retry
        return max(settings.shortest_retry, needed)

    def _alive(self) -> Iterator[Ticket[T]]:
        return (ticket for ticket in self._heap if ticket.waiting)


class Gate:
    """How many requests of one model run at once. Invariant: never more than `limit`; None is no limit."""

    __slots__ = ("inside", "limit")

    def __init__(self, limit: int | None) -> None:
        """Start with nobody inside; a limit that shrinks later turns nobody out."""
        self.limit = limit
        self.inside = 0

    @property
    def open(self) -> bool:
        """Whether one more may enter."""
        return self.limit is None or self.inside < self.limit

    def enter(self) -> bool:
        """Take a place if there is one."""
        if not self.open:
            return False
        self.inside += 1
        return True

    def leave(self) -> None:
        """Give a place back. Raises ValueError if nobody is inside: the caller has lost count."""
        if self.inside == 0:
            raise ValueError("nobody is inside")
        self.inside -= 1
