"""From samples to numbers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.sample import Sample
from loadtests.summary import Spread, percentile, summarise
from tests.unit.loadtests.making import streamed


@given(st.lists(st.floats(0, 100), min_size=1), st.floats(0.1, 100))
def test_a_percentile_is_one_of_the_values_and_covers_its_share(values: list[float], percent: float) -> None:
    ordered = sorted(values)
    found = percentile(ordered, percent)

    assert found in ordered
    assert sum(value <= found for value in ordered) >= len(ordered) * percent / 100 - 1e-6


def test_a_spread_is_in_milliseconds() -> None:
    assert Spread.of([0.003, 0.001, 0.002]) == Spread(3, 2.0, 3.0, 3.0)


def test_nothing_has_no_percentiles() -> None:
    assert math.isnan(Spread.of([]).p50)


def test_latency_counts_from_the_moment_that_was_due() -> None:
    """A request that was sent late is late, whoever was the cause."""
    sample = Sample("one", due=1.0, sent=1.5, first=1.6, last=2.0, events=2, gaps=[0.4], outcome="ok")
    summary = summarise([sample])

    assert summary.first.p50 == pytest.approx(600)
    assert summary.whole.p50 == pytest.approx(1000)
    assert summary.late.p50 == pytest.approx(500)


def test_failed_requests_count_as_errors_and_not_in_the_latencies() -> None:
    summary = summarise([streamed(0.0, 0.1, 0.1), streamed(0.0, 9.0, 9.0, outcome="cut"), Sample("one", 0.0)])

    assert (summary.requests, summary.ok) == (3, 1)
    assert summary.errors == {"cut": 1, "unfinished": 1}
    assert summary.first == Spread.of([0.1])
    assert summary.between == Spread.of([0.1])


def test_rates_count_over_the_time_from_the_first_moment_to_the_last_answer() -> None:
    summary = summarise([streamed(1.0, 1.5, 0.5), streamed(2.0, 2.5, 0.5)])

    assert summary.seconds == 2.0
    assert summary.requests_per_second == 1.0
    assert summary.events_per_second == 2.0


def test_no_samples_at_all_are_no_error() -> None:
    assert summarise([]).requests_per_second == 0.0
