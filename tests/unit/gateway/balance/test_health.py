from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.health import Health, HealthCheck, HealthSettings

ANSWERS = st.lists(st.sampled_from(["pass", "fail", "refused"]), max_size=40)


def _hear(check: HealthCheck, answer: str, now: float) -> bool:
    return check.passed(now) if answer == "pass" else check.failed(now, refused=answer == "refused")


@given(ANSWERS)
def test_the_verdict_changes_exactly_with_the_last_of_a_run(answers: list[str]) -> None:
    """Down with the third failure in a row, up again with the second pass in a row, up from nothing with the first."""
    check = HealthCheck(HealthSettings())
    expected = Health.UNKNOWN
    run = 0
    last = ""
    for step, answer in enumerate(answers):
        kind = "pass" if answer == "pass" else "fail"
        run = run + 1 if kind == last else 1
        last = kind
        before = expected
        if kind == "fail" and run >= 3:
            expected = Health.DOWN
        elif kind == "pass" and (before is Health.UNKNOWN or run >= 2):
            expected = Health.UP
        assert _hear(check, answer, step * 5.0) is (expected is not before)
        assert check.verdict is expected


@given(ANSWERS, st.lists(st.floats(0, 20), min_size=40, max_size=40), st.booleans())
def test_the_next_check_is_neither_late_nor_hasty(answers: list[str], gaps: list[float], suspicious: bool) -> None:
    """At most the interval after the last answer, and at least the time to confirm, whatever is suspected."""
    settings = HealthSettings()
    check = HealthCheck(settings)
    now = 0.0
    for answer, gap in zip(answers, gaps, strict=False):
        now += gap
        _hear(check, answer, now)
        assert now + settings.confirm <= check.due <= now + settings.interval
        if suspicious:
            check.suspect(now)
            assert now + settings.confirm <= check.due <= now + settings.interval


def test_a_suspicion_brings_the_next_check_forward() -> None:
    check = HealthCheck(HealthSettings())
    check.passed(100.0)
    assert check.due == 105.0
    check.suspect(100.2)
    assert check.due == 101.0
    check.suspect(103.0)
    assert check.due == 101.0


def test_a_dead_engine_is_down_within_three_seconds_and_one_that_is_not_ready_is_given_the_intervals() -> None:
    """Nobody listening is confirmed fast; Triton's seconds of unreadiness while a model unloads are sat out."""
    for refused, seconds in ((True, 2.0), (False, 10.0)):
        check = HealthCheck(HealthSettings())
        check.passed(0.0)
        began = now = check.due
        while check.verdict is not Health.DOWN:
            now = check.due
            check.failed(now, refused=refused)
        assert now - began == seconds
