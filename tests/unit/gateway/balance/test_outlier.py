from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.outlier import OutlierSettings, Sample, ejection_limit, find_outliers

SAMPLES = st.builds(
    Sample, good=st.integers(0, 200), bad=st.integers(0, 200), first_token=st.none() | st.floats(0.01, 60)
)


@given(st.integers(1, 500))
def test_at_most_half_may_be_ejected_but_one_of_one(count: int) -> None:
    assert ejection_limit(count) == 1 if count == 1 else ejection_limit(count) * 2 <= count


@given(SAMPLES, st.integers(0, 8))
def test_equals_never_stand_out(sample: Sample, count: int) -> None:
    assert find_outliers([sample] * count, OutlierSettings(slow_factor=3.0)) == []


@given(st.lists(SAMPLES, max_size=8))
def test_only_those_with_enough_requests_and_failures_are_named(samples: list[Sample]) -> None:
    found = find_outliers(samples, OutlierSettings())
    for index, _ in found:
        sample = samples[index]
        assert sample.bad > 0
        assert sample.good + sample.bad >= 20
    assert len({index for index, _ in found}) == len(found)


def test_the_one_that_fails_while_its_peers_do_not_is_named_worst_first() -> None:
    samples = [Sample(80, 20), Sample(100, 0), Sample(70, 30), Sample(100, 0), Sample(99, 1)]
    assert [index for index, _ in find_outliers(samples, OutlierSettings())] == [2, 0]


def test_two_endpoints_cannot_tell_who_of_them_is_odd() -> None:
    assert find_outliers([Sample(50, 50), Sample(100, 0)], OutlierSettings()) == []


def test_slowness_counts_only_when_asked_for() -> None:
    samples = [Sample(100, 0, 5.0), Sample(100, 0, 0.4), Sample(100, 0, 0.5)]
    assert find_outliers(samples, OutlierSettings()) == []
    assert [index for index, _ in find_outliers(samples, OutlierSettings(slow_factor=5.0))] == [0]
