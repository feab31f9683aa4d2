"""How many requests an endpoint may have at once while it warms up after a recovery."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True)
class SlowStart:
    """`duration` seconds from recovery to a full share; 0 switches it off. The ceiling moves every `step` seconds."""

    duration: float = 10.0
    step: float = 0.25


def warm_ceiling(settings: SlowStart, age: float, others: Sequence[int]) -> int | None:
    """The most requests in flight for an endpoint that came back `age` seconds ago; None: no limit (any more).

    `others` are the requests in flight on the endpoints that serve at full share. The ceiling is their mean times the
    part of the duration that has passed, so no policy can pile everything on the one replica that happens to be empty.

    Invariants: at least 1; never above the mean of the others (rounded up); grows with age; None if nobody else serves.
    """
    if age >= settings.duration or not others:
        return None
    return max(1, ceil(sum(others) / len(others) * max(0.0, age) / settings.duration))
