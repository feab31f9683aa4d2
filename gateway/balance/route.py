"""A model's route: target by weight, endpoint by policy, as a lease."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

from gateway.balance.endpoint import Endpoint, EndpointState
from gateway.balance.lease import Lease, Target
from gateway.balance.policies.policy import Pick, Policy, Rng


@dataclass(frozen=True, slots=True)
class Unavailable:
    """No endpoint can take the request now. `retry_after`: seconds until it may make sense to come again.

    `no_endpoint`: none serves (down, draining, or none configured). `all_busy`: those that serve are at their limit.
    `all_tried`: every endpoint that serves has been tried by this request already.
    """

    reason: Literal["no_endpoint", "all_busy", "all_tried"]
    retry_after: float


class _Slot:
    """A target within its route: its place in the weighted round and its own chooser."""

    __slots__ = ("credit", "engine", "pick", "target")

    def __init__(self, target: Target, pick: Pick) -> None:
        self.target = target
        self.engine = target.engine
        self.pick = pick
        self.credit = 0.0


class Route:
    """What an application asks for by name.

    Invariant: with every target available, the number of requests a target has got never differs from its share
    (weight over the sum of weights) by more than one turn per target.
    """

    __slots__ = ("_slots", "_sole", "created", "model", "policy", "targets", "task")

    def __init__(
        self, model: str, targets: Sequence[Target], policy: Policy, *, task: str = "chat", created: int = 0
    ) -> None:
        """`created` is the time in the model listing (Unix seconds), `task` what the model is for."""
        self.model = model
        self.targets = tuple(targets)
        self.policy = policy
        self.task = task
        self.created = created
        self._slots = [_Slot(target, policy.picker()) for target in self.targets]
        self._sole = self._slots[0] if len(self._slots) == 1 else None

    def acquire(self, key: bytes | None, now: float, rng: Rng, tried: Collection[Endpoint] = ()) -> Lease | Unavailable:
        """Choose an endpoint that this request has not tried yet. The caller must end the lease, exactly once."""
        slot = self._sole
        if slot is not None and not tried:
            ready = slot.engine.ready
            if ready:
                return Lease(slot.pick(ready, key, rng), slot.target)
        return self._search(key, now, rng, tried)

    def _search(self, key: bytes | None, now: float, rng: Rng, tried: Collection[Endpoint]) -> Lease | Unavailable:  # noqa: ARG002
        open_slots = [(slot, found) for slot in self._slots if (found := slot.engine.candidates(tried))]
        if not open_slots:
            return self._unavailable(tried)
        slot, found = _by_weight(open_slots)
        return Lease(slot.pick(found, key, rng), slot.target)

    def _unavailable(self, tried: Collection[Endpoint]) -> Unavailable:
        serving = [
            endpoint
            for slot in self._slots
            for endpoint in slot.engine.endpoints
            if endpoint.state in {EndpointState.UP, EndpointState.UNKNOWN}
        ]
        if not serving:
            return Unavailable("no_endpoint", retry_after=5.0)
        if all(endpoint in tried for endpoint in serving):
            return Unavailable("all_tried", retry_after=1.0)
        return Unavailable("all_busy", retry_after=1.0)


def _by_weight(open_slots: list[tuple[_Slot, list[Endpoint]]]) -> tuple[_Slot, list[Endpoint]]:
    """Smooth weighted turn: everyone earns its weight, the richest pays the sum. Weight 0 serves only when alone."""
    total = 0.0
    best = open_slots[0]
    most = -inf
    for entry in open_slots:
        slot = entry[0]
        weight = slot.target.weight
        total += weight
        slot.credit += weight
        if weight > 0 and slot.credit > most:
            most = slot.credit
            best = entry
    best[0].credit -= total
    return best
