from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.outcome import (
    CLIENT_GONE,
    REFUSED,
    SERVED,
    STALE,
    TRUNCATED,
    Broken,
    Outcome,
    Overloaded,
    Phase,
    Rejected,
    TimedOut,
)
from gateway.balance.retry import Attempts, Decision, GiveUp, Retry, RetryBudget, RetrySettings, decide

OUTCOMES: list[Outcome] = [
    SERVED,
    REFUSED,
    STALE,
    Overloaded(),
    Overloaded(3.0),
    Broken(500),
    Broken(died=True),
    TRUNCATED,
    Rejected(400),
    Rejected(404),
    CLIENT_GONE,
    *(TimedOut(phase, by_client) for phase in Phase for by_client in (False, True)),
]
FREE = (REFUSED, STALE, TimedOut(Phase.CONNECT))
DEFAULTS = RetrySettings()


def _decide(
    outcome: Outcome,
    attempts: Attempts | None = None,
    *,
    settings: RetrySettings = DEFAULTS,
    budget: RetryBudget | None = None,
    rng: Callable[[], float] = lambda: 0.5,
    committed: bool = False,
) -> Decision:
    return decide(
        outcome,
        attempts or Attempts(),
        budget or RetryBudget(settings, 0.0),
        settings,
        0.0,
        rng,
        committed=committed,
    )


def _spent() -> RetryBudget:
    return RetryBudget(RetrySettings(floor=0.0), 0.0)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
def test_nothing_is_tried_again_once_the_client_has_seen_a_byte(outcome: Outcome) -> None:
    assert _decide(outcome, committed=True) == GiveUp("committed")


@pytest.mark.parametrize("outcome", FREE, ids=str)
def test_attempts_that_did_no_work_cost_nothing_and_are_always_tried_again(outcome: Outcome) -> None:
    attempts = Attempts(paid=99)
    for _ in range(20):
        assert isinstance(_decide(outcome, attempts, budget=_spent()), Retry)
    assert attempts.paid == 99


@pytest.mark.parametrize(
    "outcome",
    [SERVED, TRUNCATED, Rejected(400), Rejected(422), CLIENT_GONE, TimedOut(Phase.TOTAL)]
    + [TimedOut(Phase.FIRST_TOKEN)]
    + [TimedOut(phase, by_client=True) for phase in Phase],
    ids=str,
)
def test_what_another_replica_could_not_mend_is_final(outcome: Outcome) -> None:
    assert _decide(outcome) == GiveUp("final")


def test_a_stale_connection_is_replaced_on_the_same_endpoint_once() -> None:
    attempts = Attempts()
    assert _decide(STALE, attempts) == Retry(0.0, elsewhere=False, reason="stale")
    assert _decide(STALE, attempts) == Retry(0.0, elsewhere=True, reason="stale")


def test_a_first_token_timeout_is_tried_again_only_if_asked_for() -> None:
    slow = TimedOut(Phase.FIRST_TOKEN)
    assert _decide(slow) == GiveUp("final")
    assert _decide(slow, settings=RetrySettings(on_timeout=True)) == Retry(0.0, elsewhere=True, reason="timeout")
    assert _decide(TimedOut(Phase.TOTAL), settings=RetrySettings(on_timeout=True)) == GiveUp("final")


@given(st.lists(st.sampled_from(OUTCOMES), max_size=30), st.integers(1, 5), st.floats(0, 1), st.booleans())
def test_a_request_makes_at_most_its_attempts_and_at_most_one_more_after_a_death(
    outcomes: list[Outcome], limit: int, draw: float, on_timeout: bool
) -> None:
    """Whatever happens to it; and every wait is within its bound."""
    settings = RetrySettings(attempts=limit, on_timeout=on_timeout)
    attempts, budget = Attempts(), RetryBudget(settings, 0.0)
    worked = deaths = 0
    for outcome in outcomes:
        worked += outcome not in FREE
        deaths += outcome == Broken(died=True)
        decision = _decide(outcome, attempts, settings=settings, budget=budget, rng=lambda: draw)
        if isinstance(decision, GiveUp):
            break
        assert worked < limit
        assert deaths <= 1
        assert 0.0 <= decision.after <= min(settings.longest_backoff, settings.backoff * 2**limit)
        assert decision.elsewhere or outcome is STALE


def test_the_second_attempt_goes_at_once_and_later_ones_wait_a_random_time_that_grows() -> None:
    settings = RetrySettings(attempts=9)
    attempts = Attempts()
    waits = []
    for _ in range(8):
        decision = _decide(Broken(500), attempts, settings=settings, rng=lambda: 1.0)
        assert isinstance(decision, Retry)
        waits.append(decision.after)
    assert waits == [0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert _decide(Broken(500), Attempts(paid=1), rng=lambda: 0.25) == Retry(0.0125, elsewhere=True, reason="broken")


def test_a_poisonous_request_is_tried_once_more_and_no_further() -> None:
    attempts = Attempts()
    settings = RetrySettings(attempts=9)
    assert isinstance(_decide(Broken(died=True), attempts, settings=settings), Retry)
    assert isinstance(_decide(Broken(500), attempts, settings=settings), Retry)
    assert _decide(Broken(died=True), attempts, settings=settings) == GiveUp("poisonous")


def test_without_a_budget_a_failure_is_given_up() -> None:
    assert _decide(Broken(500), budget=_spent()) == GiveUp("budget")


@given(
    st.lists(st.tuples(st.sampled_from(["request", "retry"]), st.sampled_from([0, 0, 1, 40])), max_size=300),
    st.sampled_from([0.0, 2.0, 10.0]),
)
def test_a_budget_grants_its_floor_and_its_share_and_no_more(steps: list[tuple[str, int]], floor: float) -> None:
    """Never above floor per second plus share of the window's requests; never below the floor."""
    settings = RetrySettings(share=0.2, floor=floor)
    budget = RetryBudget(settings, 0.0)
    now = 0.0
    requests: list[float] = []
    granted: list[float] = []
    for kind, gap in steps:
        now += gap * 0.1
        if kind == "request":
            budget.request(now)
            requests.append(now)
            continue
        lately = sum(now - at < 1.0 for at in granted)
        if budget.take(now):
            granted.append(now)
        else:
            assert lately >= floor
        begun = now - settings.window
        share = 0.2 * sum(at > begun - settings.window for at in requests)
        assert sum(at > begun for at in granted) <= floor * (settings.window + 1) + share


def test_a_fifth_of_the_traffic_may_be_retries() -> None:
    budget = RetryBudget(RetrySettings(floor=0.0), 0.0)
    for _ in range(100):
        budget.request(1.0)
    assert [budget.take(1.0) for _ in range(30)].count(True) == 20
    assert not budget.take(9.0)
    assert not budget.take(12.0)


def test_silence_saves_up_no_more_than_one_second_of_the_floor() -> None:
    budget = RetryBudget(RetrySettings(floor=10.0), 0.0)
    assert [budget.take(1000.0) for _ in range(30)].count(True) == 10
    assert [budget.take(1000.5) for _ in range(30)].count(True) == 5
