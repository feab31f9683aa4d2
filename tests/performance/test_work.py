"""The work per request and per streamed event does not grow unnoticed.

Work is counted, not timed, so that the result is the same on every machine and in every run: calls of functions,
bytecode instructions, the memory that a request holds at once, and the memory that it leaves behind before the garbage
collector has run (a cycle shows here).
"""

import sys
from dataclasses import replace

import pytest

from tests.performance.baseline import COUNTS, RENEW, TOLERANCE, difference, exceeded, file_for, load
from tests.performance.scenarios import MODEL, SCENARIOS, Scenario, asking, chat, completion, rig
from tests.performance.work import Work, measure

VERSION = "{}.{}".format(*sys.version_info)


@pytest.mark.skipif(not file_for().exists(), reason=f"no baseline for Python {VERSION}: `{RENEW}` makes one")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_work_stays_within_the_baseline(scenario: Scenario) -> None:
    """If the growth is wanted, renew the baseline and say why in the commit."""
    base = load(file_for())[scenario.name]
    work = measure(scenario)

    if exceeded(base, work):
        report = "\n".join(difference(base, work))
        pytest.fail(
            f"{scenario.name}: more work per {scenario.unit} than {TOLERANCE:.0%} above the baseline "
            f"(Python {VERSION}):\n{report}\nWhere this is wanted: {RENEW}",
            pytrace=False,
        )


def test_every_supported_python_has_a_baseline_of_every_scenario() -> None:
    names = {scenario.name for scenario in SCENARIOS}

    assert {minor: names ^ load(file_for((3, minor))).keys() for minor in (11, 12, 13)} == {
        11: set(),
        12: set(),
        13: set(),
    }


def counted(*, models: int = 0, endpoints: int = 4, size: int = 150) -> tuple[float, float, float]:
    scenario = Scenario(
        "", "", lambda: asking(rig(models=models, endpoints=endpoints), chat(MODEL, size), completion(MODEL))
    )
    work = measure(scenario)
    return work.python_calls, work.c_calls, work.instructions


def test_a_thousand_models_cost_a_request_nothing() -> None:
    assert counted(models=1000) == counted()


def test_a_large_body_is_not_walked_through_in_python() -> None:
    large, small = counted(size=200_000), counted()

    assert large[:2] == small[:2]
    assert large[2] <= small[2] + 10  # it leaves in a second write


def test_two_hundred_endpoints_cost_no_more_than_twenty() -> None:
    many, few = counted(endpoints=200), counted(endpoints=20)

    assert all(cost <= 1.05 * less for cost, less in zip(many, few, strict=True)), (many, few)


def some_work() -> Work:
    return Work(100.0, 50.0, 2000.0, 4000, 0.0, {"a": 60.0, "b": 40.0})


@pytest.mark.parametrize("count", COUNTS)
def test_growth_beyond_the_tolerance_is_found_in_every_count(count: str) -> None:
    base = some_work()
    more = replace(base, **{count: getattr(base, count) * 1.06 + 20})

    assert exceeded(base, more) == [count]


def test_growth_within_the_tolerance_passes() -> None:
    base = some_work()

    assert exceeded(base, replace(base, python_calls=104.0, instructions=2090.0, kept_bytes=10.0)) == []


def test_the_difference_names_the_functions_that_are_called_more_often_first() -> None:
    base = some_work()
    more = replace(base, python_calls=110.0, calls={"a": 59.0, "b": 40.0, "c": 11.0})

    assert difference(base, more) == [
        "  python_calls       100.00 ->     110.00   +10.0%  <- too much",
        "    +11.00 calls  c",
        "     -1.00 calls  a",
    ]
