"""When free memory goes back to the system."""

from itertools import accumulate

import pytest

from gateway.cli.memory import Lull


@pytest.mark.parametrize(
    ("spent", "gives"),
    [
        ([0.0, 0.0, 0.0], []),
        ([0.3, 0.3, 0.0, 0.0, 0.0], [2]),
        ([0.3, 0.02, 0.02, 0.005, 0.0], [3]),
        ([0.02, 0.02, 0.0], []),
        ([0.3, 0.0, 0.3, 0.0, 0.0], [1, 3]),
    ],
)
def test_it_does_once_after_each_busy_time(spent: list[float], gives: list[int]) -> None:
    """CPU time from one look to the next: work that hardly is any neither begins nor ends a busy time."""
    lull = Lull()

    assert [number for number, until_now in enumerate(accumulate(spent)) if lull.comes(until_now)] == gives
