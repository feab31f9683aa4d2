"""When a first token is late."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.hedge import REFRESH, FirstTokens

TIMES = st.lists(st.floats(0.0, 100.0), max_size=200)


@given(TIMES, st.integers(1, 30), st.integers(1, 40), st.floats(0.5, 1.0))
def test_the_patience_is_a_recent_time_that_most_do_not_exceed(
    times: list[float], kept: int, least: int, share: float
) -> None:
    first_tokens = FirstTokens(share, kept=kept, least=least)
    window: deque[float] = deque(maxlen=kept)
    windows: list[list[float]] = []
    for time in times:
        first_tokens.note(time)
        window.append(time)
        windows.append(list(window))
        patience = first_tokens.patience
        if len(window) < least:
            assert patience is None
            continue
        # Worked out for the present window, or for one of the last few.
        assert any(
            patience in known and sum(one <= patience for one in known) >= share * len(known)
            for known in windows[-REFRESH:]
            if patience is not None
        )


@given(st.integers(1, 500))
def test_nothing_is_late_before_enough_is_known_and_memory_is_bounded(count: int) -> None:
    first_tokens = FirstTokens(least=20, kept=64)
    for _ in range(count):
        first_tokens.note(1.0)

    assert (first_tokens.patience is None) == (count < 20)
    assert len(first_tokens._times) == len(first_tokens._ordered) == min(count, 64)


def test_it_follows_an_engine_that_becomes_slower() -> None:
    first_tokens = FirstTokens(kept=32, least=20)
    for _ in range(32):
        first_tokens.note(0.1)
    assert first_tokens.patience == 0.1
    for _ in range(32 + REFRESH):
        first_tokens.note(2.0)

    assert first_tokens.patience == 2.0
