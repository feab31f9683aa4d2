from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.load import FRESH, STALE, LoadReport, extra_load, next_change

REPORTS = st.builds(
    LoadReport,
    running=st.floats(0, 500),
    waiting=st.floats(0, 500),
    kv_use=st.floats(0, 1),
    own=st.integers(0, 500),
    at=st.just(100.0),
)


@given(REPORTS, st.floats(0, 60))
def test_what_others_send_never_lowers_a_load(report: LoadReport, age: float) -> None:
    assert extra_load(report, 100.0 + age) >= 0


@given(REPORTS, st.floats(0, 100), st.floats(0, 1))
def test_more_waiting_and_a_fuller_cache_never_read_as_less_load(
    report: LoadReport, more: float, kv_use: float
) -> None:
    waiting = LoadReport(report.running, report.waiting + more, report.kv_use, report.own, report.at)
    fuller = LoadReport(report.running, report.waiting, max(report.kv_use, kv_use), report.own, report.at)
    assert extra_load(waiting, 101.0) >= extra_load(report, 101.0)
    assert extra_load(fuller, 101.0) >= extra_load(report, 101.0)


@given(REPORTS)
def test_a_report_is_worth_less_as_it_ages_and_nothing_in_the_end(report: LoadReport) -> None:
    fresh, old, stale = (extra_load(report, 100.0 + age) for age in (0.0, FRESH, STALE))
    assert fresh >= old >= stale == 0
    assert next_change(report, 100.0) == 100.0 + FRESH
    assert next_change(report, 100.0 + FRESH) == 100.0 + STALE
    assert next_change(report, 100.0 + STALE) is None


def test_our_own_requests_are_not_counted_twice() -> None:
    assert extra_load(LoadReport(running=6, waiting=2, kv_use=0.3, own=8, at=0.0), 1.0) == 0
    assert extra_load(LoadReport(running=6, waiting=4, kv_use=0.3, own=8, at=0.0), 1.0) == 2


def test_a_full_cache_counts_every_request_once_more() -> None:
    assert extra_load(LoadReport(running=6, waiting=2, kv_use=1.0, own=8, at=0.0), 1.0) == 8
