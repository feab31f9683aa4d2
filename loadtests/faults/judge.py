"""Whether a request that failed could have been saved: from what its client saw and what the replicas wrote down."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from loadtests.faults.replicas import Replica, none_left
from loadtests.faults.scenario import Excuse
from loadtests.sample import CUT, ERROR_EVENT, OK, REFUSED, UNFINISHED, Sample

UNAVAILABLE: Final = frozenset({"502", "503", "504"})


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of the load. The moments of its sample are those of `perf_counter`."""

    number: int
    sample: Sample


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known when the load is over. `last_at` has the replica that worked on each request last."""

    replicas: Sequence[Replica]
    last_at: Mapping[int, int] = field(default_factory=dict)
    notice: float = 0.0
    gateway_left: float | None = None
    """When the gateway was told to stop, with nobody to follow it."""


def excuse(asked: Asked, facts: Facts) -> Excuse | None:
    """Why a request that failed could not be served; None: it could have been."""
    sample = asked.sample
    end = sample.last if sample.last is not None and sample.last >= sample.sent else sample.sent
    if sample.outcome in {ERROR_EVENT, CUT} and _had_begun(sample):
        replica = facts.last_at.get(asked.number)
        if sample.outcome == ERROR_EVENT and replica is not None:
            outages = facts.replicas[replica].outages
            return Excuse.BEGUN if any(outage.overlaps(sample.sent, end) for outage in outages) else None
        return None
    if sample.outcome in {REFUSED, CUT} and facts.gateway_left is not None and end >= facts.gateway_left:
        return Excuse.NO_GATEWAY
    if sample.outcome in UNAVAILABLE and none_left(facts.replicas, sample.sent, end, facts.notice):
        return Excuse.NONE_LEFT
    return None


def _had_begun(sample: Sample) -> bool:
    """Whether the client has seen more than an error event."""
    return sample.events > 1 or (sample.events == 1 and sample.outcome == CUT)


def describe(asked: Asked, facts: Facts) -> str:
    """A failure that nothing excuses, for people."""
    sample = asked.sample
    at = facts.last_at.get(asked.number)
    where = "no replica worked on it" if at is None else f"replica {at} had it last"
    how = "it did not end" if sample.outcome == UNFINISHED else sample.outcome
    return f"request {asked.number}: {how} after {sample.events} events; {where}"


def failed(asked: Sequence[Asked]) -> list[Asked]:
    """Those that were not answered well."""
    return [one for one in asked if one.sample.outcome != OK]
