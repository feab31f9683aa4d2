"""The endpoint with the fewest requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from sys import maxsize
from typing import ClassVar, Final

from gateway.balance.endpoint import Endpoint
from gateway.balance.policies.policy import Pick, Rng

EXACT: Final = 16
"""Up to this many endpoints all are compared; beyond it, this many per choice."""


@dataclass(frozen=True, slots=True)
class LeastRequests:
    """The endpoint with the least load; equals take turns.

    Invariants: up to `EXACT` ready endpoints the choice has the least load of all. With more, it has the least load of
    the next `EXACT` in rotation, and every endpoint is compared at least once in n choices: the cost stays flat.
    """

    sticky_target: ClassVar[bool] = False
    uses_load: ClassVar[bool] = True

    def picker(self) -> Pick:
        """Start with the first endpoint."""
        return _Least().pick


class _Least:
    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = -1

    def pick(self, ready: Sequence[Endpoint], key: bytes | None, rng: Rng) -> Endpoint:  # noqa: ARG002 - the seam
        if len(ready) > EXACT:
            return self._pick_from_many(ready)
        last = self._last
        at = 0
        least = ready[0].in_flight + ready[0].extra
        for index, endpoint in enumerate(ready):
            load = endpoint.in_flight + endpoint.extra
            # Among equals the first one after the previous choice wins, else the first of all.
            if load < least or (load == least and at <= last < index):
                least = load
                at = index
        self._last = at
        return ready[at]

    def _pick_from_many(self, ready: Sequence[Endpoint]) -> Endpoint:
        count = len(ready)
        start = (self._last + 1) % count
        at = start
        least = maxsize
        for step in range(start, start + EXACT):
            index = step if step < count else step - count
            endpoint = ready[index]
            load = endpoint.in_flight + endpoint.extra
            if load < least:
                least = load
                at = index
        self._last = at
        return ready[at]
