"""When a first token is late enough to ask another endpoint as well.

Invariants:
- Nothing is late before `least` first tokens are known.
- The patience is one of the last `kept` times; when it is worked out, at least `share` of them are not longer.
- It is at most `REFRESH` times old.
"""

from bisect import bisect_left, insort
from collections import deque
from math import ceil
from typing import Final

REFRESH: Final = 16
"""New times after which the patience is worked out again."""


class FirstTokens:
    """How long the last streams of a model took to their first token, in seconds.

    A stream that another one has overtaken is noted with the time that it had had by then: it would have taken at least
    as long, and without it the slow ones would be missing and the patience would shrink with every hedge.
    """

    __slots__ = ("_least", "_news", "_ordered", "_patience", "_share", "_times")

    def __init__(self, share: float = 0.95, *, kept: int = 256, least: int = 20) -> None:
        """Nothing is known yet. `kept` bounds the memory."""
        self._share = share
        self._least = least
        self._times: deque[float] = deque(maxlen=kept)
        self._ordered: list[float] = []
        self._patience: float | None = None
        self._news = 0

    def note(self, seconds: float) -> None:
        """One more stream has begun, or was overtaken, after that time."""
        times, ordered = self._times, self._ordered
        if len(times) == times.maxlen:
            del ordered[bisect_left(ordered, times[0])]
        times.append(seconds)
        insort(ordered, seconds)
        self._news += 1
        if len(ordered) >= self._least and (self._patience is None or self._news >= REFRESH):
            self._news = 0
            self._patience = ordered[ceil(self._share * len(ordered)) - 1]

    @property
    def patience(self) -> float | None:
        """Seconds after which a first token is late; None while too little is known."""
        return self._patience
