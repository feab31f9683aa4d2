from gateway.balance import evidence
from gateway.balance.breaker import Position
from gateway.balance.endpoint import Endpoint, EndpointState, StateChange
from gateway.balance.engine import Resilience, Tier
from gateway.balance.load import LoadReport
from gateway.balance.outcome import SERVED, Broken
from gateway.balance.slow_start import SlowStart
from tests.unit.gateway.balance.making import endpoints, engine, lease, route


def test_a_drained_endpoint_gets_nothing_more_and_keeps_what_it_has() -> None:
    facts: list[StateChange] = []
    qwen = engine(2, facts=facts)
    chat = route(qwen)
    running = [lease(chat) for _ in range(4)]
    first, second = qwen.endpoints
    assert qwen.drain(1.0, first.url) == [first]
    assert {lease(chat, 1.0).endpoint for _ in range(4)} == {second}
    assert first.in_flight == 2
    for each in running:
        each.end(SERVED, 2.0)
    assert first.in_flight == 0
    assert [(fact.endpoint, fact.old, fact.new) for fact in facts] == [
        (first, EndpointState.UNKNOWN, EndpointState.DRAINING)
    ]


def test_draining_twice_is_said_once_and_undraining_takes_all_back() -> None:
    facts: list[StateChange] = []
    qwen = engine(3, facts=facts)
    assert qwen.drain(1.0) == qwen.endpoints
    assert qwen.drain(2.0) == []
    assert qwen.ready == []
    assert qwen.undrain(3.0) == qwen.endpoints
    assert qwen.ready == qwen.endpoints
    assert len(facts) == 6


def test_new_addresses_join_and_old_ones_leave_without_dropping_what_runs() -> None:
    qwen = engine(2)
    chat = route(qwen)
    stays, leaves = qwen.endpoints
    running = [lease(chat), lease(chat)]
    wanted = [Endpoint(stays.url), Endpoint("http://10.0.0.9:8000"), Endpoint("http://10.0.0.9:8000")]
    assert qwen.update(wanted, 1.0) == [leaves]
    assert [endpoint.url for endpoint in qwen.endpoints] == [stays.url, "http://10.0.0.9:8000"]
    assert qwen.endpoints[0] is stays
    assert stays.in_flight == leaves.in_flight == 1
    for each in running:
        each.end(Broken(500), 2.0)
    assert stays.in_flight == leaves.in_flight == 0
    assert leaves not in qwen.ready
    assert leaves.state is EndpointState.DRAINING


def test_what_leaves_can_come_back_as_a_new_endpoint() -> None:
    qwen = engine(2)
    kept, gone = qwen.endpoints
    qwen.update([kept], 1.0)
    qwen.update([kept, Endpoint(gone.url)], 2.0)
    assert [endpoint.url for endpoint in qwen.endpoints] == [kept.url, gone.url]
    assert qwen.endpoints[1] is not gone
    assert qwen.ready == qwen.endpoints


def test_a_recovered_endpoint_is_fed_slowly_while_others_serve() -> None:
    """Its requests in flight grow with time towards the mean of the others."""
    qwen = engine(3, resilience=Resilience(slow_start=SlowStart(10.0)))
    chat = route(qwen)
    cold = qwen.endpoints[0]
    for now in (0.0, 1.0, 2.0):
        evidence.check_failed(qwen, cold, "no answer", now)
    steady = [lease(chat, 3.0) for _ in range(40)]
    for now in (3.0, 4.0):
        evidence.check_passed(qwen, cold, now)
    assert cold.state is EndpointState.UP
    grown = []
    for now in (4.0, 6.0, 9.0, 13.9, 14.1):
        steady += [lease(chat, now) for _ in range(30)]
        grown.append(cold.in_flight)
        assert cold.in_flight <= max(1, sum(e.in_flight for e in qwen.endpoints[1:]) / 2) or now > 14.0
    assert grown[0] == 1
    assert grown == sorted(grown)
    assert grown[-1] >= grown[0] + 10
    for each in steady:
        each.end(SERVED, 20.0)
    assert [endpoint.in_flight for endpoint in qwen.endpoints] == [0, 0, 0]


def test_slow_start_refuses_nobody() -> None:
    """When the others are full, the warming endpoint takes what it can."""
    qwen = engine(2, limit=3, resilience=Resilience(slow_start=SlowStart(10.0)))
    chat = route(qwen)
    evidence.check_passed(qwen, qwen.endpoints[1], 0.0)
    for now in (0.0, 1.0, 2.0):
        evidence.check_failed(qwen, qwen.endpoints[0], "no answer", now)
    for now in (3.0, 4.0):
        evidence.check_passed(qwen, qwen.endpoints[0], now)
    assert [lease(chat, 4.0).endpoint.in_flight for _ in range(6)]
    assert [endpoint.in_flight for endpoint in qwen.endpoints] == [3, 3]


def test_reported_load_counts_until_it_is_stale() -> None:
    qwen = engine(2)
    first = qwen.endpoints[0]
    evidence.report_load(qwen, first, LoadReport(running=5, waiting=1, kv_use=0.1, own=0, at=0.0), 0.0)
    assert first.load == 6
    qwen.refresh(10.0)
    assert first.load == 3
    qwen.refresh(qwen.due)
    assert first.load == 0


def test_candidates_of_a_tier_leave_out_what_was_tried() -> None:
    qwen = engine(3)
    assert qwen.candidates(Tier.READY, qwen.endpoints[:2]) == qwen.endpoints[2:]
    assert qwen.candidates(Tier.SPARE, qwen.endpoints[:2]) == qwen.endpoints[2:]
    assert qwen.candidates(Tier.EJECTED, ()) == []


def test_an_endpoint_that_is_adopted_starts_closed_and_unknown() -> None:
    fresh = endpoints(1)
    fresh[0].breaker.open(0.0)
    qwen = engine(0)
    qwen.update(fresh, 1.0)
    assert fresh[0].breaker.position is Position.CLOSED
    assert fresh[0].state is EndpointState.UNKNOWN


def test_when_healthy_endpoints_leave_no_more_than_half_of_the_rest_stay_ejected() -> None:
    qwen = engine(4)
    chat = route(qwen)
    for bad in qwen.endpoints[:2]:
        for _ in range(5):
            lease(chat, tried=tuple(other for other in qwen.endpoints if other is not bad)).end(Broken(500), 0.0)
    assert [endpoint.state for endpoint in qwen.endpoints].count(EndpointState.EJECTED) == 2
    qwen.update(qwen.endpoints[:2], 1.0)
    assert [endpoint.state for endpoint in qwen.endpoints].count(EndpointState.EJECTED) == 1


def test_an_ejection_within_the_limit_outlasts_a_change_of_addresses() -> None:
    qwen = engine(6)
    chat = route(qwen)
    for bad in qwen.endpoints[:2]:
        for _ in range(5):
            lease(chat, tried=tuple(other for other in qwen.endpoints if other is not bad)).end(Broken(500), 0.0)
    qwen.update([*qwen.endpoints, Endpoint("http://10.0.0.9:8000")], 1.0)
    assert [endpoint.state for endpoint in qwen.endpoints].count(EndpointState.EJECTED) == 2
