"""Whether a failed attempt is worth another one, and who pays for it.

Invariants:
- Nothing is tried again once anything was committed to the client.
- Refused and stale attempts cost neither budget nor attempts: no work was done. Everything else costs both.
- A request during which an endpoint died is tried at most once more, whatever else is allowed.
- What the engine said about the request itself (4xx), a client that left, and time that ran out are final; a
  first-token timeout is only if the settings leave it so.
- A budget never grants more than its floor per second plus its share of the requests of the last `window` seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from gateway.balance.outcome import (
    Broken,
    ClientGone,
    Outcome,
    Overloaded,
    Phase,
    Refused,
    Rejected,
    Served,
    Stale,
    TimedOut,
    Truncated,
)
from gateway.balance.window import Window


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """`attempts` per request, the first included; `share` of recent requests that may be retries. Times in seconds.

    `floor`: retries per second that are always granted. `backoff`: the longest wait before the third attempt, doubling
    up to `longest_backoff`; the second goes elsewhere at once.
    """

    attempts: int = 3
    share: float = 0.2
    floor: float = 10.0
    window: float = 10.0
    on_timeout: bool = False
    backoff: float = 0.05
    longest_backoff: float = 1.0


class RetryBudget:
    """Retries as a share of traffic, so that they cannot multiply an outage. One for all routes of a process."""

    __slots__ = ("_at", "_floor", "_requests", "_retries", "_share", "_tokens")

    def __init__(self, settings: RetrySettings, now: float) -> None:
        """Start with a full second of the floor."""
        self._share = settings.share
        self._floor = settings.floor
        self._requests = Window(settings.window)
        self._retries = Window(settings.window)
        self._tokens = settings.floor
        self._at = now

    def request(self, now: float) -> None:
        """Count a client's request (not its attempts)."""
        requests = self._requests  # `Window.add`, without the call
        if now >= requests.edge:
            requests.turn(now)
        requests.count += 1

    def take(self, now: float) -> bool:
        """Pay for one retry; False if there is nothing left."""
        self._tokens = min(self._floor, self._tokens + max(0.0, now - self._at) * self._floor)
        self._at = max(now, self._at)
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return True
        if self._retries.total(now) + 1 > self._share * self._requests.total(now):
            return False
        self._retries.add(now)
        return True


@dataclass(slots=True)
class Attempts:
    """What one request has behind it; only needed once something has failed."""

    paid: int = 0
    stale: int = 0
    died: int = 0


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again `after` seconds; `elsewhere`: not where it was tried before, else there on a new connection."""

    after: float
    elsewhere: bool
    reason: Literal["refused", "stale", "overloaded", "broken", "died", "timeout"]


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Answer the client with what there is."""

    reason: Literal["committed", "final", "attempts", "budget", "poisonous"]


Decision: TypeAlias = Retry | GiveUp


def decide(
    outcome: Outcome,
    attempts: Attempts,
    budget: RetryBudget,
    settings: RetrySettings,
    now: float,
    rng: Callable[[], float],
    *,
    committed: bool = False,
) -> Decision:
    """Say what follows an attempt that ended with `outcome`; counts it in `attempts` and takes from `budget`."""
    if committed:
        return GiveUp("committed")
    match outcome:
        case Served() | Rejected() | ClientGone() | Truncated():
            return GiveUp("final")
        case Refused():
            return Retry(0.0, elsewhere=True, reason="refused")
        case Stale():
            attempts.stale += 1
            return Retry(0.0, elsewhere=attempts.stale > 1, reason="stale")
        case TimedOut(phase=phase, by_client=by_client):
            if phase is Phase.CONNECT and not by_client:
                return Retry(0.0, elsewhere=True, reason="timeout")
            if by_client or phase is Phase.TOTAL or not settings.on_timeout:
                return GiveUp("final")
            return _pay("timeout", attempts, budget, settings, now, rng)
        case Overloaded():
            return _pay("overloaded", attempts, budget, settings, now, rng)
        case Broken(died=died):
            attempts.died += died
            if attempts.died > 1:
                return GiveUp("poisonous")
            return _pay("died" if died else "broken", attempts, budget, settings, now, rng)
        case _:
            assert_never(outcome)


def _pay(
    reason: Literal["overloaded", "broken", "died", "timeout"],
    attempts: Attempts,
    budget: RetryBudget,
    settings: RetrySettings,
    now: float,
    rng: Callable[[], float],
) -> Decision:
    """Count one attempt that did work, and take the next from the budget."""
    attempts.paid += 1
    if attempts.paid >= settings.attempts:
        return GiveUp("attempts")
    if not budget.take(now):
        return GiveUp("budget")
    if attempts.paid == 1:
        return Retry(0.0, elsewhere=True, reason=reason)
    longest = min(settings.longest_backoff, settings.backoff * 2 ** (attempts.paid - 2))
    return Retry(longest * rng(), elsewhere=True, reason=reason)
