"""The cores at work with each other, in simulated time: requests, failing replicas, health checks and retries."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from random import Random

import pytest

from gateway.balance import evidence
from gateway.balance.endpoint import Endpoint, EndpointState
from gateway.balance.engine import Resilience
from gateway.balance.lease import Lease
from gateway.balance.outcome import REFUSED, SERVED, Broken, Outcome, Overloaded
from gateway.balance.policies import POLICIES
from gateway.balance.retry import Attempts, GiveUp, RetryBudget, RetrySettings, decide
from tests.unit.gateway.balance.making import engine, route

Behaviour = Callable[[int, float], Outcome]
"""What the replica with this number answers at this time."""


class Traffic:
    """Requests at a steady rate to three replicas, each taking 50 ms per answer; failures are at once."""

    def __init__(self, policy: str, behaviour: Behaviour) -> None:
        self.engine = engine(3, resilience=Resilience())
        self.route = route(self.engine, policy=POLICIES[policy]())
        self.behaviour = behaviour
        self.settings = RetrySettings()
        self.budget = RetryBudget(self.settings, 0.0)
        self.rng = Random(1).random
        self.running: list[tuple[float, int, Lease]] = []
        self.numbers = count()
        self.lost: list[str] = []
        self.attempts = [0, 0, 0]
        self.late = [0, 0, 0]

    def run(self, seconds: float, rate: float) -> None:
        for step in range(int(seconds * rate)):
            now = step / rate
            self.finish(now)
            self.check(now)
            self.budget.request(now)
            self.request(b"user-%d" % (step % 97), now)
        self.finish(seconds + 60.0)

    def finish(self, now: float) -> None:
        while self.running and self.running[0][0] <= now:
            at, _, lease = heappop(self.running)
            number = self.engine.endpoints.index(lease.endpoint)
            lease.end(SERVED if self.behaviour(number, at) is SERVED else Broken(died=True), at)

    def check(self, now: float) -> None:
        for number, endpoint in enumerate(self.engine.endpoints):
            if endpoint.check.due <= now:
                if self.behaviour(number, now) == REFUSED:
                    evidence.check_failed(self.engine, endpoint, "connection refused", now, refused=True)
                else:
                    evidence.check_passed(self.engine, endpoint, now)
        evidence.sweep(self.engine, now)

    def request(self, key: bytes, now: float) -> None:
        history = Attempts()
        tried: list[Endpoint] = []
        while True:
            lease = self.route.acquire(key, now, self.rng, tried)
            if not isinstance(lease, Lease):
                self.lost.append(lease.reason)
                return
            number = self.engine.endpoints.index(lease.endpoint)
            self.attempts[number] += 1
            self.late[number] += now >= 50.0
            tried.append(lease.endpoint)
            outcome = self.behaviour(number, now)
            if outcome is SERVED:
                heappush(self.running, (now + 0.05, next(self.numbers), lease))
                return
            lease.end(outcome, now)
            decision = decide(outcome, history, self.budget, self.settings, now, self.rng)
            if isinstance(decision, GiveUp):
                self.lost.append(decision.reason)
                return


POLICY_NAMES = sorted(POLICIES)


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_nothing_is_lost_while_one_of_three_flaps(policy: str) -> None:
    """Gone and back every seven seconds, at 200 requests a second."""
    traffic = Traffic(policy, lambda number, now: REFUSED if number == 0 and int(now / 7) % 2 else SERVED)
    traffic.run(60.0, 200.0)
    assert traffic.lost == []
    assert [endpoint.in_flight for endpoint in traffic.engine.endpoints] == [0, 0, 0]


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_a_replica_that_always_fails_is_hardly_asked_and_costs_nobody_an_answer(policy: str) -> None:
    """Its health check passes all the while."""
    traffic = Traffic(policy, lambda number, _: Broken(500) if number == 0 else SERVED)
    traffic.run(60.0, 100.0)
    assert traffic.lost == []
    assert traffic.attempts[0] <= 5 + 5
    assert traffic.engine.endpoints[0].state is EndpointState.EJECTED


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_a_replica_that_recovers_is_back_at_its_share(policy: str) -> None:
    traffic = Traffic(policy, lambda number, now: Broken(500) if number == 0 and now < 20.0 else SERVED)
    traffic.run(60.0, 100.0)
    assert traffic.lost == []
    assert all(endpoint.state is EndpointState.UP for endpoint in traffic.engine.endpoints)
    # Prompts that were sent elsewhere meanwhile have their beginning cached there, and stay.
    assert traffic.late[0] > (0 if policy == "prefix_affinity" else 200)


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_when_all_are_full_retries_stay_within_their_budget(policy: str) -> None:
    """Nobody is ejected for being full, and everybody serves as soon as there is room."""
    traffic = Traffic(policy, lambda _, now: Overloaded() if 10.0 <= now < 20.0 else SERVED)
    traffic.run(40.0, 100.0)
    requests = 4000
    assert len(traffic.lost) == 1000
    assert sum(traffic.attempts) - requests <= 10.0 * 11 + 0.2 * 1000 * 2
    assert all(endpoint.state is EndpointState.UP for endpoint in traffic.engine.endpoints)
