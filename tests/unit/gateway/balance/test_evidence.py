import pytest

from gateway.balance import evidence
from gateway.balance.breaker import Position
from gateway.balance.endpoint import Endpoint, EndpointState, StateChange
from gateway.balance.engine import Engine
from gateway.balance.outcome import (
    CLIENT_GONE,
    REFUSED,
    SERVED,
    STALE,
    Broken,
    Outcome,
    Overloaded,
    Phase,
    Rejected,
    TimedOut,
)
from gateway.balance.route import Route, Unavailable
from tests.unit.gateway.balance.making import NO_SLOW_START, engine, lease, route, trials


def fail(chat: Route, endpoint: Endpoint, times: int, now: float = 0.0, outcome: Outcome = Broken(500)) -> None:  # noqa: B008
    """Send so many requests to one endpoint and let them end like that."""
    others = tuple(other for target in chat.targets for other in target.engine.endpoints if other is not endpoint)
    for _ in range(times):
        lease(chat, now, tried=others).end(outcome, now)


def circuit(endpoint: Endpoint) -> Position:
    return endpoint.breaker.position


def picked(chat: Route, now: float, count: int = 12) -> set[Endpoint]:
    """Who gets the next requests, one after the other."""
    found = set()
    for _ in range(count):
        given = lease(chat, now)
        found.add(given.endpoint)
        given.end(CLIENT_GONE, now)
    return found


@pytest.mark.parametrize(
    "outcome",
    [
        Rejected(400),
        Rejected(422),
        CLIENT_GONE,
        STALE,
        TimedOut(Phase.TOTAL),
        TimedOut(Phase.FIRST_TOKEN, by_client=True),
    ],
    ids=str,
)
def test_what_is_not_the_endpoints_fault_changes_nothing(outcome: Outcome) -> None:
    facts: list[StateChange] = []
    qwen = engine(2, facts=facts)
    chat = route(qwen)
    fail(chat, qwen.endpoints[0], 200, outcome=outcome)
    assert facts == []
    assert picked(chat, 0.0) == set(qwen.endpoints)


def test_the_fifth_failure_in_a_row_takes_an_endpoint_out_at_once_and_is_said_once() -> None:
    facts: list[StateChange] = []
    qwen = engine(3, facts=facts)
    chat = route(qwen)
    bad = qwen.endpoints[0]
    fail(chat, bad, 4)
    assert bad in picked(chat, 0.0)
    fail(chat, bad, 1)
    assert picked(chat, 0.1) == set(qwen.endpoints[1:])
    assert [(f.endpoint, f.new, f.circuit) for f in facts] == [(bad, EndpointState.EJECTED, Position.OPEN)]
    assert "5 failures in a row" in bad.reason


def test_a_working_health_check_does_not_hide_failing_chats() -> None:
    """Both signals are shown."""
    qwen = engine(2)
    bad = qwen.endpoints[0]
    evidence.check_passed(qwen, bad, 0.0)
    fail(route(qwen), bad, 5)
    evidence.check_passed(qwen, bad, 1.0)
    assert bad.state is EndpointState.EJECTED
    assert "health check passes" in bad.reason
    assert "failures in a row" in bad.reason


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8])
def test_however_many_fail_at_most_half_are_ejected(count: int) -> None:
    qwen = engine(count)
    chat = route(qwen)
    for _ in range(3):
        for endpoint in qwen.endpoints:
            fail(chat, endpoint, 7)
    ejected = [endpoint for endpoint in qwen.endpoints if endpoint.state is EndpointState.EJECTED]
    assert len(ejected) == max(1, count // 2)


def test_a_sole_endpoint_that_fails_is_still_asked() -> None:
    """No breaker turns away a request that nobody else could take."""
    qwen = engine(1)
    chat = route(qwen)
    fail(chat, qwen.endpoints[0], 20)
    assert qwen.endpoints[0].state is EndpointState.EJECTED
    lease(chat, 1.0).end(SERVED, 1.0)
    assert qwen.endpoints[0].in_flight == 0


def test_an_ejected_endpoint_gets_nothing_because_the_others_are_full() -> None:
    qwen = engine(2, limit=5)
    chat = route(qwen)
    fail(chat, qwen.endpoints[0], 5)
    for _ in range(5):
        assert lease(chat, 1.0).endpoint is qwen.endpoints[1]
    assert chat.acquire(None, 1.0, lambda: 0.5) == Unavailable("all_busy", retry_after=1.0)


def test_a_sole_endpoint_that_fails_is_spared_when_another_engine_serves_the_model() -> None:
    bad, good = engine(1, name="a"), engine(1, name="b")
    chat = route(bad, good)
    fail(chat, bad.endpoints[0], 5)
    assert picked(chat, 1.0) == set(good.endpoints)


def _eject(qwen: Engine, chat: Route, now: float = 0.0, outcome: Outcome = Broken(500)) -> Endpoint:  # noqa: B008
    fail(chat, qwen.endpoints[0], 5, now, outcome)
    return qwen.endpoints[0]


def test_exactly_one_trial_goes_through_after_the_pause() -> None:
    qwen = engine(3)
    chat = route(qwen)
    bad = _eject(qwen, chat)
    given = [lease(chat, 5.0) for _ in range(30)]
    on_trial = [each for each in given if each.endpoint is bad]
    assert len(on_trial) == 1
    on_trial[0].end(SERVED, 6.0)
    assert bad.state is EndpointState.UNKNOWN
    assert bad in picked(chat, 6.0)


def test_several_trials_are_counted_exactly() -> None:
    qwen = engine(2, resilience=trials(3))
    chat = route(qwen)
    bad = _eject(qwen, chat)
    given = [lease(chat, 5.0) for _ in range(30)]
    on_trial = [each for each in given if each.endpoint is bad]
    assert len(on_trial) == 3
    on_trial[0].end(SERVED, 5.1)
    on_trial[1].end(CLIENT_GONE, 5.1)
    again = [each for _ in range(30) if (each := lease(chat, 5.2)).endpoint is bad]
    assert len(again) == 1
    again[0].end(SERVED, 5.3)
    assert circuit(bad) is Position.HALF_OPEN
    on_trial[2].end(SERVED, 5.4)
    assert circuit(bad) is Position.CLOSED


def test_failed_trials_double_the_pause_up_to_a_minute() -> None:
    qwen = engine(2)
    chat = route(qwen)
    bad = _eject(qwen, chat)
    now = 0.0
    pauses = []
    for _ in range(6):
        pauses.append(bad.breaker.reopens_at - now)
        now = bad.breaker.reopens_at
        fail(chat, bad, 1, now)
        assert circuit(bad) is Position.OPEN
    assert pauses == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]


def test_what_began_before_the_ejection_neither_ends_nor_prolongs_it() -> None:
    qwen = engine(2)
    chat = route(qwen)
    bad, other = qwen.endpoints
    early = [lease(chat, 0.0, tried=(other,)) for _ in range(8)]
    _eject(qwen, chat)
    for each in early[:4]:
        each.end(SERVED, 1.0)
    assert circuit(bad) is Position.OPEN
    qwen.refresh(5.0)
    for each in early[4:6]:
        each.end(Broken(500), 5.5)
    for each in early[6:]:
        each.end(SERVED, 5.5)
    assert circuit(bad) is Position.HALF_OPEN
    assert bad.breaker.trials_free == 1
    assert bad.in_flight == 0


def test_what_began_before_an_ejection_is_not_counted_after_it_either() -> None:
    qwen = engine(2)
    chat = route(qwen)
    bad, other = qwen.endpoints
    early = [lease(chat, 0.0, tried=(other,)) for _ in range(2)]
    _eject(qwen, chat)
    lease(chat, 5.0, tried=(other,)).end(SERVED, 5.0)
    assert circuit(bad) is Position.CLOSED
    early[0].end(SERVED, 6.0)
    early[1].end(Broken(500), 6.0)
    assert bad.breaker.counts(6.0) == (0, 0)


def test_a_trial_succeeds_with_the_first_bytes_of_a_long_stream() -> None:
    qwen = engine(2)
    chat = route(qwen)
    bad = _eject(qwen, chat)
    trial = lease(chat, 5.0, tried=(qwen.endpoints[1],))
    trial.proven(5.5)
    assert circuit(bad) is Position.CLOSED
    trial.end(SERVED, 300.0)
    assert bad.in_flight == 0
    assert bad.breaker.counts(300.0) == (1, 0)


def test_proof_means_nothing_outside_a_trial() -> None:
    qwen = engine(2)
    given = lease(route(qwen))
    given.proven(0.1)
    given.end(SERVED, 0.2)
    assert given.endpoint.breaker.counts(0.2) == (1, 0)


def test_an_endpoint_ejected_because_nobody_listened_is_tried_as_soon_as_somebody_does() -> None:
    qwen = engine(2)
    chat = route(qwen)
    evidence.check_passed(qwen, qwen.endpoints[0], 0.0)
    refusing = _eject(qwen, chat, outcome=REFUSED)
    # A request was refused, so the next check does not wait for the interval.
    assert refusing.check.due == 1.0
    evidence.check_passed(qwen, refusing, 1.0)
    assert circuit(refusing) is Position.HALF_OPEN
    qwen = engine(2)
    chat = route(qwen)
    failing = _eject(qwen, chat, outcome=Broken(500))
    evidence.check_passed(qwen, failing, 1.0)
    assert circuit(failing) is Position.OPEN


def test_three_failed_checks_take_an_endpoint_out_for_that_reason_and_two_passed_ones_take_it_back() -> None:
    facts: list[StateChange] = []
    qwen = engine(2, facts=facts)
    chat = route(qwen)
    sick = qwen.endpoints[0]
    for now in (0.0, 5.0):
        evidence.check_failed(qwen, sick, "503", now)
    assert sick in picked(chat, 5.0)
    evidence.check_failed(qwen, sick, "503 from /health", 10.0)
    assert picked(chat, 10.0) == {qwen.endpoints[1]}
    assert (sick.state, sick.reason) == (EndpointState.DOWN, "503 from /health")
    evidence.check_failed(qwen, sick, "no answer within 2 s", 15.0)
    assert sick.reason == "no answer within 2 s"
    evidence.check_passed(qwen, sick, 20.0)
    evidence.check_passed(qwen, sick, 21.0)
    assert sick in picked(chat, 21.0)
    assert [fact.new for fact in facts] == [EndpointState.DOWN, EndpointState.UP]


def test_a_verdict_that_changes_no_state_says_nothing() -> None:
    facts: list[StateChange] = []
    qwen = engine(2, facts=facts)
    bad = _eject(qwen, route(qwen))
    evidence.check_passed(qwen, bad, 1.0)
    assert [fact.new for fact in facts] == [EndpointState.EJECTED]


def test_a_pause_that_is_over_keeps_no_retry_away() -> None:
    qwen = engine(2)
    chat = route(qwen)
    bad, other = qwen.endpoints
    fail(chat, bad, 1, 0.0, Overloaded(1.0))
    fail(chat, bad, 5, 1.0)
    assert bad.state is EndpointState.EJECTED
    assert lease(chat, 2.0, tried=(other,)).endpoint is bad


def test_a_down_endpoint_is_not_even_a_last_resort() -> None:
    qwen = engine(1)
    chat = route(qwen)
    for now in (0.0, 1.0, 2.0):
        evidence.check_failed(qwen, qwen.endpoints[0], "503", now)
    assert chat.acquire(None, 2.0, lambda: 0.5) == Unavailable("no_endpoint", retry_after=5.0)


def test_down_ends_an_ejection_so_that_recovery_starts_afresh() -> None:
    qwen = engine(2)
    chat = route(qwen)
    bad = _eject(qwen, chat)
    for now in (1.0, 2.0, 3.0):
        evidence.check_failed(qwen, bad, "connection refused", now, refused=True)
    assert (bad.state, bad.breaker.position) == (EndpointState.DOWN, Position.CLOSED)
    evidence.check_passed(qwen, bad, 4.0)
    evidence.check_passed(qwen, bad, 5.0)
    assert bad.state is EndpointState.UP
    assert picked(chat, 5.0) == set(qwen.endpoints)


def test_an_endpoint_that_says_it_is_full_is_spared_for_as_long_as_it_asks() -> None:
    qwen = engine(2)
    chat = route(qwen)
    full, free = qwen.endpoints
    fail(chat, full, 1, 0.0, Overloaded(3.0))
    assert picked(chat, 2.9) == {free}
    assert picked(chat, 3.0) == {full, free}
    assert full.state is EndpointState.UNKNOWN


def test_when_all_say_they_are_full_they_are_asked_all_the_same() -> None:
    qwen = engine(2)
    chat = route(qwen)
    for endpoint in qwen.endpoints:
        fail(chat, endpoint, 100, 0.0, Overloaded())
    assert picked(chat, 0.5) == set(qwen.endpoints)


def test_a_retry_does_not_go_where_the_engine_asked_to_be_left_alone() -> None:
    """A first attempt does, if there is nobody else; without a Retry-After the pause is only our own guess."""
    qwen = engine(2)
    chat = route(qwen)
    asked, other = qwen.endpoints
    one, two = (lease(chat, tried=(other,)) for _ in range(2))
    one.end(Overloaded(4.0), 0.0)
    two.end(Overloaded(1.0), 1.0)
    assert chat.acquire(None, 1.0, lambda: 0.5, (other,)) == Unavailable("all_busy", retry_after=3.0)
    assert lease(chat, 4.0, tried=(other,)).endpoint is asked
    fail(chat, other, 1, 5.0, Overloaded())
    assert lease(chat, 5.0, tried=(asked,)).endpoint is other


def test_the_sweep_begins_a_trial_even_without_traffic() -> None:
    qwen = engine(2)
    bad = _eject(qwen, route(qwen))
    evidence.sweep(qwen, 4.9)
    assert circuit(bad) is Position.OPEN
    evidence.sweep(qwen, 5.0)
    assert circuit(bad) is Position.HALF_OPEN


def test_the_sweep_ejects_one_that_fails_while_its_peers_do_not_and_never_more_than_half() -> None:
    qwen = engine(4, resilience=NO_SLOW_START)
    chat = route(qwen)
    odd = qwen.endpoints[2]
    for step in range(100):
        for endpoint in qwen.endpoints:
            others = tuple(other for other in qwen.endpoints if other is not endpoint)
            given = lease(chat, 1.0, tried=others)
            given.end(Broken(500) if endpoint is odd and step % 4 == 0 else SERVED, 1.0)
    evidence.sweep(qwen, 2.0)
    assert [endpoint.state for endpoint in qwen.endpoints].count(EndpointState.EJECTED) == 1
    assert odd.state is EndpointState.EJECTED
    assert "on its peers" in odd.reason
