"""What was found is remembered, for each version of each engine, so that the next run can tell what is new.

One file per engine, in a folder of its own for each configuration file. No secrets are in it: findings have none.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from gateway.doctor.finding import Diagnosis, Finding, Level

UNKNOWN: Final = "unknown"
"""The version of an engine that does not tell."""


@dataclass(frozen=True, slots=True)
class Record:
    """The last run over one engine. ``at``: when, in UTC."""

    engine: str
    version: str
    at: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """What is new since the last run, what is gone, and the engines with another version than then."""

    new: tuple[Finding, ...] = ()
    gone: tuple[Finding, ...] = ()
    versions: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def plain(self) -> dict[str, object]:
        """For JSON."""
        return {
            "new": [finding.plain() for finding in self.new],
            "gone": [finding.plain() for finding in self.gone],
            "versions": {engine: {"before": old, "now": new} for engine, (old, new) in self.versions.items()},
        }


def default_folder(environ: Mapping[str, str]) -> Path:
    """`$XDG_STATE_HOME/turnout/doctor`, else `~/.local/state/turnout/doctor`."""
    state = environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "turnout" / "doctor"


def folder_for(base: Path, source: Path) -> Path:
    """Where the results for one configuration file are."""
    resolved = str(source.resolve())
    return base / f"{source.stem}-{hashlib.sha256(resolved.encode()).hexdigest()[:12]}"


def last(folder: Path) -> dict[str, Record]:
    """The last run over each engine; files that cannot be read count as none."""
    found = (_last_of(path) for path in sorted(folder.glob("*.json")))
    return {record.engine: record for record in found if record is not None}


def keep(folder: Path, diagnosis: Diagnosis, engines: Iterable[str], now: float) -> None:
    """Writes a run down: under the version that each engine has, in place of an earlier run with it.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for engine in engines:
        path = folder / f"{engine}.json"
        version = diagnosis.versions.get(engine) or UNKNOWN
        runs = _read(path).get("runs")
        kept = runs if isinstance(runs, dict) else {}
        at = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
        findings = [finding.plain() for finding in diagnosis.findings if finding.engine == engine]
        kept[version] = {"at": at, "findings": findings}
        text = json.dumps({"engine": engine, "last": version, "runs": kept}, indent=2, ensure_ascii=False)
        whole = path.with_suffix(".new")
        whole.write_text(text + "\n", encoding="utf-8")
        whole.replace(path)


def compare(before: Mapping[str, Record], diagnosis: Diagnosis) -> Difference:
    """A run against the last one.

    Evidence holds numbers that vary: what was checked and what is to be done tell findings apart.
    """
    old = {_mark(finding): finding for record in before.values() for finding in record.findings}
    now = {_mark(finding): finding for finding in diagnosis.findings}
    versions = {
        engine: (before[engine].version, version or UNKNOWN)
        for engine, version in diagnosis.versions.items()
        if engine in before and before[engine].version != (version or UNKNOWN)
    }
    looked_at = diagnosis.versions.keys()
    return Difference(
        tuple(finding for mark, finding in now.items() if mark not in old),
        tuple(finding for mark, finding in old.items() if mark not in now and finding.engine in looked_at),
        versions,
    )


def _mark(finding: Finding) -> tuple[str, ...]:
    return (finding.engine, finding.model, finding.check, finding.fix)


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _last_of(path: Path) -> Record | None:
    given = _read(path)
    try:
        run = given["runs"][given["last"]]
        findings = tuple(Finding(**{**one, "level": Level(one["level"])}) for one in run["findings"])
        return Record(str(given["engine"]), str(given["last"]), str(run["at"]), findings)
    except (KeyError, TypeError, ValueError):
        return None
