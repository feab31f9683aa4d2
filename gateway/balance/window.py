"""A count over the last seconds."""

from collections import deque
from math import inf
from typing import Final

BUCKETS: Final = 10


class Window:
    """How many things happened within the last `span` seconds, exact to a tenth of it.

    Invariant: everything of the last 0.9 * span seconds is counted, and nothing older than span. Time that runs
    backwards counts as no time.
    """

    __slots__ = ("_ring", "_step", "_sum", "count", "edge")

    def __init__(self, span: float) -> None:
        """`span` in seconds, above 0."""
        self._step = span / BUCKETS
        self._ring: deque[int] = deque()
        self.edge = -inf
        self.count = 0
        self._sum = 0

    def add(self, now: float) -> None:
        """Count one more."""
        if now >= self.edge:
            self.turn(now)
        self.count += 1

    def total(self, now: float) -> int:
        """The count over the window that ends now."""
        if now >= self.edge:
            self.turn(now)
        return self._sum + self.count

    def turn(self, now: float) -> None:
        """Begin the bucket that `now` falls into; let go of those that have left the window."""
        edge = self.edge
        if now >= edge + self._step * (BUCKETS - 1):
            self._ring.clear()
            self._sum = 0
            self.edge = now + self._step
        else:
            steps = int((now - edge) / self._step) + 1
            self._ring.append(self.count)
            self._ring.extend([0] * (steps - 1))
            self._sum += self.count
            while len(self._ring) >= BUCKETS:
                self._sum -= self._ring.popleft()
            self.edge = edge + steps * self._step
        self.count = 0
