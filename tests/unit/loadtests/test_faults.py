"""The fault suite's own judgement: it must not excuse what could have been saved."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadtests.faults.catalogue import SCENARIOS
from loadtests.faults.judge import Asked, Facts, describe, excuse
from loadtests.faults.replicas import Outage, Record, Replica, none_left, reserve
from loadtests.faults.scenario import Excuse, Kill, Start, Terminate
from loadtests.faults.traffic import moments
from loadtests.sample import CUT, ERROR_EVENT, REFUSED, UNFINISHED, Sample


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[list[Replica]]:
    """Three addresses at which nobody listens."""
    found = reserve(tmp_path, 3, 5.0)
    yield found
    for replica in found:
        replica.close()


def asked(outcome: str, *, sent: float = 10.0, last: float | None = 11.0, events: int = 0) -> Asked:
    return Asked(1, Sample("streamed", sent, sent, None, last, events, outcome=outcome))


def test_a_stream_that_broke_is_excused_only_by_an_outage_of_the_replica_that_had_it(replicas: list[Replica]) -> None:
    replicas[0].outages.append(Outage(10.5, 12.0))
    broken = asked(ERROR_EVENT, events=5)

    assert excuse(broken, Facts(replicas, {1: 0})) is Excuse.BEGUN
    assert excuse(broken, Facts(replicas, {1: 1})) is None
    assert excuse(broken, Facts(replicas, {})) is None


def test_a_failure_before_the_first_event_is_never_excused_by_one_replica(replicas: list[Replica]) -> None:
    replicas[0].outages.append(Outage(10.5, 12.0))
    facts = Facts(replicas, {1: 0})

    assert excuse(asked(ERROR_EVENT, events=1), facts) is None  # the event is the error
    assert excuse(asked("502"), facts) is None
    assert excuse(asked("503"), facts) is None


def test_a_stream_that_is_cut_without_an_error_event_is_never_excused(replicas: list[Replica]) -> None:
    replicas[0].outages.append(Outage(10.5, 12.0))

    assert excuse(asked(CUT, events=5), Facts(replicas, {1: 0})) is None


def test_a_refusal_is_excused_while_every_replica_is_out_or_has_just_come_back(replicas: list[Replica]) -> None:
    for replica in replicas:
        replica.outages.append(Outage(9.0, 9.5))

    assert excuse(asked("503"), Facts(replicas, notice=1.0)) is Excuse.NONE_LEFT
    assert excuse(asked("503"), Facts(replicas, notice=0.2)) is None
    replicas[1].outages.clear()
    assert excuse(asked("503"), Facts(replicas, notice=1.0)) is None


def test_outages_that_do_not_meet_leave_somebody_to_serve(replicas: list[Replica]) -> None:
    for number, replica in enumerate(replicas):
        replica.outages.append(Outage(10.0 + number, 10.9 + number))

    assert not none_left(replicas, 9.0, 20.0, 0.0)
    assert not none_left(replicas, 9.0, 20.0, 0.5)
    assert none_left(replicas, 9.0, 20.0, 1.2)


def test_nobody_is_excused_by_a_gateway_that_had_not_been_told_to_stop(replicas: list[Replica]) -> None:
    assert excuse(asked(REFUSED, last=None), Facts(replicas, gateway_left=9.0)) is Excuse.NO_GATEWAY
    assert excuse(asked(REFUSED, last=None), Facts(replicas, gateway_left=10.5)) is None
    assert excuse(asked(REFUSED, last=None), Facts(replicas)) is None


def test_a_request_that_never_ends_is_never_excused(replicas: list[Replica]) -> None:
    for replica in replicas:
        replica.outages.append(Outage(0.0))
    lost = asked(UNFINISHED, last=None, events=3)

    assert excuse(lost, Facts(replicas, {1: 2}, gateway_left=1.0)) is None
    assert describe(lost, Facts(replicas, {1: 2})) == (
        "request 1: it did not end after 3 events; replica 2 had it last"
    )


def test_a_record_counts_what_was_worked_on_and_a_torn_line_not_at_all() -> None:
    record = Record.parse("S 1 5.0\nR 1 5.1\nS 2 5.2\nS 1 6.0\nE 1 6.5\nS 3")

    assert record.executed == Counter({1: 1, 2: 1})
    assert record.ended == frozenset({1})
    assert record.taken_at == {1: 6.0, 2: 5.2}


def test_requests_come_at_the_asked_rate_or_in_bursts() -> None:
    steady = moments(50.0, None, 1)
    first = [next(steady) for _ in range(1000)]
    bursts = moments(10.0, 0.5, 1)

    assert first == sorted(first)
    assert 15 < first[-1] < 25
    assert [next(bursts) for _ in range(11)] == [0.0] * 5 + [0.5] * 5 + [1.0]


def test_every_scenario_puts_back_what_it_breaks_unless_it_runs_only_once() -> None:
    """The long form plays its acts again and again."""
    for scenario in SCENARIOS:
        assert all(0 <= act.at < scenario.seconds for act in scenario.acts), scenario.name
        assert [act.at for act in scenario.acts] == sorted(act.at for act in scenario.acts), scenario.name
        down = {act.replica for act in scenario.acts if isinstance(act, Kill | Terminate)}
        up = {act.replica for act in scenario.acts if isinstance(act, Start)}
        assert scenario.once or down <= up, scenario.name
