"""The committed measure of work, one file per Python version: compilers differ in the instructions they make."""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Final

from tests.performance.work import Work

TOLERANCE: Final = 0.05
"""The share by which a count may exceed the baseline."""

SLACK: Final = {"kept_bytes": 16.0}
"""What may come on top, in the count's own unit: zero has no share."""

RENEW: Final = "python -m tests.performance"
COUNTS: Final = tuple(field.name for field in fields(Work) if field.name != "calls")
FOLDER: Final = Path(__file__).parent


def file_for(version: tuple[int, int] = sys.version_info[:2]) -> Path:
    return FOLDER / "baseline-{}.{}.json".format(*version)


def load(path: Path) -> dict[str, Work]:
    return {name: Work(**work) for name, work in json.loads(path.read_text()).items()}


def save(path: Path, works: Mapping[str, Work]) -> None:
    path.write_text(json.dumps({name: asdict(work) for name, work in works.items()}, indent=1) + "\n")


def allowed(base: Work, count: str) -> float:
    limit: float = getattr(base, count) * (1 + TOLERANCE) + SLACK.get(count, 0.0)
    return limit


def exceeded(base: Work, work: Work) -> list[str]:
    """The names of the counts that are above what is allowed."""
    return [count for count in COUNTS if getattr(work, count) > allowed(base, count)]


def difference(base: Work, work: Work) -> list[str]:
    """What changed, for people: the counts, then the functions that are called more or less often."""
    lines = []
    for count in COUNTS:
        old, new = getattr(base, count), getattr(work, count)
        share = f"{(new - old) / old:+.1%}" if old else "new"
        mark = "  <- too much" if new > allowed(base, count) else ""
        if old != new:
            lines.append(f"  {count:<14} {old:>10,.2f} -> {new:>10,.2f}  {share:>7}{mark}")
    changed = {
        name: work.calls.get(name, 0.0) - base.calls.get(name, 0.0) for name in base.calls.keys() | work.calls.keys()
    }
    lines += [
        f"  {change:>+8.2f} calls  {name}"
        for name, change in sorted(changed.items(), key=lambda entry: (-entry[1], entry[0]))
        if change
    ]
    return lines
