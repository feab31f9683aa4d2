"""Requests that wait for room: the shell around `gateway.balance.admission`, one queue per model that has a limit.

A queue is served whenever an attempt on one of the model's engines ends, and ten times a second while somebody waits:
time, health checks, and ended pauses make room too.
"""

import asyncio
from collections.abc import Iterable
from typing import Final, Literal, Protocol, TypeAlias

from gateway.balance.admission import AdmissionSettings, Gate, Shed, Ticket, WaitingRoom
from gateway.histogram import QueueMeter

LOOK_EVERY: Final = 0.1
"""Seconds between two looks while somebody waits."""

ShedReason: TypeAlias = Literal["queue_full", "waited_too_long"]


class Waiter(Protocol):
    """A request in the queue."""

    @property
    def picky(self) -> bool:
        """Not every endpoint will do, so that those behind it may find room where it does not."""

    def take_room(self, now: float) -> bool:
        """Goes, if there is room; or ends otherwise. False: it has to wait on."""

    def turned_away(self, reason: ShedReason, retry_after: float) -> None:
        """Its place is lost."""


class AdmissionQueue:
    """How many requests of one model run at once, and who waits for a place or for an endpoint with room."""

    __slots__ = ("_loop", "_room", "_soon", "_timer", "gate", "meter")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, settings: AdmissionSettings, limit: int | None, meter: QueueMeter
    ) -> None:
        self.gate = Gate(limit)
        self.meter = meter
        self._room: WaitingRoom[Waiter] = WaitingRoom(settings)
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._soon: asyncio.Handle | None = None

    def adjust(self, settings: AdmissionSettings, limit: int | None) -> None:
        """Goes on with other settings; nobody who is inside or waits is turned out by them."""
        self.gate.limit = limit
        self._room.settings = settings
        self.poke()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return self._room.waiting

    @property
    def settings(self) -> AdmissionSettings:
        """How many may wait, and how long."""
        return self._room.settings

    def retry_after(self) -> float:
        """Seconds until those who wait now will have gone."""
        return self._room.retry_after(self._loop.time())

    def join(self, waiter: Waiter, priority: float, deadline: float) -> Ticket[Waiter] | Shed:
        """A place in the queue, void at ``deadline`` (loop time) at the latest."""
        now = self._loop.time()
        found = self._room.join(waiter, priority, now)
        if isinstance(found, Shed):
            return found
        found.ticket.deadline = min(found.ticket.deadline, deadline)
        if found.displaced is not None:
            found.displaced.owner.turned_away("queue_full", self._room.retry_after(now))
        self.meter.depth = self._room.waiting
        if self._timer is None:
            self._timer = self._loop.call_later(LOOK_EVERY, self._look)
        return found.ticket

    def leave(self, ticket: Ticket[Waiter]) -> None:
        """Gives a place in the queue up."""
        self._room.leave(ticket)
        self.meter.depth = self._room.waiting

    def step_out(self) -> None:
        """A request that was inside has ended."""
        self.gate.leave()
        self.poke()

    def poke(self) -> None:
        """There may be room: whoever is next goes as soon as the present callback is done."""
        if self._room.waiting and self._soon is None:
            self._soon = self._loop.call_soon(self._serve)

    def _look(self) -> None:
        self._timer = None
        self._serve()
        if self._room.waiting and self._timer is None:
            self._timer = self._loop.call_later(LOOK_EVERY, self._look)

    def _serve(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        now = self._loop.time()
        while self._serve_next(now):
            pass
        for late in self._room.expire(now):
            late.owner.turned_away("waited_too_long", self._room.retry_after(now))
        self.meter.depth = self._room.waiting

    def _serve_next(self, now: float) -> bool:
        first = self._room.first()
        if first is None:
            return False
        line: Iterable[Ticket[Waiter]] = self._room.in_line() if first.owner.picky else (first,)
        for ticket in line:
            if ticket.owner.take_room(now):
                self._room.called(ticket, now)
                self.meter.seconds.observe(now - ticket.joined)
                return True
            if not ticket.owner.picky:
                return False
        return False
