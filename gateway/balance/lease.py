"""The right to send one attempt to one endpoint."""

from dataclasses import dataclass

import msgspec

from gateway.balance import evidence
from gateway.balance.endpoint import Endpoint
from gateway.balance.engine import Engine
from gateway.balance.outcome import SERVED, Outcome


@dataclass(frozen=True, slots=True)
class Target:
    """Where a model runs: an engine, the engine's name for the model, and the share of the route's requests."""

    engine: Engine
    model: str
    weight: float = 1.0


class LeaseEndedError(RuntimeError):
    """A lease was ended twice: the caller has lost track of an attempt."""


class Lease(msgspec.Struct, eq=False):
    """One attempt in flight, made by `lease`.

    Invariant: every lease is ended exactly once, and then its endpoint's `in_flight` is what it was without it.
    """

    endpoint: Endpoint
    target: Target
    _term: int | None
    """The term of the endpoint's breaker that the attempt counts in; None: in no term."""

    _ended: bool = False

    def proven(self, now: float) -> None:
        """Say that the answer has begun to arrive: a half-open endpoint need not wait for the end of a long stream."""
        self._term = evidence.prove(self.target.engine, self.endpoint, self._term, now)

    def end(self, outcome: Outcome, now: float) -> None:
        """Give the place back and judge the endpoint by `outcome`. Raises LeaseEndedError the second time."""
        if self._ended:
            raise LeaseEndedError(self.endpoint.url)
        self._ended = True
        endpoint = self.endpoint
        count = endpoint.in_flight
        endpoint.in_flight = count - 1
        if outcome is SERVED and count < endpoint.ceiling:
            breaker = endpoint.breaker
            if self._term == breaker.term:
                breaker.served(now)
        else:
            evidence.settle(self.target.engine, endpoint, self._term, outcome, now)


def lease(endpoint: Endpoint, target: Target) -> Lease:
    """Count an attempt in; only `Route.acquire` makes leases."""
    endpoint.in_flight = count = endpoint.in_flight + 1
    # Below the ceiling the breaker is closed, so everything that could need a closer look is at or above it.
    if count < endpoint.ceiling:
        return Lease(endpoint, target, endpoint.breaker.term)
    return Lease(endpoint, target, target.engine.fill(endpoint))
