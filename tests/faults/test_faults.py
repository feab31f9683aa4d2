"""Engines fail under load, on real sockets and in processes of their own: `python -m loadtests.faults --short`.

Each scenario is judged by itself. They run a few at a time, so their latencies are no measurement.
"""

from collections.abc import Mapping
from typing import Final

import pytest
import uvloop

from loadtests.faults.catalogue import SHORT
from loadtests.faults.run import Result, run_all

TOGETHER: Final = 6

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def results() -> Mapping[str, Result]:
    """What came of every scenario."""
    found = uvloop.run(run_all(SHORT, "protocol", TOGETHER, lambda _: None, short=True))
    return {result.name: result for result in found}


@pytest.mark.parametrize("name", [scenario.name for scenario in SHORT])
def test_nothing_fails_that_could_have_been_saved_and_nothing_stays_behind(
    results: Mapping[str, Result], name: str
) -> None:
    """Gauges are at 0 again, files and memory are what they were, and every failure has a reason that holds."""
    result = results[name]

    assert (result.avoidable, result.wrong) == ([], [])
    assert result.sent > 0
    assert result.served + sum(result.excused.values()) == result.sent


def test_most_requests_are_served_even_so(results: Mapping[str, Result]) -> None:
    """Only where every replica says that it is full, or nobody listens any more, may more than one in six fail."""
    lost = {name: result.failed / result.sent for name, result in results.items()}

    assert {name for name, share in lost.items() if share > 1 / 6} <= {"busy", "stop"}
