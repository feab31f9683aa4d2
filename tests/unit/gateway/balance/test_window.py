from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.window import Window


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(0, 40))
def test_all_recent_events_are_counted_and_no_old_ones(gaps: list[int], rest: int) -> None:
    """Everything of the last nine tenths of the span counts, nothing older than the span."""
    window = Window(10.0)
    times = []
    now = 100.0
    for gap in gaps:
        now += gap * 0.25
        window.add(now)
        times.append(now)
    now += rest * 0.25
    total = window.total(now)
    assert sum(now - at < 9.0 for at in times) <= total <= sum(now - at < 10.0 for at in times)


def test_a_clock_that_steps_back_loses_nothing() -> None:
    window = Window(10.0)
    window.add(100.0)
    window.add(90.0)
    assert window.total(95.0) == 2


def test_an_unused_window_is_empty() -> None:
    assert Window(1.0).total(5.0) == 0
