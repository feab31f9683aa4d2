"""The results for people (a table) and for programs (JSON)."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from loadtests.faults.run import Result

HEADINGS = ("sent", "served", "failed", "avoidable", "twice", "p99, ms", "added", "files", "memory", "seconds")


def show(console: Console, results: Sequence[Result]) -> None:
    """One row per scenario, then what was wrong and why requests failed that nobody could have served."""
    table = Table(title="Requests while engines fail")
    table.add_column("scenario", no_wrap=True)
    for heading in HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for one in results:
        table.add_row(one.name, *cells(one))
    console.print(table)
    for one in results:
        for reason, count in one.excused.items():
            console.print(f"{one.name}: {count} failed because {reason}", soft_wrap=True)
        for problem in (*one.avoidable, *one.wrong):
            console.print(f"[red]{one.name}: {problem}[/red]", soft_wrap=True)


def cells(one: Result) -> tuple[str, ...]:
    """The numbers of one scenario, as in `HEADINGS`."""
    return (
        str(one.sent),
        str(one.served),
        str(one.failed),
        str(len(one.avoidable)),
        str(one.duplicates),
        f"{one.loaded.p99:.0f}",
        f"{one.added:+.0f}",
        f"{one.after.files - one.before.files:+d}",
        f"{(one.after.memory - one.before.memory) / 2**20:+.1f}",
        f"{one.seconds:.0f}",
    )


def write(results: Sequence[Result], out: Path) -> Path:
    """Writes all of it to a file; gives its path."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / "faults.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(list(results)), indent=2))
    return path
