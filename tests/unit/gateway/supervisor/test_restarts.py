"""When the next member starts."""

import pytest

from gateway.supervisor.restarts import FIRST_PAUSE, IN_VAIN, LONGEST_PAUSE, STEADY, Restarts


def test_one_that_served_for_long_is_followed_at_once() -> None:
    assert Restarts(2).ended(0, STEADY, others=False) == 0.0


def test_pauses_grow_up_to_a_limit_and_are_forgotten_with_a_steady_one() -> None:
    restarts = Restarts(1)
    pauses = []
    for _ in range(12):
        restarts.started()
        pauses.append(restarts.ended(0, 0.5, others=False))

    assert pauses[:4] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE, 8 * FIRST_PAUSE]
    assert pauses[-1] == LONGEST_PAUSE
    restarts.ended(0, STEADY, others=False)
    assert restarts.ended(0, 0.5, others=False) == FIRST_PAUSE


def test_places_have_pauses_of_their_own() -> None:
    restarts = Restarts(2)
    for _ in range(3):
        restarts.ended(0, 0.5, others=True)

    assert restarts.ended(1, 0.5, others=True) == FIRST_PAUSE


@pytest.mark.parametrize(("places", "starts"), [(1, IN_VAIN), (2, IN_VAIN), (9, 9)])
def test_it_gives_up_when_nothing_ever_serves(places: int, starts: int) -> None:
    restarts = Restarts(places)
    pauses = [restarts.ended(number % places, None, others=False) for number in range(starts)]

    assert None not in pauses[:-1]
    assert pauses[-1] is None


def test_it_goes_on_as_long_as_another_one_serves() -> None:
    restarts = Restarts(2)

    assert None not in {restarts.ended(0, None, others=True) for _ in range(5 * IN_VAIN)}


def test_a_success_starts_the_count_of_failures_anew() -> None:
    restarts = Restarts(1)
    for _ in range(IN_VAIN - 1):
        restarts.ended(0, None, others=False)
    restarts.started()

    assert restarts.ended(0, None, others=False) is not None
