"""One difference between two configurations, in terms of what clients see."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gateway.settings.problems import Path, dotted
from gateway.settings.source import NEED_RESTART

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
        return len(self.path) == 2 and self.path[0] == "server" and self.path[1] in NEED_RESTART
