"""When requests are due."""

from collections import Counter
from dataclasses import replace
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.catalogue import SCENARIOS
from loadtests.scenario import Bursts, Clients, Scenario, Shape, Steady
from loadtests.schedule import LIMIT, schedule, shapes

SHAPES = (Shape("often", "chat", {}, weight=3), Shape("seldom", "chat", {}, weight=1))
STEADY = Scenario("steady", "", Steady(20.0), SHAPES, seconds=50.0)


def test_the_same_seed_gives_the_same_load_and_another_seed_another_one() -> None:
    assert schedule(STEADY) == schedule(STEADY)
    assert schedule(STEADY) != schedule(STEADY, seed=1)


@given(st.integers())
def test_moments_are_in_order_and_within_the_scenarios_time(seed: int) -> None:
    moments = [due.at for due in schedule(STEADY, seed)]

    assert moments == sorted(moments)
    assert all(0.0 <= at < STEADY.seconds for at in moments)


def test_steady_arrivals_have_the_rate_and_are_not_evenly_spaced() -> None:
    moments = [due.at for due in schedule(STEADY)]

    assert 0.8 * 1000 < len(moments) < 1.2 * 1000
    assert len({round(later - earlier, 4) for earlier, later in pairwise(moments)}) > 500


def test_a_burst_is_due_at_one_instant() -> None:
    due = schedule(replace(STEADY, arrivals=Bursts(5, 2.0), seconds=5.0))

    assert Counter(one.at for one in due) == {0.0: 5, 2.0: 5, 4.0: 5}


def test_a_closed_loop_has_no_schedule() -> None:
    assert schedule(replace(STEADY, arrivals=Clients(3))) == ()


def test_no_rate_makes_more_requests_than_the_limit() -> None:
    assert len(schedule(replace(STEADY, arrivals=Steady(10.0 * LIMIT)))) == LIMIT


def test_shapes_come_by_their_weights() -> None:
    counts = Counter(shape.name for shape in islice(shapes(SHAPES), 4000))

    assert counts["often"] / counts["seldom"] == pytest.approx(3.0, rel=0.2)


def test_the_whole_load_test_is_bounded() -> None:
    """Twice every scenario, with its grace, is less than three minutes even if every answer is late."""
    assert 2 * sum(scenario.seconds + scenario.grace / 2 for scenario in SCENARIOS) < 150
    assert sum(len(schedule(scenario)) for scenario in SCENARIOS) < 1000


def test_the_names_of_scenarios_and_of_their_shapes_are_unique() -> None:
    names = [scenario.name for scenario in SCENARIOS]

    assert len(set(names)) == len(names)
    assert all(len({shape.name for shape in one.shapes}) == len(one.shapes) for one in SCENARIOS)
