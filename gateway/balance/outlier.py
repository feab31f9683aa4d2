"""Passive outlier detection: endpoints that fail, or are slow, while their peers are not.

The breaker knows one endpoint only; here they are compared. And here is the bound on ejection: traffic taken from one
replica falls on the others, and a poisonous kind of request makes every replica look bad.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class OutlierSettings:
    """When an endpoint stands out among at least two others with as many requests.

    `volume`: judged requests in the breaker's window before an endpoint is compared. `least_share`: failures below
    this share are never a reason. `factor`: how many times worse than its peers' median. `slow_factor`: the same for
    the time to the first token; None (the default) never ejects for slowness, least_requests already sends less there.
    """

    volume: int = 20
    least_share: float = 0.1
    factor: float = 4.0
    slow_factor: float | None = None
    slow_margin: float = 0.5


@dataclass(frozen=True, slots=True)
class Sample:
    """What is known of one endpoint: judged outcomes in the window, mean seconds to the first token."""

    good: int
    bad: int
    first_token: float | None = None


def ejection_limit(endpoints: int) -> int:
    """How many of an engine's endpoints may be ejected at once: half, but one of one.

    A sole endpoint may be marked, because a route can have other engines. Nothing is lost by it: a route without any
    other choice sends its requests to ejected endpoints all the same.
    """
    return max(1, endpoints // 2)


def find_outliers(samples: Sequence[Sample], settings: OutlierSettings) -> list[tuple[int, str]]:
    """Which samples stand out, worst first, each with the reason.

    Invariants: nobody is compared without two peers of enough volume; equal samples never stand out; an endpoint
    without failures is never named for failing.
    """
    judged = [(index, sample) for index, sample in enumerate(samples) if sample.good + sample.bad >= settings.volume]
    if len(judged) < 3:
        return []
    found = [entry for index, sample in judged if (entry := _stands_out(index, sample, judged, settings))]
    found.sort(key=lambda entry: entry[0], reverse=True)
    return [(index, reason) for _, index, reason in found]


def _stands_out(
    index: int, sample: Sample, judged: Sequence[tuple[int, Sample]], settings: OutlierSettings
) -> tuple[float, int, str] | None:
    peers = [peer for other, peer in judged if other != index]
    share = _share(sample)
    usual = median(_share(peer) for peer in peers)
    if share >= settings.least_share and share > settings.factor * usual:
        return (share, index, f"{share:.0%} of requests fail, {usual:.0%} on its peers")
    times = [peer.first_token for peer in peers if peer.first_token is not None]
    if settings.slow_factor is None or sample.first_token is None or len(times) < 2:
        return None
    common = median(times)
    if sample.first_token > settings.slow_factor * common and sample.first_token - common > settings.slow_margin:
        return (0.0, index, f"first token after {sample.first_token:.2g} s, {common:.2g} s on its peers")
    return None


def _share(sample: Sample) -> float:
    return sample.bad / (sample.good + sample.bad)
