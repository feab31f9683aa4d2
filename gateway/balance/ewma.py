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
