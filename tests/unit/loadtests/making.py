"""Samples and results made by hand."""

from loadtests.load import Loaded
from loadtests.run import Measured, Result
from loadtests.sample import OK, Sample
from loadtests.scenario import Scenario, Shape, Steady
from loadtests.summary import summarise
from loadtests.usage import Look

SCENARIO = Scenario("some", "A <load>.", Steady(1.0), (Shape("one", "chat", {"stream": True}),))


def streamed(due: float, first: float, *gaps: float, outcome: str = OK) -> Sample:
    return Sample("one", due, due, first, first + sum(gaps), 1 + len(gaps), list(gaps), 100, outcome)


def measured(*samples: Sample, looks: tuple[Look, ...] = ()) -> Measured:
    return Measured(Loaded(0.0, 10.0, samples, ()), summarise(samples), looks)


def result() -> Result:
    looks = (Look(0.1, 0.0, 50_000_000), Look(0.6, 0.1, 60_000_000), Look(1.1, 0.2, 55_000_000))
    ours = measured(
        streamed(0.0, 0.2, 0.1, 0.1), streamed(1.0, 1.2, 0.1), Sample("one", 1.5, 1.5, outcome="503"), looks=looks
    )
    theirs = measured(streamed(0.0, 0.1, 0.1, 0.1), streamed(1.0, 1.1, 0.1))
    return Result(SCENARIO, theirs, ours)
