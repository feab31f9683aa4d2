"""When which request is due. The same seed gives the same load, with and without the gateway."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, assert_never

from loadtests.scenario import Bursts, Clients, Scenario, Shape, Steady

SEED: Final = 20240501
LIMIT: Final = 20_000
"""Requests that one scenario may send, whatever its rate."""


@dataclass(frozen=True, slots=True)
class Due:
    """A request and the moment at which it has to be sent, in seconds from the start."""

    at: float
    shape: Shape


def schedule(scenario: Scenario, seed: int = SEED) -> tuple[Due, ...]:
    """All requests of an open loop in order; empty for a closed loop, whose requests depend on the answers."""
    choose = shapes(scenario.shapes, seed)
    moments = itertools.takewhile(lambda at: at < scenario.seconds, _moments(scenario, Random(seed)))
    return tuple(Due(at, next(choose)) for at in itertools.islice(moments, LIMIT))


def shapes(among: Sequence[Shape], seed: int = SEED) -> Iterator[Shape]:
    """Shapes at random, by their weights, without end."""
    rng = Random(seed + 1)
    weights = [shape.weight for shape in among]
    while True:
        yield rng.choices(among, weights)[0]


def _moments(scenario: Scenario, rng: Random) -> Iterator[float]:
    match scenario.arrivals:
        case Steady(per_second):
            at = 0.0
            while True:
                yield (at := at + rng.expovariate(per_second))
        case Bursts(size, every):
            for number in itertools.count():
                yield from itertools.repeat(number * every, size)
        case Clients():
            return
        case _ as never:
            assert_never(never)
