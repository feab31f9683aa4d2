"""A named group of replicas of one software, and who among them may take one more request."""

from bisect import insort
from collections.abc import Collection, Iterable
from operator import attrgetter
from typing import Final

from engines.profile import EngineKind
from gateway.balance.endpoint import UNLIMITED, Endpoint, EndpointState, Notice, StateChange

_POSITION: Final = attrgetter("position")
_SERVING: Final = frozenset({EndpointState.UNKNOWN, EndpointState.UP})


def _unheard(change: StateChange) -> None:
    """Drop the fact: nobody asked for it."""


class Engine:
    """The endpoints of one engine.

    Invariant: `ready` holds, in order, exactly those endpoints that serve (UNKNOWN or UP) and have room for one more
    request. It changes only when an endpoint fills up, gets room again, or changes its state, so the choice itself
    never looks at states.
    """

    __slots__ = ("endpoints", "kind", "name", "notice", "ready", "version")

    def __init__(
        self, name: str, kind: EngineKind, endpoints: Iterable[Endpoint], *, notice: Notice = _unheard
    ) -> None:
        """Take over `endpoints`; `notice` is called with each change of state and must only note it down."""
        self.name = name
        self.kind = kind
        self.version: str | None = None
        self.notice = notice
        self.endpoints = list(endpoints)
        self.ready: list[Endpoint] = []
        for position, endpoint in enumerate(self.endpoints):
            endpoint.position = position
            self.place(endpoint)

    def candidates(self, tried: Collection[Endpoint]) -> list[Endpoint]:
        """The ready endpoints that have not been tried; the list must not be changed."""
        if not tried:
            return self.ready
        return [endpoint for endpoint in self.ready if endpoint not in tried]

    def place(self, endpoint: Endpoint) -> None:
        """Put `endpoint` into `ready` or take it out, as its state and its load now say."""
        limit = endpoint.max_in_flight
        endpoint.ceiling = UNLIMITED if limit is None else limit
        fit = endpoint.state in _SERVING and endpoint.in_flight < endpoint.ceiling
        if fit and not endpoint.placed:
            insort(self.ready, endpoint, key=_POSITION)
        elif endpoint.placed and not fit:
            self.ready.remove(endpoint)
        endpoint.placed = fit

    def set_state(self, endpoint: Endpoint, state: EndpointState, reason: str, now: float) -> None:
        """Record a new state; says so once if it differs from the old one."""
        old = endpoint.state
        endpoint.reason = reason
        if state is old:
            return
        endpoint.state = state
        self.place(endpoint)
        self.notice(StateChange(self.name, endpoint, old, state, reason, now))
