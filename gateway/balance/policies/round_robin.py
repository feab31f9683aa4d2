"""Each endpoint in turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gateway.balance.endpoint import Endpoint
from gateway.balance.policies.policy import Pick, Rng


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """Each ready endpoint in turn.

    Invariant: while the ready endpoints stay the same, any n consecutive choices among n endpoints name each once.
    """

    sticky_target: ClassVar[bool] = False
    uses_load: ClassVar[bool] = False

    def picker(self) -> Pick:
        """Start a new round at the first endpoint."""
        return _Round().pick


class _Round:
    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next = 0

    def pick(self, ready: Sequence[Endpoint], key: bytes | None, rng: Rng) -> Endpoint:  # noqa: ARG002 - the seam
        at = self._next
        if at >= len(ready):
            at = 0
        self._next = at + 1
        return ready[at]
