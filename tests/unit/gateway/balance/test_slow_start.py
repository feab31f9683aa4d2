from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.slow_start import SlowStart, warm_ceiling

OTHERS = st.lists(st.integers(0, 300), min_size=1, max_size=8)


@given(OTHERS, st.floats(0, 9.99), st.floats(0, 9.99))
def test_a_warming_endpoint_may_do_more_as_time_passes(others: list[int], one: float, two: float) -> None:
    """At least one request, never more than the mean of the others, and never less than before."""
    early = warm_ceiling(SlowStart(10.0), min(one, two), others)
    late = warm_ceiling(SlowStart(10.0), max(one, two), others)
    assert early is not None
    assert late is not None
    assert 1 <= early <= late <= max(1, -(-sum(others) // len(others)))


def test_there_is_no_ceiling_when_warm_or_alone() -> None:
    assert warm_ceiling(SlowStart(10.0), 10.0, [50, 50]) is None
    assert warm_ceiling(SlowStart(10.0), 1.0, []) is None
    assert warm_ceiling(SlowStart(0.0), 0.0, [50]) is None
