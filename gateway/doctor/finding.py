"""What a check has to say."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    ERROR = "error"
    """Clients get errors or wrong answers."""
    WARNING = "warning"
    """It works, less well or less safely than it should."""
    INFO = "info"
    """Good to know."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A promise that is not kept. ``model`` is empty where the whole engine is meant.

    ``evidence`` is what was seen, ``fix`` names the exact flag of the engine or the exact line of the file.
    """

    level: Level
    engine: str
    model: str
    check: str
    evidence: str
    fix: str

    def plain(self) -> dict[str, str]:
        """For JSON."""
        return {
            "level": self.level.value,
            "engine": self.engine,
            "model": self.model,
            "check": self.check,
            "evidence": self.evidence,
            "fix": self.fix,
        }


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found, and the version of each engine that told it."""

    findings: tuple[Finding, ...]
    versions: Mapping[str, str]

    def failed(self, *, strict: bool) -> bool:
        """Whether anything is wrong; ``strict``: warnings count."""
        bad = (Level.ERROR, Level.WARNING) if strict else (Level.ERROR,)
        return any(finding.level in bad for finding in self.findings)


def counted(findings: Iterable[Finding], level: Level) -> int:
    """How many there are of a level."""
    return sum(finding.level is level for finding in findings)
