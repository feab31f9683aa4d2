"""Counts of seconds by bucket, as Prometheus has them."""

from bisect import bisect_left
from typing import Final, TypeAlias

Seconds: TypeAlias = tuple[list[int], float]
"""A histogram's counts by bucket, and the sum of what it has seen."""

QUEUE_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0)


class Histogram:
    """Counts of seconds by bucket; the last bucket has no upper bound."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Counts one observation."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds

    @property
    def seen(self) -> Seconds:
        """All it has seen."""
        return self.counts, self.total

    def cumulative(self) -> list[tuple[str, float]]:
        """Prometheus' form: each bucket holds what is at most its bound."""
        found = []
        running = 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            running += count
            found.append((bound, float(running)))
        return found

    def add(self, seconds: Seconds) -> None:
        """Takes in what another histogram with the same bounds has seen."""
        counts, total = seconds
        self.counts = [mine + other for mine, other in zip(self.counts, counts, strict=True)]
        self.total += total


class QueueMeter:
    """How many requests wait in a model's queue now, and how long those have waited that went."""

    __slots__ = ("depth", "seconds")

    def __init__(self) -> None:
        self.depth = 0
        self.seconds = Histogram(QUEUE_BUCKETS)
