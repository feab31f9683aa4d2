"""When something counts as away, and that each change is told once."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.limits.availability import FAILURES, Availability

EVENTS = st.lists(st.sampled_from(["answer", "silence", "error"]), max_size=40)


@given(EVENTS)
def test_each_change_is_told_once_and_nothing_else(events: list[str]) -> None:
    one = Availability()
    known: bool | None = None
    for event in events:
        told = one.answered() if event == "answer" else one.failed(event, surely=event == "error")
        assert told == (known is None or one.up != known)
        known = one.up


@given(EVENTS)
def test_it_is_away_after_an_error_or_after_silence_in_a_row(events: list[str]) -> None:
    one = Availability()
    one.answered()
    silent = 0
    up = True
    for event in events:
        silent = silent + 1 if event != "answer" else 0
        if event == "answer":
            one.answered()
            up = True
        else:
            one.failed(event, surely=event == "error")
            up = up and event != "error" and silent < FAILURES
        assert one.up == up
        if not up:
            assert one.reason in ("silence", "error")


def test_nobody_waits_before_the_first_answer() -> None:
    assert not Availability().up
