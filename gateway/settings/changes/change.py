"""One difference between two configurations, in terms of what clients see."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gateway.settings.problems import Path, dotted

NEED_RESTART: Final = frozenset({("server", "host"), ("server", "port"), ("server", "workers")})
"""Keys that hold from the start to the end of a process."""

_SINGULAR: Final = {"engines": "engine", "models": "model", "keys": "key"}


class Kind(StrEnum):
    """What happened to it."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Change:
    """A difference at `path`. `meaning` is for people; `before` and `after` are values as the file has them.

    `breaks`: something that clients do now would be refused.
    """

    kind: Kind
    path: Path
    meaning: str
    before: str | None = None
    after: str | None = None
    breaks: bool = False

    @property
    def subject(self) -> str:
        """What changes: `model chat`, `engine qwen`, `server`."""
        match self.path:
            case (str(section), str(name), *_) if section in _SINGULAR:
                return f"{_SINGULAR[section]} {name}"
            case (section, *_):
                return str(section)
            case _:
                return ""

    @property
    def key(self) -> str:
        """The key's dotted path."""
        return dotted(self.path)

    @property
    def restart(self) -> bool:
        """Whether the change is in force only after a restart."""
        return self.path in NEED_RESTART
