"""An average that forgets: recent observations weigh more, by time and not by count."""

from math import exp, log


class Ewma:
    """Exponentially weighted mean with a half-life in seconds.

    Invariants: the mean lies between the least and the greatest observation; a constant is its own mean; an
    observation that is `half_life` seconds old weighs half of a new one. Time that runs backwards counts as no time.
    """

    __slots__ = ("_at", "_rate", "_sum", "_weight", "count")

    def __init__(self, half_life: float) -> None:
        """`half_life` in seconds, above 0."""
        self._rate = log(2) / half_life
        self._at = 0.0
        self._sum = 0.0
        self._weight = 0.0
        self.count = 0

    def observe(self, value: float, now: float) -> None:
        """Add one observation."""
        kept = exp(-self._rate * max(0.0, now - self._at)) if self.count else 0.0
        self._sum = self._sum * kept + value
        self._weight = self._weight * kept + 1.0
        self._at = max(now, self._at) if self.count else now
        self.count += 1

    @property
    def mean(self) -> float | None:
        """The mean so far; None before the first observation."""
        return self._sum / self._weight if self.count else None


class Rate:
    """Events per second, with a half-life in seconds.

    Invariants: never negative; falls towards 0 while nothing happens; steady events every d seconds come to read 1/d.
    """

    __slots__ = ("_at", "_began", "_rate", "_weight", "count")

    def __init__(self, half_life: float) -> None:
        """`half_life` in seconds, above 0."""
        self._rate = log(2) / half_life
        self._at = 0.0
        self._began = 0.0
        self._weight = 0.0
        self.count = 0

    def tick(self, now: float) -> None:
        """Count one event."""
        if not self.count:
            self._at = self._began = now
        self._weight = self._aged(now) + 1.0
        self._at = max(now, self._at)
        self.count += 1

    def per_second(self, now: float) -> float:
        """The rate of late; 0 before the first event."""
        if not self.count:
            return 0.0
        # So soon after the first event little can have faded; at least a second, so that one event is no high rate.
        watched = max(1.0, now - self._began)
        return self._aged(now) * self._rate / (1.0 - exp(-self._rate * watched))

    def _aged(self, now: float) -> float:
        return self._weight * exp(-self._rate * max(0.0, now - self._at))
