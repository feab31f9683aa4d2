"""Each endpoint in turn, as often as its weight says."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar

from gateway.balance.endpoint import Endpoint
from gateway.balance.policies.policy import Pick, Rng


@dataclass(frozen=True, slots=True)
class Weighted:
    """Smooth weighted round robin by `Endpoint.weight`: the turns of a heavy endpoint are spread, not bunched.

    Invariants: while the ready endpoints stay the same, any sum(weights) consecutive choices by whole weights name each
    endpoint exactly as often as its weight; weight 0 is chosen only when no ready endpoint has more.
    """

    sticky_target: ClassVar[bool] = False
    uses_load: ClassVar[bool] = False

    def picker(self) -> Pick:
        """Start with nobody owed anything."""
        return Credits().pick


class Credits:
    """What each endpoint is owed: everyone earns its weight, the richest is chosen and pays the sum."""

    __slots__ = ("_credit",)

    def __init__(self) -> None:
        """Start with nobody owed anything."""
        self._credit: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._credit)

    def pick(self, ready: Sequence[Endpoint], key: bytes | None, rng: Rng) -> Endpoint:  # noqa: ARG002 - the seam
        """Choose the endpoint that is owed most."""
        credit = self._credit
        total = 0.0
        best = ready[0]
        most = -inf
        for endpoint in ready:
            weight = endpoint.weight
            total += weight
            owed = credit.get(endpoint.order, 0.0) + weight
            credit[endpoint.order] = owed
            if owed > most and weight > 0:
                most = owed
                best = endpoint
        credit[best.order] -= total
        if len(credit) > 2 * len(ready) + 64:
            # Endpoints come and go with a name's addresses; what is owed to those that are away is forgotten.
            self._credit = {endpoint.order: credit[endpoint.order] for endpoint in ready}
        return best
