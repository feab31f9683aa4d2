"""Writes the table of `docs/performance.md` from the results of the bench harness: `python -m loadtests.table`."""

import datetime as dt
import importlib.metadata
import json
import platform
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

DOCUMENT: Final = Path("docs/performance.md")
OURS: Final = "turnout"
OPTIMIZED: Final = "turnout-pgo"
ASGI: Final = "turnout-asgi"
ORDER: Final = (OURS, OPTIMIZED, ASGI, "nginx", "envoy", "vllm-router")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
LIBRARIES: Final = ("uvicorn", "uvloop", "httptools", "msgspec")
QUIET: Final = 0.15
"""The share of the gateway's core that others may have had before a round's latencies are doubted."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What the project promises: at most `factor` times a peer's figure, or an absolute number if `peer` is None.

    `ours` is the column that it is promised of.
    """

    factor: float
    peer: str | None = None
    ours: str = OURS

    def limit(self, medians: Mapping[str, float]) -> float | None:
        """The number; None if the peer was not measured."""
        if self.peer is None:
            return self.factor
        return self.factor * medians[self.peer] if self.peer in medians else None

    def __str__(self) -> str:
        return f"{self.factor:g}" if self.peer is None else f"{self.factor:g}x {self.peer}"


@dataclass(frozen=True, slots=True)
class Measure:
    """One row of the table: a key of the results of one scenario of the harness."""

    label: str
    scenario: str
    key: str
    digits: int
    bounds: tuple[Bound, ...] = ()


MEASURES: Final = (
    Measure(
        "CPU per request, 64 connections, µs",
        "saturate",
        "us_per_request",
        1,
        (Bound(2.0, "nginx"), Bound(0.6, "envoy"), Bound(65, ours=ASGI)),
    ),
    Measure("CPU per request, 20 KB body, µs", "body_20k", "us_per_request", 1, (Bound(0.8, "envoy"),)),
    Measure("CPU per request, 200 KB body, µs", "body_200k", "us_per_request", 1, (Bound(1.3, "envoy"),)),
    Measure("CPU per embeddings request, 30 KB answer, µs", "embed", "us_per_request", 1, (Bound(1.0, "envoy"),)),
    Measure("CPU per event, lone events, µs", "stream_slow", "us_per_event", 1, (Bound(1.0, "envoy"),)),
    Measure("CPU per event, bursts of 128, µs", "stream_burst", "us_per_event", 1, (Bound(1.2, "envoy"),)),
    Measure("CPU per event, 20,000 events/s, µs", "stream_busy", "us_per_event", 1, (Bound(0.9, "envoy"),)),
    Measure("CPU per event, as fast as possible, µs", "stream_fast", "us_per_event", 2, (Bound(3.5),)),
    Measure("Memory when idle, MB", "idle", "rss_mb", 0, (Bound(60),)),
    Measure("Memory with 500 open streams, MB", "stream_slow", "rss_mb", 0, (Bound(65),)),
    Measure("Added latency at 500 requests/s, p50, µs", "rate500", "added_p50_us", 0, (Bound(1.2, "nginx"),)),
    Measure("Added latency at 500 requests/s, p99, µs", "rate500", "added_p99_us", 0),
    Measure("Requests per second, 64 connections", "saturate", "rps", 0),
    Measure("Transit of a lone event, p50, µs", "stream_slow", "transit_p50_us", 0),
    Measure("Transit of a lone event, p99, µs", "stream_slow", "transit_p99_us", 0),
)

Rows = Sequence[Mapping[str, object]]


def read(paths: Iterable[Path]) -> list[dict[str, object]]:
    """All lines of results files."""
    return [json.loads(line) for path in paths for line in path.read_text().splitlines() if line]


def values(rows: Rows, measure: Measure) -> dict[str, list[float]]:
    """The figures of all rounds, by gateway."""
    found: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        value = row.get(measure.key)
        if row["scenario"] == measure.scenario and isinstance(value, int | float):
            found[str(row["gateway"])].append(float(value))
    return found


def table(rows: Rows) -> str:
    """Medians over the rounds, half the distance between the extremes, and whether the bounds are kept."""
    present = {str(row["gateway"]) for row in rows}
    gateways = [name for name in ORDER if name in present] + sorted(present - {*ORDER, "direct"})
    lines = [f"| | {' | '.join(gateways)} | at most |", f"|---|{'---:|' * len(gateways)}---|"]
    for measure in MEASURES:
        found = values(rows, measure)
        if found:
            cells = [cell(found.get(name, ()), measure.digits) for name in gateways]
            lines.append(f"| {measure.label} | {' | '.join(cells)} | {promise(measure, found)} |")
    return "\n".join(lines)


def cell(figures: Sequence[float], digits: int) -> str:
    """`13.2 ±0.4`."""
    if not figures:
        return "-"
    spread = (max(figures) - min(figures)) / 2
    return f"{statistics.median(figures):.{digits}f}" + (f" ±{spread:.{digits}f}" if len(figures) > 1 else "")


def promise(measure: Measure, found: Mapping[str, Sequence[float]]) -> str:
    """The bounds, as numbers of this run, and which are missed."""
    medians = {name: statistics.median(figures) for name, figures in found.items()}
    parts = []
    for bound in measure.bounds:
        limit = bound.limit(medians)
        if bound.ours != OURS and bound.ours not in medians:
            continue
        if limit is None or bound.ours not in medians:
            parts.append(f"{bound}: not measured")
            continue
        text = f"{limit:.{measure.digits}f}" + (f" ({bound})" if bound.peer else "")
        if bound.ours != OURS:
            text = f"{bound.ours} {text}"
        parts.append(text if medians[bound.ours] <= limit else f"**missed**: {text}")
    return "; ".join(parts)


def facts(rows: Rows, machine: str, peers: Sequence[str]) -> str:
    """When, where and with which versions."""
    moments = sorted(float(str(row["t"])) for row in rows)
    day = dt.datetime.fromtimestamp(moments[0], dt.UTC).date().isoformat()
    rounds = len({row["repeat"] for row in rows})
    busy = [float(str(row["other_busy"])) for row in rows if "other_busy" in row]
    libraries = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)
    counted = f"medians of {rounds} rounds, ± half the distance between the extremes" if rounds > 1 else "one round"
    lines = [
        f"Measured on {day} on {machine}; {counted}.",
        f"Turnout {importlib.metadata.version('turnout')}, Python {platform.python_version()}, {libraries}.",
        f"Peers: {', '.join(peers) or 'versions not noted'}.",
    ]
    if busy and statistics.median(busy) > QUIET:
        share = f"{statistics.median(busy):.0%}"
        lines.append(
            f"Other programs used {share} of the gateway's core meanwhile: CPU times are a little high, and latencies "
            "and throughput mean little."
        )
    return "\n".join(lines)


def failures(rows: Rows) -> str:
    """What went wrong, as a list; empty if nothing did."""
    failed = [row for row in rows if row.get("failed") or row.get("errors")]
    return "\n".join(f"- {row['gateway']}, {row['scenario']}: {trouble(row)}" for row in failed)


def trouble(row: Mapping[str, object]) -> str:
    """Why a row is not a good one."""
    return str(row["failed"]) if row.get("failed") else f"{row['errors']} errors"


def insert(document: str, measured: str) -> str:
    """The document with what stands between its marks replaced.

    Raises:
        ValueError: it does not have the marks, once each and in order.
    """
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if len(pattern.findall(document)) != 1:
        raise ValueError(f"the document needs one {BEGIN} … {END}")
    return pattern.sub(lambda _: f"{BEGIN}\n{measured}\n{END}", document)


def main(
    results: Annotated[list[Path], typer.Argument(help="Results files of the bench harness.", exists=True)],
    machine: Annotated[str, typer.Option(help="The kind of machine.")] = "an unnamed machine",
    peer: Annotated[list[str] | None, typer.Option(help='A peer and its version, such as "nginx 1.22.1".')] = None,
    document: Annotated[Path, typer.Option(help="The document whose table is renewed.")] = DOCUMENT,
) -> None:
    """Renew the table of measured figures."""
    rows = read(results)
    parts = [facts(rows, machine, peer or ()), table(rows), failures(rows)]
    document.write_text(insert(document.read_text(), "\n\n".join(part for part in parts if part)))


if __name__ == "__main__":
    typer.run(main)
