"""What a lint finds, as a value."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    ERROR = "error"
    """It does not start, or does not do what it says."""
    WARNING = "warning"
    """It starts, and is probably not meant."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: where it is (`line` counts from 1; 0: the whole file), the rule, why it is one, and the way out."""

    level: Level
    file: str
    line: int
    rule: str
    message: str
    fix: str

    @property
    def order(self) -> tuple[str, int, str, str]:
        """As a reader meets them."""
        return (self.file, self.line, self.level.value, self.rule)


@dataclass(frozen=True, slots=True)
class At:
    """A place, which findings are made at."""

    file: str
    line: int = 0

    def error(self, rule: str, message: str, fix: str) -> Finding:
        """A fault that keeps it from working."""
        return Finding(Level.ERROR, self.file, self.line, rule, message, fix)

    def warning(self, rule: str, message: str, fix: str) -> Finding:
        """Something that is probably not meant."""
        return Finding(Level.WARNING, self.file, self.line, rule, message, fix)
