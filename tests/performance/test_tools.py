"""Tools cost a streamed event little, and a request without tools nothing."""

import pytest

from tests.performance.tools import counted, steps

MOST = 60
"""Calls that may come on top of those of an event without tools. An event that is taken apart needs more than these."""


@pytest.fixture(scope="module")
def work() -> dict[str, float]:
    return {name: counted(step) for name, step in steps().items()}


def test_an_event_with_tools_is_not_taken_apart(work: dict[str, float]) -> None:
    """Neither where calls are read here nor where the engine parses them."""
    plain = work["without tools"]

    assert {name: count - plain for name, count in work.items() if count - plain > MOST} == {}


def test_every_way_is_counted(work: dict[str, float]) -> None:
    assert len(work) == 10
    assert min(work.values()) == work["without tools"] > 10
