import pytest

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
    Verdict,
    label,
    verdict,
)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422])
def test_an_engine_that_rejects_a_request_is_not_at_fault(status: int) -> None:
    assert verdict(Rejected(status)) is Verdict.NEUTRAL


@pytest.mark.parametrize(
    "outcome",
    [CLIENT_GONE, STALE, TimedOut(Phase.TOTAL), *(TimedOut(phase, by_client=True) for phase in Phase)],
    ids=str,
)
def test_clients_and_idle_connections_never_count_against_an_endpoint(outcome: Outcome) -> None:
    assert verdict(outcome) is Verdict.NEUTRAL


@pytest.mark.parametrize(
    "outcome",
    [
        REFUSED,
        Broken(500),
        Broken(died=True),
        TRUNCATED,
        TimedOut(Phase.CONNECT),
        TimedOut(Phase.FIRST_TOKEN),
        TimedOut(Phase.IDLE),
    ],
    ids=str,
)
def test_failures_of_the_endpoint_count_against_it(outcome: Outcome) -> None:
    assert verdict(outcome) is Verdict.BAD


def test_a_full_engine_is_busy_and_not_bad() -> None:
    assert verdict(Overloaded(2.0)) is Verdict.BUSY
    assert verdict(SERVED) is Verdict.GOOD


def test_every_outcome_has_its_own_label() -> None:
    kinds: list[Outcome] = [SERVED, REFUSED, STALE, Overloaded(), Broken(), TRUNCATED, Rejected(400), CLIENT_GONE]
    timeouts: list[Outcome] = [TimedOut(phase) for phase in Phase]
    assert len({label(outcome) for outcome in [*kinds, *timeouts]}) == len(kinds) + len(timeouts)
