"""Leases under everything that can happen to an engine, in any order."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.balance import evidence
from gateway.balance.breaker import BreakerSettings, Position
from gateway.balance.endpoint import Endpoint, EndpointState, StateChange
from gateway.balance.engine import SERVING, Resilience
from gateway.balance.lease import Lease, LeaseEndedError
from gateway.balance.outcome import (
    CLIENT_GONE,
    REFUSED,
    SERVED,
    STALE,
    TRUNCATED,
    Broken,
    Outcome,
    Overloaded,
    Phase,
    Rejected,
    TimedOut,
)
from gateway.balance.policies import POLICIES
from gateway.balance.slow_start import SlowStart
from tests.unit.gateway.balance.making import engine, lease, route

OUTCOMES: list[Outcome] = [
    SERVED,
    REFUSED,
    STALE,
    Overloaded(),
    Overloaded(5.0),
    Broken(500),
    Broken(died=True),
    TRUNCATED,
    Rejected(400),
    TimedOut(Phase.FIRST_TOKEN),
    CLIENT_GONE,
]


def test_a_lease_ends_once() -> None:
    qwen = engine(1)
    given = lease(route(qwen))
    given.end(SERVED, 0.0)
    with pytest.raises(LeaseEndedError):
        given.end(SERVED, 0.0)
    assert qwen.endpoints[0].in_flight == 0


class Life(RuleBasedStateMachine):
    """Two engines of a route through requests, failures, checks, drains, new addresses and time."""

    @initialize(policy=st.sampled_from(sorted(POLICIES)), limit=st.none() | st.integers(1, 4), trials=st.integers(1, 3))
    def begin(self, policy: str, limit: int | None, trials: int) -> None:
        resilience = Resilience(
            breaker=BreakerSettings(consecutive=2, volume=6, trials=trials), slow_start=SlowStart(duration=4.0)
        )
        self.facts: list[StateChange] = []
        self.engines = [
            engine(count, name=name, limit=limit, resilience=resilience, facts=self.facts)
            for name, count in (("a", 3), ("b", 2))
        ]
        self.limit = limit
        self.route = route(*self.engines, policy=POLICIES[policy](), weights=(3.0, 1.0))
        self.held: list[Lease] = []
        self.states = {endpoint: endpoint.state for endpoint in self.endpoints()}
        self.now = 0.0

    def endpoints(self) -> list[Endpoint]:
        return [endpoint for each in self.engines for endpoint in each.endpoints]

    @rule(key=st.none() | st.binary(min_size=1, max_size=3), tried=st.integers(0, 31), count=st.integers(1, 4))
    def acquire(self, key: bytes | None, tried: int, count: int) -> None:
        skipped = [endpoint for place, endpoint in enumerate(self.endpoints()) if tried >> place & 1]
        for _ in range(count):
            found = self.route.acquire(key, self.now, lambda: 0.4, skipped)
            left = [endpoint for endpoint in self.endpoints() if endpoint not in skipped]
            serving = [endpoint for endpoint in left if endpoint.state in SERVING]
            if isinstance(found, Lease):
                self.held.append(found)
                assert found.endpoint not in skipped
                assert found.endpoint.state not in {EndpointState.DOWN, EndpointState.DRAINING}
                assert self.limit is None or found.endpoint.in_flight <= self.limit
            elif found.reason == "all_busy":
                assert serving
                assert all(e.in_flight >= e.limit or (skipped and e.asked_off) for e in serving)
            else:
                assert found.retry_after > 0
                assert not serving
                ejected = [e for e in left if e.state is EndpointState.EJECTED]
                assert all(e.in_flight >= e.limit or (skipped and e.asked_off) for e in ejected)

    @precondition(lambda self: self.held)
    @rule(which=st.integers(0, 10**6), outcome=st.sampled_from(OUTCOMES), proven=st.booleans())
    def end(self, which: int, outcome: Outcome, proven: bool) -> None:
        given = self.held.pop(which % len(self.held))
        if proven:
            given.proven(self.now)
        given.end(outcome, self.now)

    @rule(which=st.integers(0, 4), outcome=st.sampled_from(OUTCOMES), times=st.integers(1, 6))
    def burst(self, which: int, outcome: Outcome, times: int) -> None:
        endpoints = self.endpoints()
        others = [other for place, other in enumerate(endpoints) if place != which % len(endpoints)]
        for _ in range(times):
            found = self.route.acquire(None, self.now, lambda: 0.4, others)
            if isinstance(found, Lease):
                found.end(outcome, self.now)

    @rule(which=st.integers(0, 4), good=st.booleans(), times=st.integers(1, 3))
    def check(self, which: int, good: bool, times: int) -> None:
        endpoints = self.endpoints()
        endpoint = endpoints[which % len(endpoints)]
        home = next(each for each in self.engines if endpoint in each.endpoints)
        for _ in range(times):
            if good:
                evidence.check_passed(home, endpoint, self.now)
            else:
                evidence.check_failed(home, endpoint, "503", self.now)

    @rule(which=st.integers(0, 4), back=st.booleans())
    def drain(self, which: int, back: bool) -> None:
        endpoints = self.endpoints()
        url = endpoints[which % len(endpoints)].url
        for each in self.engines:
            (each.undrain if back else each.drain)(self.now, url)

    @rule(numbers=st.sets(st.integers(1, 4), min_size=1, max_size=4))
    def resolve(self, numbers: set[int]) -> None:
        wanted = [Endpoint(f"http://10.0.0.{number}:8000", max_in_flight=self.limit) for number in numbers]
        self.engines[0].update(wanted, self.now)
        self.states |= {endpoint: endpoint.state for endpoint in self.endpoints() if endpoint not in self.states}

    @rule(gap=st.sampled_from([0.1, 1.0, 5.0, 30.0]))
    def pass_time(self, gap: float) -> None:
        self.now += gap

    @rule()
    def sweep(self) -> None:
        for each in self.engines:
            evidence.sweep(each, self.now)

    @invariant()
    def every_lease_is_counted_exactly_where_it_is(self) -> None:
        known = {*self.endpoints(), *(given.endpoint for given in self.held)}
        for endpoint in known:
            assert endpoint.in_flight == sum(given.endpoint is endpoint for given in self.held)

    @invariant()
    def ready_is_exactly_who_may_take_a_request(self) -> None:
        for each in self.engines:
            assert [e.order for e in each.ready] == sorted({e.order for e in each.ready})
            for endpoint in each.endpoints:
                room = endpoint.in_flight < endpoint.limit and endpoint.busy_until < 0
                serves = endpoint.state in SERVING and endpoint.in_flight < endpoint.warm_limit
                assert (endpoint in each.ready) is (room and (serves or endpoint.breaker.trials_free > 0))
            assert set(each.ready) <= set(each.endpoints)

    @invariant()
    def at_most_half_of_an_engine_is_ejected(self) -> None:
        for each in self.engines:
            ejected = [e for e in each.endpoints if e.state is EndpointState.EJECTED]
            assert len(ejected) <= max(1, len(each.endpoints) // 2)
            for endpoint in each.endpoints:
                closed = endpoint.breaker.position is Position.CLOSED
                assert closed is (endpoint.state is not EndpointState.EJECTED)

    @invariant()
    def every_change_of_state_was_said(self) -> None:
        for fact in self.facts:
            assert self.states[fact.endpoint] is fact.old
            self.states[fact.endpoint] = fact.new
        self.facts.clear()
        assert all(self.states[endpoint] is endpoint.state for endpoint in self.endpoints())

    def teardown(self) -> None:
        if hasattr(self, "held"):
            touched = {given.endpoint for given in self.held}
            for given in self.held:
                given.end(CLIENT_GONE, self.now)
            assert all(endpoint.in_flight == 0 for endpoint in touched)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
