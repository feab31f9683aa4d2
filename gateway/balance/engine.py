"""A named group of replicas of one software, and who among them may take one more request."""

from bisect import insort
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from math import inf
from operator import attrgetter
from typing import Final, assert_never

from engines.profile import EngineKind
from gateway.balance.breaker import BreakerSettings, Position
from gateway.balance.endpoint import NEVER, UNLIMITED, Endpoint, EndpointState, Notice, StateChange
from gateway.balance.health import Health, HealthSettings
from gateway.balance.load import next_change
from gateway.balance.outlier import OutlierSettings, ejection_limit
from gateway.balance.slow_start import SlowStart, warm_ceiling

BY_OPERATOR: Final = "drained by an operator"
SERVING: Final = frozenset({EndpointState.UNKNOWN, EndpointState.UP})
_ORDER: Final = attrgetter("order")


@dataclass(frozen=True, slots=True)
class Resilience:
    """How an engine's endpoints are judged. `busy_pause`: seconds that an endpoint which says it is full is spared.

    `warm_up`: one that joins or comes back serves only when it has answered a request that was made for it.
    """

    breaker: BreakerSettings = field(default_factory=BreakerSettings)
    health: HealthSettings = field(default_factory=HealthSettings)
    outlier: OutlierSettings = field(default_factory=OutlierSettings)
    slow_start: SlowStart = field(default_factory=SlowStart)
    warm_up: bool = False
    busy_pause: float = 1.0
    longest_busy_pause: float = 10.0


class Tier(Enum):
    """Who is asked first.

    READY: serves and has room. SPARE: serves and has room, but is warming up or has just said that it is full.
    EJECTED: passively ejected; the last resort, so that no breaker turns away a request which nobody else could take.
    """

    READY = auto()
    SPARE = auto()
    EJECTED = auto()


def _unheard(change: StateChange) -> None:
    """Drop the fact: nobody asked for it."""


class Engine:
    """The endpoints of one engine.

    Invariants:
    - `ready` holds, in order, exactly the endpoints that serve (UNKNOWN or UP), have room for one more request, do not
      exceed their slow start and have not just said that they are full; and those half-open with a trial to give.
    - The state is DRAINING if it drains, else DOWN if the health checks say so, else EJECTED unless the breaker is
      closed, else UP or UNKNOWN as the checks say. A draining or down endpoint has a closed breaker.
    - While the whole engine is drained, endpoints that join drain from the start, but for those at `spared` URLs: they
      were taken back after that.
    - An endpoint that leaves the engine keeps its leases; they end as if it were still there.
    - Slow start and the pause after "full" only change who is asked first: no first attempt is refused because of them.
    """

    __slots__ = (
        "_orders",
        "drain_reason",
        "due",
        "endpoints",
        "kind",
        "name",
        "notice",
        "ready",
        "resilience",
        "spared",
        "version",
    )

    def __init__(
        self,
        name: str,
        kind: EngineKind,
        endpoints: Iterable[Endpoint],
        *,
        resilience: Resilience = Resilience(),
        notice: Notice = _unheard,
    ) -> None:
        """Take over `endpoints`; `notice` is called with each change of state and must only note it down.

        `due` is the next time at which `refresh` would change anything.
        """
        self.name = name
        self.kind = kind
        self.version: str | None = None
        self.resilience = resilience
        self.notice = notice
        self.due = inf
        self.drain_reason = ""
        self.spared: set[str] = set()
        self.endpoints: list[Endpoint] = []
        self.ready: list[Endpoint] = []
        self._orders = 0
        for endpoint in endpoints:
            self._adopt(endpoint)

    def _adopt(self, endpoint: Endpoint) -> None:
        endpoint.equip(self.resilience.breaker, self.resilience.health)
        if self.resilience.warm_up:
            endpoint.cold = True
            endpoint.state, endpoint.reason = _state_of(endpoint)
        endpoint.order = self._orders
        self._orders += 1
        self.endpoints.append(endpoint)
        self.place(endpoint)

    # -- who may take a request ---------------------------------------------------------------------------------------

    def candidates(self, tier: Tier, tried: Collection[Endpoint]) -> list[Endpoint]:
        """The endpoints of one tier that have not been tried; the list must not be changed or kept."""
        match tier:
            case Tier.READY:
                return [endpoint for endpoint in self.ready if endpoint not in tried] if tried else self.ready
            case Tier.SPARE:
                states: Collection[EndpointState] = SERVING
            case Tier.EJECTED:
                states = (EndpointState.EJECTED,)
            case _:
                assert_never(tier)
        found = [e for e in self.endpoints if e.state in states and e.in_flight < e.limit and e not in tried]
        # A retry does not go where the engine has asked not to be asked (Retry-After); a first attempt may have to.
        return [endpoint for endpoint in found if not endpoint.asked_off] if tried else found

    def fill(self, endpoint: Endpoint) -> int | None:
        """Note that a lease has reached the ceiling; the breaker's term that the lease counts in, None: in no term."""
        breaker = endpoint.breaker
        term: int | None = breaker.term
        if breaker.position is not Position.CLOSED:
            if breaker.trials_free > 0:
                breaker.begin_trial()
            else:
                term = None
        self.place(endpoint)
        return term

    def place(self, endpoint: Endpoint) -> None:
        """Put `endpoint` into `ready` or take it out, as its state and its load now say."""
        if endpoint.state in SERVING:
            ceiling = min(endpoint.limit, endpoint.warm_limit)
            fit = endpoint.in_flight < ceiling
        else:
            ceiling = 0
            fit = endpoint.breaker.trials_free > 0 and endpoint.in_flight < endpoint.limit
        fit = fit and endpoint.busy_until == NEVER
        endpoint.ceiling = ceiling
        if fit and not endpoint.placed:
            insort(self.ready, endpoint, key=_ORDER)
        elif endpoint.placed and not fit:
            self.ready.remove(endpoint)
        endpoint.placed = fit

    def refresh(self, now: float) -> None:
        """Do what time alone does: trials begin, pauses end, endpoints warm up, load reports age."""
        due = inf
        warming = [endpoint for endpoint in self.endpoints if self._is_warming(endpoint, now)]
        steady = [e.in_flight for e in self.endpoints if e.state in SERVING and e.warm_since == NEVER]
        for endpoint in warming:
            limit = warm_ceiling(self.resilience.slow_start, now - endpoint.warm_since, steady)
            endpoint.warm_limit = UNLIMITED if limit is None else limit
            due = now + self.resilience.slow_start.step
        for endpoint in self.endpoints:
            if endpoint.breaker.reopens_at <= now:
                endpoint.breaker.half_open()
                self.restate(endpoint, now)
            if endpoint.busy_until <= now:
                endpoint.busy_until = NEVER
                endpoint.asked_off = False
            elif endpoint.busy_until < due:
                due = endpoint.busy_until
            endpoint.extra = endpoint.foreign(now)
            change = None if endpoint.report is None else next_change(endpoint.report, now)
            due = min(due, endpoint.breaker.reopens_at, inf if change is None else change)
            self.place(endpoint)
        self.due = due

    def _is_warming(self, endpoint: Endpoint, now: float) -> bool:
        if endpoint.warm_since == NEVER:
            return False
        if endpoint.state in SERVING and now - endpoint.warm_since < self.resilience.slow_start.duration:
            return True
        endpoint.warm_since = NEVER
        endpoint.warm_limit = UNLIMITED
        return False

    # -- states -------------------------------------------------------------------------------------------------------

    def restate(self, endpoint: Endpoint, now: float, *, circuit_moved: bool = True) -> None:
        """Derive the state from drain, health and breaker; say so once if it, or the breaker's position, moved."""
        old = endpoint.state
        endpoint.state, endpoint.reason = _state_of(endpoint)
        if endpoint.state in SERVING and old not in SERVING:
            endpoint.warm_since = now
        self.due = min(self.due, now, endpoint.breaker.reopens_at)
        self.place(endpoint)
        if circuit_moved or endpoint.state is not old:
            position = endpoint.breaker.position
            self.notice(StateChange(self.name, endpoint, old, endpoint.state, position, endpoint.reason, now))

    def adjust(self, resilience: Resilience, now: float) -> None:
        """Judge by other settings from here on; what is known of the endpoints stays known."""
        self.resilience = resilience
        for endpoint in self.endpoints:
            endpoint.check.adjust(resilience.health)
            endpoint.breaker.adjust(resilience.breaker)
            if endpoint.cold and not resilience.warm_up:
                endpoint.cold = False
                self.restate(endpoint, now, circuit_moved=False)
            self.place(endpoint)
        self.due = min(self.due, now)

    # -- membership ---------------------------------------------------------------------------------------------------

    def drain(self, now: float, url: str | None = None, reason: str = BY_OPERATOR) -> list[Endpoint]:
        """Give no more requests to the endpoint at `url`, or to all; what runs goes on. Returns those it applies to."""
        if url is None:
            self.drain_reason = reason
            self.spared.clear()
        else:
            self.spared.discard(url)
        return [endpoint for endpoint in self._at(url) if self._set_drain(endpoint, reason, now)]

    def undrain(self, now: float, url: str | None = None) -> list[Endpoint]:
        """Take the endpoint at `url`, or all, back into service. Returns those it applies to."""
        if url is None:
            self.drain_reason = ""
            self.spared.clear()
        elif self.drain_reason:
            self.spared.add(url)
        return [endpoint for endpoint in self._at(url) if self._set_drain(endpoint, "", now)]

    def settle(self, drained: Mapping[str | None, bool], now: float) -> None:
        """Make true, in one step, what was said of endpoints by URL, and with None of all others; the rest stays.

        Said one after the other, orders would drain for a moment what the next one takes back.
        """
        if None in drained:
            self.drain_reason = BY_OPERATOR if drained[None] else ""
        self.spared = {url for url, drain in drained.items() if url is not None and self.drain_reason and not drain}
        for endpoint in self.endpoints:
            drain = drained.get(endpoint.url, drained.get(None))
            if drain is not None:
                self._set_drain(endpoint, BY_OPERATOR if drain else "", now)

    def _at(self, url: str | None) -> list[Endpoint]:
        return [endpoint for endpoint in self.endpoints if url is None or endpoint.url == url]

    def _set_drain(self, endpoint: Endpoint, reason: str, now: float) -> bool:
        if bool(endpoint.drain_reason) == bool(reason):
            return False
        endpoint.drain_reason = reason
        if endpoint.breaker.position is not Position.CLOSED:
            endpoint.breaker.close()
        self.restate(endpoint, now)
        return True

    def update(self, wanted: Iterable[Endpoint], now: float) -> list[Endpoint]:
        """Make the members those of `wanted`, in their order and with their limits and weights.

        One whose URL is here already stays, with all its state. Returns the endpoints that have left: they drain, and
        are done when nothing is in flight on them.
        """
        known = {endpoint.url: endpoint for endpoint in self.endpoints}
        kept: dict[str, Endpoint] = {}
        for endpoint in wanted:
            if endpoint.url in kept:
                continue
            here = kept[endpoint.url] = known.get(endpoint.url, endpoint)
            here.max_in_flight, here.weight = endpoint.max_in_flight, endpoint.weight
            if endpoint.url not in known:
                self._adopt(endpoint)
                endpoint.warm_since = now
                self._set_drain(endpoint, "" if endpoint.url in self.spared else self.drain_reason, now)
        gone = [endpoint for url, endpoint in known.items() if url not in kept]
        for endpoint in gone:
            self._set_drain(endpoint, "no longer an address of this engine", now)
            self.endpoints.remove(endpoint)
        self._put_in_order(list(kept.values()))
        self._release(now)
        self.due = min(self.due, now)
        return gone

    def _put_in_order(self, members: list[Endpoint]) -> None:
        """Let the members stand as these do, and see whether their limits still have room."""
        self._orders = len(members)
        for order, endpoint in enumerate(members):
            endpoint.order = order
        self.endpoints.sort(key=_ORDER)
        self.ready.sort(key=_ORDER)
        for endpoint in members:
            self.place(endpoint)

    def _release(self, now: float) -> None:
        """Take back endpoints that are ejected beyond the limit, because others have left; the next due first."""
        ejected = [endpoint for endpoint in self.endpoints if endpoint.state is EndpointState.EJECTED]
        ejected.sort(key=lambda endpoint: endpoint.breaker.reopens_at)
        surplus = max(0, len(ejected) - ejection_limit(len(self.endpoints)))
        for endpoint in ejected[:surplus]:
            endpoint.breaker.close()
            self.restate(endpoint, now)


def _state_of(endpoint: Endpoint) -> tuple[EndpointState, str]:
    """The state and the reason an operator reads; both signals are named when they disagree."""
    verdict = endpoint.check.verdict
    if endpoint.drain_reason:
        return EndpointState.DRAINING, endpoint.drain_reason
    if verdict is Health.DOWN:
        return EndpointState.DOWN, endpoint.health_reason
    if endpoint.cold:
        return EndpointState.DOWN, endpoint.health_reason or "it is not warmed up yet"
    if endpoint.breaker.position is not Position.CLOSED:
        heard = "health check passes" if verdict is Health.UP else "health not known"
        now = "on trial" if endpoint.breaker.position is Position.HALF_OPEN else "circuit open"
        return EndpointState.EJECTED, f"{now}: {endpoint.breaker_reason}; {heard}"
    if verdict is Health.UP:
        return EndpointState.UP, ""
    return EndpointState.UNKNOWN, "not checked yet"
