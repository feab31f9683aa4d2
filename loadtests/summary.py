"""From samples to numbers."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from loadtests.sample import OK, Sample

PERCENTILES: Final = (50, 90, 99)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest value that is not exceeded by `percent` of all (nearest rank); NaN if there are none."""
    if not ordered:
        return math.nan
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


@dataclass(frozen=True, slots=True)
class Spread:
    """A distribution in milliseconds."""

    count: int
    p50: float
    p90: float
    p99: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> "Spread":
        """From seconds, in any order."""
        ordered = sorted(seconds)
        return cls(len(ordered), *(1000 * percentile(ordered, percent) for percent in PERCENTILES))


@dataclass(frozen=True, slots=True)
class Summary:
    """One scenario on one side."""

    requests: int
    ok: int
    errors: dict[str, int]
    """By kind; see `loadtests.sample`."""
    seconds: float
    requests_per_second: float
    """Answered well."""
    events_per_second: float
    first: Spread
    """From the moment when a request was due to the first event of a stream; plain answers have none."""
    between: Spread
    """Between the events of a stream."""
    whole: Spread
    """From the moment when a request was due to the end of its answer."""
    late: Spread
    """How late the load generator sent what was due. Where this is not small, the latencies are not the system's."""


def firsts(samples: Iterable[Sample]) -> list[float]:
    """Seconds from due to the first event of the good streams."""
    return [sample.first - sample.due for sample in samples if sample.outcome == OK and sample.first is not None]


def betweens(samples: Iterable[Sample]) -> list[float]:
    """Seconds between events of the good answers."""
    return [gap for sample in samples if sample.outcome == OK for gap in sample.gaps]


def wholes(samples: Iterable[Sample]) -> list[float]:
    """Seconds from due to the end of the good answers."""
    return [sample.last - sample.due for sample in samples if sample.outcome == OK and sample.last is not None]


def errors(samples: Iterable[Sample]) -> dict[str, int]:
    """How many requests ended badly, by kind."""
    return dict(Counter(sample.outcome for sample in samples if sample.outcome != OK))


def summarise(samples: Sequence[Sample]) -> Summary:
    """Everything about the samples; the time is that from the first due moment to the last answer."""
    began = min((sample.due for sample in samples), default=0.0)
    seconds = max((sample.last or sample.due for sample in samples), default=0.0) - began
    good = sum(sample.outcome == OK for sample in samples)
    return Summary(
        requests=len(samples),
        ok=good,
        errors=errors(samples),
        seconds=seconds,
        requests_per_second=good / seconds if seconds else 0.0,
        events_per_second=sum(sample.events for sample in samples) / seconds if seconds else 0.0,
        first=Spread.of(firsts(samples)),
        between=Spread.of(betweens(samples)),
        whole=Spread.of(wholes(samples)),
        late=Spread.of(max(0.0, sample.sent - sample.due) for sample in samples if sample.sent),
    )
