import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.ewma import Ewma, Rate

VALUES = st.lists(st.tuples(st.floats(0, 1e6), st.floats(-5, 500)), min_size=1, max_size=50)


@given(VALUES)
def test_the_mean_lies_between_the_least_and_the_greatest(observed: list[tuple[float, float]]) -> None:
    mean = Ewma(10.0)
    now = 1000.0
    for value, gap in observed:
        now += gap
        mean.observe(value, now)
    values = [value for value, _ in observed]
    assert mean.mean is not None
    assert min(values) * (1 - 1e-9) <= mean.mean <= max(values) * (1 + 1e-9)


def test_an_observation_of_one_half_life_ago_weighs_half() -> None:
    mean = Ewma(10.0)
    mean.observe(0.0, 0.0)
    mean.observe(3.0, 10.0)
    assert mean.mean == pytest.approx(2.0)


def test_there_is_no_mean_of_nothing() -> None:
    assert Ewma(1.0).mean is None


@given(st.floats(0.01, 5.0))
def test_a_steady_rate_is_read_as_such(gap: float) -> None:
    rate = Rate(half_life=5.0)
    now = 50.0
    for _ in range(int(100 / gap) + 1):
        now += gap
        rate.tick(now)
    # In the middle between two events, where a sawtooth passes through its mean.
    assert rate.per_second(now + gap / 2) == pytest.approx(1 / gap, rel=0.1)


@given(st.lists(st.floats(0, 10), max_size=30), st.floats(0, 100), st.floats(0, 100))
def test_a_rate_is_never_negative_and_falls_in_silence(gaps: list[float], soon: float, later: float) -> None:
    rate = Rate(half_life=5.0)
    now = 0.0
    for gap in gaps:
        now += gap
        rate.tick(now)
    assert rate.per_second(now + soon) >= rate.per_second(now + soon + later) * (1 - 1e-9) >= 0.0
