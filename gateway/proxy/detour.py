"""What a request has behind it that did not go straight to its endpoint. Most requests never have any of it."""

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from gateway.balance.admission import Ticket
from gateway.balance.endpoint import Endpoint
from gateway.balance.fallback import Cause, cause_of
from gateway.balance.outcome import Outcome, Phase, TimedOut
from gateway.balance.retry import Attempts
from gateway.balance.route import Unavailable
from gateway.errors import ApiError, ContextLengthExceeded
from gateway.proxy.queueing import AdmissionQueue, Waiter


class Second(Protocol):
    """A second attempt beside the first (`gateway.proxy.hedging`)."""

    __slots__ = ()

    def stop(self) -> None:
        """Nobody waits for it any more."""


@dataclass(slots=True, eq=False)
class Detour:
    """See above. ``last`` and ``error`` are how the last attempt ended, and what the client would be told."""

    tried: tuple[Endpoint, ...] = ()
    history: Attempts = field(default_factory=Attempts)
    last: Outcome | None = None
    error: ApiError | None = None
    pause: asyncio.TimerHandle | None = None
    place: tuple[AdmissionQueue, Ticket[Waiter]] | None = None
    stand_ins: tuple[str, ...] = ()
    """The models that have been given the request instead of the one that was asked for, the present one last."""
    cause: Cause | None = None
    second: Second | None = None

    def calls_for(self, end: Outcome | Unavailable, *, patient: bool) -> Cause | None:
        """Why another model should stand in, if it should. ``patient``: even after a first token that did not come."""
        if isinstance(end, Unavailable) and end.reason != "all_busy" and self.last is not None:
            end = self.last
        if isinstance(end, TimedOut) and end.phase is not Phase.CONNECT and not patient:
            return None
        return cause_of(end, context_too_long=isinstance(self.error, ContextLengthExceeded))

    def leave(self) -> None:
        """Ends every wait."""
        if self.second is not None:
            self.second.stop()
            self.second = None
        if self.pause is not None:
            self.pause.cancel()
        if self.place is not None:
            queue, ticket = self.place
            queue.leave(ticket)
