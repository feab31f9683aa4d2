"""A model's route: target by weight, endpoint by policy, as a lease."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

from gateway.balance.endpoint import Endpoint, EndpointState
from gateway.balance.engine import SERVING, Engine, Tier
from gateway.balance.lease import Lease, Target, lease
from gateway.balance.policies.hashing import weighted_score
from gateway.balance.policies.policy import Pick, Policy, Rng


@dataclass(frozen=True, slots=True)
class Unavailable:
    """No endpoint can take the request now. `retry_after`: seconds until it may make sense to come again.

    `no_endpoint`: none serves (down, draining, or none configured). `all_busy`: those that serve are at their limit,
    or, for a retry, have asked to be left alone for now.
    `all_tried`: every endpoint that serves has been tried by this request already.
    """

    reason: Literal["no_endpoint", "all_busy", "all_tried"]
    retry_after: float


class _Slot:
    """A target within its route: its place in the weighted round and its own chooser."""

    __slots__ = ("credit", "engine", "label", "pick", "target", "weight")

    def __init__(self, target: Target, pick: Pick) -> None:
        self.target = target
        self.engine = target.engine
        self.weight = target.weight
        self.pick = pick
        self.label = f"{target.engine.name}/{target.model}".encode()
        self.credit = 0.0


class Route:
    """What an application asks for by name.

    Invariant: with every target available, the number of requests a target has got never differs from its share
    (weight over the sum of weights) by more than one turn per target.
    """

    __slots__ = ("_slots", "_sole", "created", "model", "policy", "targets", "task")

    def __init__(
        self,
        model: str,
        targets: Sequence[Target],
        policy: Policy,
        *,
        task: str = "chat",
        created: int = 0,
        follows: "Route | None" = None,
    ) -> None:
        """`created` is the time in the model listing (Unix seconds), `task` what the model is for.

        Targets that `follows` has too, under the same policy, go on with what their choosers remember.
        """
        self.model = model
        self.targets = tuple(targets)
        self.policy = policy
        self.task = task
        self.created = created
        known = {} if follows is None or follows.policy != policy else follows.choosers
        self._slots = [_Slot(target, known.get((target.engine, target.model)) or policy.picker()) for target in targets]
        self._sole = self._slots[0] if len(self._slots) == 1 else None

    @property
    def choosers(self) -> Mapping[tuple[Engine, str], Pick]:
        """The chooser of each target, by engine and the engine's name for the model."""
        return {(slot.engine, slot.target.model): slot.pick for slot in self._slots}

    def acquire(self, key: bytes | None, now: float, rng: Rng, tried: Collection[Endpoint] = ()) -> Lease | Unavailable:
        """Choose an endpoint that this request has not tried yet. The caller must end the lease, exactly once.

        `key` is what an affinity policy keeps together; None if the request has none.
        """
        if not tried:
            slot = self._sole or self._next_ready(key, now)
            if slot is not None:
                engine = slot.engine
                if now >= engine.due:
                    engine.refresh(now)
                ready = engine.ready
                if ready:
                    return lease(slot.pick(ready, key, rng), slot.target)
        return self._search(key, now, rng, tried)

    def _next_ready(self, key: bytes | None, now: float) -> _Slot | None:
        """The target whose turn it is, among those that can take a request without a search."""
        open_slots = []
        for slot in self._slots:
            if now >= slot.engine.due:
                slot.engine.refresh(now)
            if slot.engine.ready:
                open_slots.append(slot)
        return self._choose(open_slots, key)

    def _search(self, key: bytes | None, now: float, rng: Rng, tried: Collection[Endpoint]) -> Lease | Unavailable:
        for slot in self._slots:
            if now >= slot.engine.due:
                slot.engine.refresh(now)
        for tier in (Tier.READY, Tier.SPARE):
            found = self._from_tier(tier, key, rng, tried)
            if found is not None:
                return found
        unavailable = self._unavailable(tried, now)
        if unavailable.reason == "all_busy":
            return unavailable
        return self._from_tier(Tier.EJECTED, key, rng, tried) or unavailable

    def _from_tier(self, tier: Tier, key: bytes | None, rng: Rng, tried: Collection[Endpoint]) -> Lease | None:
        slot = self._choose([slot for slot in self._slots if slot.engine.candidates(tier, tried)], key)
        if slot is None:
            return None
        return lease(slot.pick(slot.engine.candidates(tier, tried), key, rng), slot.target)

    def _choose(self, open_slots: list[_Slot], key: bytes | None) -> _Slot | None:
        if len(open_slots) < 2:
            return open_slots[0] if open_slots else None
        if key is not None and self.policy.sticky_target:
            return _by_key(open_slots, key)
        return _by_weight(open_slots)

    def _unavailable(self, tried: Collection[Endpoint], now: float) -> Unavailable:
        endpoints = [endpoint for slot in self._slots for endpoint in slot.engine.endpoints]
        serving = [endpoint for endpoint in endpoints if endpoint.state in SERVING]
        untried = [endpoint for endpoint in serving if endpoint not in tried]
        if untried:
            pauses = [endpoint.busy_until - now for endpoint in untried if endpoint.asked_off]
            return Unavailable("all_busy", retry_after=max(1.0, min(pauses, default=1.0)))
        if serving:
            return Unavailable("all_tried", retry_after=1.0)
        checks = [endpoint.check.due - now for endpoint in endpoints if endpoint.state is EndpointState.DOWN]
        return Unavailable("no_endpoint", retry_after=min(60.0, max(1.0, min(checks, default=5.0))))


def _by_key(open_slots: list[_Slot], key: bytes) -> _Slot:
    """Weighted rendezvous: a key stays with its target while that has endpoints, and keys spread by weight."""
    return max(open_slots, key=lambda slot: weighted_score(key, slot.label, slot.weight))


def _by_weight(open_slots: list[_Slot]) -> _Slot:
    """Smooth weighted turn: everyone earns its weight, the richest pays the sum. Weight 0 serves only when alone."""
    total = 0.0
    best = open_slots[0]
    most = -inf
    for slot in open_slots:
        weight = slot.weight
        total += weight
        slot.credit = credit = slot.credit + weight
        if credit > most and weight > 0:
            most = credit
            best = slot
    best.credit -= total
    return best
