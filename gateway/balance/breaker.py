"""The circuit breaker of one endpoint: a pure state machine.

It only says when it *wants* to open; its engine decides, because at most half of an engine's endpoints may be ejected.

Invariants:
- It wants to open exactly when the last `consecutive` judged outcomes were bad, or when at least `volume` outcomes fell
  into the last `window` seconds and at least `share` of them were bad.
- Every change of position starts a new term. An outcome counts only in the term its attempt began in, so what started
  before an opening cannot close it, nor open it again.
- In one half-open term, trials under way plus trials that went well never exceed `trials`; the breaker closes with the
  `trials`-th good one and opens again with the first bad one. A neutral ending gives its trial back.
- The pause is `pause` after closed, and doubles with each failed trial up to `longest_pause`.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import inf

from gateway.balance.window import Window


class Position(StrEnum):
    """Closed: requests flow. Open: none do. Half-open: a counted number of trials."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """When a breaker opens and how it finds out that it may close. Times in seconds."""

    consecutive: int = 5
    share: float = 0.5
    volume: int = 20
    window: float = 10.0
    pause: float = 5.0
    longest_pause: float = 60.0
    trials: int = 1


class Breaker:
    """The breaker of one endpoint."""

    __slots__ = (
        "_bad",
        "_good",
        "_settings",
        "_trials_good",
        "_trials_out",
        "pause",
        "position",
        "reopens_at",
        "streak",
        "term",
    )

    def __init__(self, settings: BreakerSettings) -> None:
        """Start closed, with nothing counted. `streak`: bad outcomes since the last good one."""
        self._settings = settings
        self.position = Position.CLOSED
        self.term = 0
        self.pause = 0.0
        self.reopens_at = inf
        self._trials_out = 0
        self._trials_good = 0
        self._forget()

    def _forget(self) -> None:
        self.streak = 0
        self._good = Window(self._settings.window)
        self._bad = Window(self._settings.window)

    def adjust(self, settings: BreakerSettings) -> None:
        """Go on with other settings, in the same position; what a window of another length counted is forgotten."""
        longer_or_shorter = settings.window != self._settings.window
        self._settings = settings
        if longer_or_shorter:
            self._forget()

    def served(self, now: float) -> None:
        """Count a good outcome of the current closed term: the success path, kept short."""
        self.streak = 0
        good = self._good  # `Window.add`, without the call
        if now >= good.edge:
            good.turn(now)
        good.count += 1

    def failed(self, now: float) -> str | None:
        """Count a bad outcome of the current closed term; the reason to open, if it wants to."""
        self.streak += 1
        self._bad.add(now)
        if self.streak >= self._settings.consecutive:
            return f"{self.streak} failures in a row"
        good, bad = self.counts(now)
        if good + bad >= self._settings.volume and bad >= self._settings.share * (good + bad):
            return f"{bad} of {good + bad} requests failed within {self._settings.window:g} s"
        return None

    def counts(self, now: float) -> tuple[int, int]:
        """Good and bad outcomes in the window that ends now."""
        return self._good.total(now), self._bad.total(now)

    def open(self, now: float) -> None:
        """Stop the flow. From half-open the pause doubles."""
        settings = self._settings
        again = self.position is Position.HALF_OPEN
        self.pause = min(self.pause * 2, settings.longest_pause) if again else settings.pause
        self.reopens_at = now + self.pause
        self._move(Position.OPEN)

    def half_open(self) -> None:
        """Let trials through."""
        self._trials_out = 0
        self._trials_good = 0
        self.reopens_at = inf
        self._move(Position.HALF_OPEN)

    def close(self) -> None:
        """Let everything through and start counting afresh."""
        self.pause = 0.0
        self.reopens_at = inf
        self._move(Position.CLOSED)

    def _move(self, position: Position) -> None:
        self.position = position
        self.term += 1
        self._forget()

    @property
    def trials_free(self) -> int:
        """How many more trials may begin in this half-open term; 0 in any other position."""
        if self.position is not Position.HALF_OPEN:
            return 0
        return self._settings.trials - self._trials_out - self._trials_good

    def begin_trial(self) -> None:
        """Count a trial out; only while `trials_free`."""
        self._trials_out += 1

    def end_trial(self, *, good: bool) -> bool:
        """Count a trial back, as gone well or as neutral. True if enough of them have gone well to close."""
        self._trials_out -= 1
        if good:
            self._trials_good += 1
        return self._trials_good >= self._settings.trials
