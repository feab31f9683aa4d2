"""The less loaded of two endpoints drawn at random."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gateway.balance.endpoint import Endpoint
from gateway.balance.policies.policy import Pick, Rng


@dataclass(frozen=True, slots=True)
class PowerOfTwo:
    """The less loaded of two different endpoints drawn at random, the first drawn if they are equal.

    It keeps no state, so several gateways that share the endpoints do not march in step as they would with the least
    loaded one, and it costs the same whatever their number. Invariant: with two or more ready endpoints, one that is
    more loaded than every other is never chosen.
    """

    sticky_target: ClassVar[bool] = False
    uses_load: ClassVar[bool] = True

    def picker(self) -> Pick:
        """There is nothing to keep."""
        return _pick


def _pick(ready: Sequence[Endpoint], key: bytes | None, rng: Rng) -> Endpoint:  # noqa: ARG001 - the seam
    count = len(ready)
    first = int(rng() * count)
    if count == 1:
        return ready[0]
    # Of the others, so that the two always differ.
    second = int(rng() * (count - 1))
    if second >= first:
        second += 1
    one = ready[first]
    other = ready[second]
    return other if other.in_flight + other.extra < one.in_flight + one.extra else one
