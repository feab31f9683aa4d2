"""The report: one HTML file that needs nothing else, and the numbers as JSON."""

import datetime as dt
import html
import importlib.metadata
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from string import Template
from typing import Any, Final

import msgspec
from plotly.offline import get_plotlyjs

from loadtests.plots import figure
from loadtests.run import Measured, Result
from loadtests.summary import Spread

TEMPLATE: Final = Path(__file__).with_name("report.html")


def write(results: Sequence[Result], folder: Path, carrier: str) -> Path:
    """Writes `report.html` and `results.json`; returns the path of the first."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = surroundings(carrier)
    moment = dt.datetime.now(dt.UTC).isoformat(timespec="minutes")
    document = {"date": moment, "environment": environment, "scenarios": [as_json(result) for result in results]}
    (folder / "results.json").write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
    page = Template(TEMPLATE.read_text()).substitute(
        date=moment.replace("T", " ").replace("+00:00", " UTC"),
        environment=html.escape(", ".join(f"{name} {value}" for name, value in environment.items())),
        rows="\n".join(row(result) for result in results),
        plotly=get_plotlyjs(),
        sections="\n".join(section(result) for result in results),
    )
    report = folder / "report.html"
    report.write_text(page)
    return report


def surroundings(carrier: str) -> dict[str, str]:
    """What the numbers depend on."""
    return {
        "turnout": importlib.metadata.version("turnout"),
        "carrier": carrier,
        "Python": platform.python_version(),
        "uvicorn": importlib.metadata.version("uvicorn"),
        "uvloop": importlib.metadata.version("uvloop"),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": str(os.cpu_count()),
    }


def as_json(result: Result) -> dict[str, Any]:
    """A scenario's numbers: the summaries, what the gateway added, and what it used."""
    ours, theirs = result.gateway.summary, result.direct.summary
    return {
        "name": result.scenario.name,
        "about": result.scenario.about,
        "seconds": result.scenario.seconds,
        "direct": asdict(theirs),
        "gateway": asdict(ours),
        "added_ms": {
            "first": added(ours.first, theirs.first),
            "between": added(ours.between, theirs.between),
            "whole": added(ours.whole, theirs.whole),
        },
        "gateway_use": {
            "cpu_ms_per_request": cpu_per_request(result.gateway),
            "memory_mb_most": most_memory(result.gateway),
            "over_time": [asdict(look) for look in result.gateway.looks],
        },
        "slow_readers_received": [sample.received for sample in result.gateway.loaded.slow],
        "unexpected_errors": result.unexpected,
    }


def added(ours: Spread, theirs: Spread) -> dict[str, float]:
    """The difference of the percentiles, in milliseconds."""
    return {name: getattr(ours, name) - getattr(theirs, name) for name in ("p50", "p90", "p99")}


def cpu_per_request(measured: Measured) -> float:
    """Milliseconds of the gateway's process tree, its share of streamed events included."""
    used = measured.looks[-1].cpu if measured.looks else 0.0
    return 1000 * used / measured.summary.requests if measured.summary.requests else math.nan


def most_memory(measured: Measured) -> float:
    """Megabytes resident."""
    return max((look.memory for look in measured.looks), default=0) / 1e6


def row(result: Result) -> str:
    """A line of the table."""
    ours, theirs = result.gateway.summary, result.direct.summary
    errors = f"{counted(ours.errors)} / {counted(theirs.errors)}"
    cells = [
        result.scenario.name,
        str(ours.requests),
        f"{ours.requests_per_second:.1f}",
        f"{ours.events_per_second:.0f}",
        three(asdict(ours.first)),
        three(added(ours.first, theirs.first), digits=2),
        three(asdict(ours.between)),
        three(asdict(ours.whole), digits=0),
        three(added(ours.whole, theirs.whole), digits=2),
        f"{cpu_per_request(result.gateway):.2f}",
        f"{most_memory(result.gateway):.0f}",
        f"{ours.late.p99:.1f}",
    ]
    mark = ' class="bad"' if result.unexpected else ""
    return f"<tr><td>{'<td>'.join(map(html.escape, cells))}<td{mark}>{html.escape(errors)}</tr>"


def three(spread: dict[str, float], digits: int = 1) -> str:
    """p50, p90 and p99."""
    if math.isnan(spread["p50"]):
        return "-"
    return " / ".join(f"{spread[name]:.{digits}f}" for name in ("p50", "p90", "p99"))


def counted(errors: dict[str, int]) -> str:
    """Errors by kind, for people."""
    return ", ".join(f"{count} x {kind}" for kind, count in sorted(errors.items())) or "none"


def section(result: Result) -> str:
    """A scenario's plots."""
    plots: str = figure(result).to_html(full_html=False, include_plotlyjs=False)
    return f"<h2>{html.escape(result.scenario.name)}</h2>\n<p>{html.escape(result.scenario.about)}</p>\n{plots}"
