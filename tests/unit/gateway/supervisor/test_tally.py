"""The counts of all members as one."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.metrics import Meters, Snapshot
from gateway.supervisor.tally import PATIENCE, Tally


def counted(requests: int = 0, **process: float) -> Snapshot:
    """What a member sends, through the wire and back."""
    meters = Meters()
    meter = meters.meter("m", "e")
    for _ in range(requests):
        meter.ended("ok", 0.1)
    meter.in_flight = 1
    meters.see_endpoints({("e", "http://h:1"): True})
    meters.process = process
    return msgspec.msgpack.decode(msgspec.msgpack.encode(meters.snapshot()), type=Snapshot)


def requests(total: Snapshot) -> int:
    return sum(sum(meter.outcomes.values()) for meter in total.meters)


def test_the_latest_counts_of_each_member_are_added_up() -> None:
    tally = Tally()
    tally.note(1, counted(2))
    tally.note(2, counted(3))
    tally.note(1, counted(4))

    assert requests(tally.total()) == 7
    assert tally.total().meters[0].in_flight == 2


def test_what_a_member_that_has_gone_counted_stays_and_what_it_was_doing_does_not() -> None:
    tally = Tally()
    tally.note(1, counted(2, process_cpu_seconds_total=3.0, process_open_fds=9.0, process_start_time_seconds=10.0))
    tally.note(2, counted(3, process_cpu_seconds_total=1.0, process_open_fds=7.0, process_start_time_seconds=20.0))
    tally.gone(1)
    total = tally.total()

    assert requests(total) == 5
    assert total.meters[0].in_flight == 1
    assert total.process == {
        "process_cpu_seconds_total": 4.0,
        "process_open_fds": 7.0,
        "process_start_time_seconds": 10.0,
    }


def test_endpoints_are_nobodys_business_when_all_have_gone() -> None:
    tally = Tally()
    tally.note(1, counted(2))
    tally.gone(1)
    tally.gone(2)

    assert tally.total().endpoints == []


def test_a_report_without_the_systems_numbers_keeps_the_last_ones() -> None:
    tally = Tally()
    tally.note(1, counted(1, process_cpu_seconds_total=3.0))
    tally.note(1, counted(2))

    assert tally.total().process == {"process_cpu_seconds_total": 3.0}
    assert requests(tally.total()) == 2


def test_an_ask_waits_for_answers_to_its_own_poll_or_a_later_one() -> None:
    tally = Tally()
    first = tally.ask(1, 70, {2}, now=0.0)
    second = tally.ask(3, 80, {2}, now=0.0)
    assert tally.fulfilled(0.0) == []

    tally.note(2, counted(1), poll=first)
    assert [(ask.member, ask.number) for ask in tally.fulfilled(0.0)] == [(1, 70)]
    tally.note(2, counted(1), poll=0)
    assert tally.fulfilled(0.0) == []
    tally.note(2, counted(1), poll=second)
    assert [(ask.member, ask.number) for ask in tally.fulfilled(0.0)] == [(3, 80)]
    assert tally.fulfilled(9.0) == []


def test_a_member_that_does_not_answer_is_waited_for_only_so_long() -> None:
    tally = Tally()
    tally.ask(1, 70, {2}, now=5.0)

    assert tally.until() == 5.0 + PATIENCE
    assert tally.fulfilled(5.0) == []
    assert [ask.number for ask in tally.fulfilled(5.0 + PATIENCE)] == [70]
    assert tally.until() is None


def test_nobody_waits_for_a_member_that_has_gone_nor_answers_it() -> None:
    tally = Tally()
    tally.ask(1, 70, {2}, now=0.0)
    tally.ask(2, 80, {1}, now=0.0)
    tally.gone(2)

    assert [ask.number for ask in tally.fulfilled(0.0)] == [70]
    assert tally.until() is None


STEPS = st.lists(st.tuples(st.sampled_from(["count", "end"]), st.integers(0, 3), st.integers(0, 5)), max_size=20)


@settings(max_examples=60)
@given(STEPS)
def test_the_total_never_goes_back_whoever_ends_when(steps: list[tuple[str, int, int]]) -> None:
    tally = Tally()
    counts: dict[int, int] = {}
    pids = list(range(4))
    expected = shown = 0
    for step, place, more in steps:
        pid = pids[place]
        if step == "count":
            expected += more
            counts[pid] = counts.get(pid, 0) + more
            tally.note(pid, counted(counts[pid]))
        else:
            tally.gone(pid)
            pids[place] += 4
        assert requests(tally.total()) == expected >= shown
        shown = expected
