"""How a value is written in a settings file: what editors may accept there, as JSON Schema, and how people read it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

Schema: TypeAlias = dict[str, object]

VARIABLE: Final[Schema] = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}
"""A value from the environment may stand for every single value."""


@dataclass(frozen=True, eq=False, slots=True)
class Written:
    """A type's annotation: its JSON Schema, and the text that stands for a value in a file or a sentence."""

    schema: Mapping[str, object]
    text: Callable[[object], str] | None = None


def any_of(*choices: Mapping[str, object], expected: str = "") -> Schema:
    """One of several forms; `expected` is what an editor says about anything else."""
    told: Schema = {"errorMessage": f"expected {expected}"} if expected else {}
    return {"anyOf": [*map(dict, choices)], **told}


def matching(pattern: str, expected: str = "") -> Schema:
    """Text of a form, or a variable."""
    return any_of({"type": "string", "pattern": pattern}, VARIABLE, expected=expected)


def one_of(words: Iterable[str], *, others: bool = False) -> Schema:
    """One of these words, or a variable; with `others`, any text, and the words are what editors offer."""
    return any_of({"enum": list(words)}, {"type": "string"} if others else VARIABLE)


def whole(least: int, most: int | None = None) -> Written:
    """A whole number within bounds."""
    bounds: Schema = {"minimum": least} if most is None else {"minimum": least, "maximum": most}
    digits: Schema = {"type": "string", "pattern": r"^\s*[0-9]{1,18}\s*$"}
    wanted = f"of at least {least}" if most is None else f"from {least} to {most}"
    return Written(any_of({"type": "integer", **bounds}, digits, VARIABLE, expected=f"a whole number {wanted}"))
