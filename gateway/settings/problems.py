"""What can be wrong with a configuration, as values: every mistake has a place, a key and a way out."""

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Where a value sits in the tree: mapping keys and list indexes, from the root."""


class Level(StrEnum):
    """How bad it is."""

    ERROR = "error"
    WARNING = "warning"
    """It can be served, and is probably not meant."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake, or a warning; `rule` names the kind of a warning.

    `line` and `column` count from 1. They are None where a mistake has no line: a file that cannot be read, or a value
    that an environment variable gave, which `variable` then names.
    """

    message: str
    key: str = ""
    suggestion: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    variable: str | None = None
    level: Level = Level.ERROR
    rule: str = ""

    def __str__(self) -> str:
        """`file:line:column: key.path: message (suggestion)`, in one line; parts that are not known are left out.

        A warning says so after its place.
        """
        place = self.variable or self.file
        if place is not None and self.line is not None:
            place = f"{place}:{self.line}:{self.column}"
        level = self.level.value if self.level is not Level.ERROR else ""
        text = ": ".join(part for part in (place, level, self.key, self.message) if part)
        return f"{text} ({self.suggestion})" if self.suggestion else text

    @property
    def order(self) -> tuple[bool, int, int]:
        """Sorts problems as a reader meets them: the file from top to bottom, then the environment."""
        return (self.line is None, self.line or 0, self.column or 0)


class ConfigErrors(Exception):
    """A configuration that cannot be used, with everything that is wrong with it.

    `lines` are the file's lines, secrets masked, for whoever wants to point at a mistake; empty without a file.
    `others` has those of further files, by their names.
    """

    def __init__(
        self,
        problems: Iterable[Problem],
        lines: Iterable[str] = (),
        others: Mapping[str, Iterable[str]] = MappingProxyType({}),
    ) -> None:
        self.problems: tuple[Problem, ...] = tuple(sorted(problems, key=lambda problem: problem.order))
        self.lines: tuple[str, ...] = tuple(lines)
        self._others = {file: tuple(its_lines) for file, its_lines in others.items()}
        super().__init__("\n".join(map(str, self.problems)))

    def lines_of(self, problem: Problem) -> tuple[str, ...]:
        """The lines of the file that a problem is in."""
        return self._others.get(problem.file or "", self.lines)


@dataclass(frozen=True, slots=True)
class Finding:
    """A mistake that knows its place in the tree, not yet in a file.

    `at_key` points at the mapping key instead of its value (an unknown key, a name that is taken). `value_as` is how
    to add what the file says there, with {} for it: nothing is added for a secret, or a value from the environment.
    """

    path: Path
    message: str
    suggestion: str | None = None
    at_key: bool = False
    value_as: str = ""
    rule: str = ""


def dotted(path: Path) -> str:
    """`engines.qwen.urls[0]`; a key that itself holds dots or brackets is quoted: `models."qwen2.5".engine`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        plain = part and part.isprintable() and not set(part) & set('.[]" ')
        name = part if plain else json.dumps(part, ensure_ascii=not part.isprintable())
        text += f".{name}" if text else name
    return text


def did_you_mean(wrong: str, candidates: Iterable[str]) -> str | None:
    """`did you mean "engines"?`, or None when nothing is close."""
    known = {candidate.lower(): candidate for candidate in candidates}
    close = difflib.get_close_matches(wrong.lower(), known, n=1)
    return f'did you mean "{known[close[0]]}"?' if close else None
