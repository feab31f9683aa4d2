"""What an engine says about its own load, as a number of requests to add to ours.

An endpoint may serve others too (a second gateway, a notebook). Its metrics tell how many requests run and wait and how
full its KV cache is; the part that is not ours is `extra`. A report is worth less as it ages: after `FRESH` seconds it
counts half, after `STALE` nothing, so an engine whose metrics have gone silent is judged by our own requests alone.
"""

from dataclasses import dataclass
from typing import Final

FRESH: Final = 10.0
STALE: Final = 30.0
CROWDED: Final = 0.8
"""KV-cache use from which on an engine starts to preempt or to hold requests back."""


@dataclass(frozen=True, slots=True)
class LoadReport:
    """One reading of an engine's metrics. `own`: our requests in flight at that moment. `kv_use` is in 0..1."""

    running: float
    waiting: float
    kv_use: float
    own: int
    at: float


def extra_load(report: LoadReport | None, now: float) -> int:
    """Whole requests to add to our own: those of others, and up to all once more as the KV cache fills up.

    Invariants: never negative; 0 without a report or with a stale one; never falls as `waiting` or `kv_use` rises.
    A whole number, because comparing loads is on the path of every request.
    """
    if report is None or now - report.at >= STALE:
        return 0
    total = max(0.0, report.running) + max(0.0, report.waiting)
    crowded = min(1.0, max(0.0, report.kv_use - CROWDED) / (1.0 - CROWDED))
    extra = max(0.0, total - report.own) + crowded * total
    return round(extra if now - report.at < FRESH else extra / 2)


def next_change(report: LoadReport, now: float) -> float | None:
    """When the report's worth changes next; None once it is stale."""
    for age in (FRESH, STALE):
        if now < report.at + age:
            return report.at + age
    return None
