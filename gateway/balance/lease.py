"""The right to send one attempt to one endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.balance.endpoint import Endpoint
from gateway.balance.engine import Engine

if TYPE_CHECKING:
    from gateway.balance.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Target:
    """Where a model runs: an engine, the engine's name for the model, and the share of the route's requests."""

    engine: Engine
    model: str
    weight: float = 1.0


class LeaseEndedError(RuntimeError):
    """A lease was ended twice: the caller has lost track of an attempt."""


class Lease:
    """One attempt in flight.

    Invariant: every lease is ended exactly once, and then its endpoint's `in_flight` is what it was without it.
    """

    __slots__ = ("_ended", "endpoint", "target")

    def __init__(self, endpoint: Endpoint, target: Target) -> None:
        """Count the attempt in; only `Route.acquire` makes leases."""
        self.endpoint = endpoint
        self.target = target
        self._ended = False
        count = endpoint.in_flight + 1
        endpoint.in_flight = count
        if count >= endpoint.ceiling:
            target.engine.place(endpoint)

    def end(self, outcome: Outcome, now: float) -> None:  # noqa: ARG002 - judged by the breaker
        """Give the place back and judge the endpoint by `outcome`. Raises LeaseEndedError the second time."""
        if self._ended:
            raise LeaseEndedError(self.endpoint.url)
        self._ended = True
        endpoint = self.endpoint
        count = endpoint.in_flight
        endpoint.in_flight = count - 1
        if count >= endpoint.ceiling:
            self.target.engine.place(endpoint)
