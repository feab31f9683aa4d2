"""What a program's flags are, as data, and the reading of a command line with it.

A table is text, one flag per line: `--name other names: takes choices`. `takes` says what follows the flag: `switch`
nothing; `switch!` nothing, and `--no-name` exists too; `int`, `float`, `count` (a whole number that may end in k, M,
…), `json`, `text` one value; with `+` one or more, with `?` one or none, with `3` three values.
"""

import difflib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

_COUNT: Final = re.compile(r"\d+|\d+(\.\d+)?[kKmMgGtT]i?B?", re.ASCII)
_WHOLE: Final = re.compile(r"-?\d+", re.ASCII)
_HOW_MANY: Final[Mapping[str, tuple[int, float]]] = {"": (1, 1), "+": (1, math.inf), "?": (0, 1), "3": (3, 3)}


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: its names, the first of which is the usual one, and what follows it."""

    names: tuple[str, ...]
    kind: str
    least: int
    most: float
    choices: tuple[str, ...] = ()
    negatable: bool = False

    @property
    def name(self) -> str:
        """The usual name."""
        return self.names[0]


@dataclass(frozen=True, slots=True)
class Given:
    """A flag as a command line has it. `at` is the index of its word; `fault` says what is wrong with it, if anything.

    `flag` is None where no flag of that name is known.
    """

    at: int
    written: str
    flag: Flag | None
    values: tuple[str, ...] = ()
    fault: str = ""
    fix: str = ""


@dataclass(frozen=True)
class FlagTable:
    """All flags of one program in one version.

    `loose` programs (vLLM) also take `_` for `-` in a flag's name, `--json-flag.member value`, and `-O3`. Programs that
    `shorten` take the beginning of a name where only one begins so (Python's argparse).
    """

    program: str
    version: str
    text: str
    loose: bool = False
    shorten: bool = False
    former: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Flags that it had in earlier versions, and what to write now."""

    @cached_property
    def flags(self) -> tuple[Flag, ...]:
        """Every flag, in the order of the table."""
        joined = re.sub(r"\n\s+", " ", self.text.strip())
        return tuple(_flag(row) for row in joined.splitlines())

    @cached_property
    def by_name(self) -> Mapping[str, Flag]:
        """Every flag under each of its names, the negative ones too."""
        named = {name: flag for flag in self.flags for name in flag.names}
        return named | {f"--no-{flag.name[2:]}": flag for flag in self.flags if flag.negatable}

    def find(self, written: str) -> Flag | None:
        """The flag that a word of a command line names, without what follows an `=`."""
        name = written.partition("=")[0]
        if self.loose and name.startswith("--"):
            name = name.partition(".")[0].replace("_", "-")
        elif self.loose and re.fullmatch(r"-O\d?", name):
            name = "--optimization-level"
        elif self.loose:
            name = name.partition(".")[0]
        if self.shorten and name.startswith("--") and name not in self.by_name:
            begun = {self.by_name[known] for known in self.by_name if known.startswith(name)}
            return begun.pop() if len(begun) == 1 else None
        return self.by_name.get(name)

    def instead(self, written: str) -> str | None:
        """What to write now for a flag that is gone."""
        name = written.partition("=")[0]
        return self.former.get(name.replace("_", "-") if self.loose else name)

    def close_to(self, written: str) -> str | None:
        """The name of the flag that was probably meant."""
        name = written.partition("=")[0].partition(".")[0]
        name = name.replace("_", "-") if self.loose else name
        close = difflib.get_close_matches(name, self.by_name, n=1, cutoff=0.75)
        return close[0] if close else None


def _flag(row: str) -> Flag:
    names, _, rest = row.partition(": ")
    kind, *choices = rest.split()
    if kind.startswith("switch"):
        return Flag(tuple(names.split()), "switch", 0, 0, negatable=kind.endswith("!"))
    least, most = _HOW_MANY[kind[-1] if kind[-1] in "+?3" else ""]
    return Flag(tuple(names.split()), kind.rstrip("+?3"), least, most, tuple(choices))


def is_flag(word: str) -> bool:
    """Whether a word of a command line begins a flag; negative numbers do not."""
    return len(word) > 1 and word.startswith("-") and not re.match(r"-\.?\d", word)


def read_flags(table: FlagTable, words: Sequence[str]) -> Iterator[Given]:
    """The flags among `words` (a command line after the program's name), each with what is wrong with it."""
    at = 0
    while at < len(words):
        if not is_flag(words[at]):
            at += 1
            continue
        written, equals, value = words[at].partition("=")
        flag = table.find(written)
        following = list(_following(words, at + 1))
        if flag is None:
            yield Given(at, written, None, (), *_unknown(table, written))
            at += 1 + (0 if equals else len(following))
            continue
        values = (value,) if equals else tuple(following[: int(min(flag.most, len(following)))])
        if re.fullmatch(r"-O\d", written):
            yield Given(at, written, flag, (written[2:],))
            at += 1
            continue
        yield Given(at, written, flag, values, *_fault(flag, written, values))
        at += 1 if equals else 1 + len(values)


def _unknown(table: FlagTable, written: str) -> tuple[str, str]:
    first, *further = written.split()
    if further:  # which are not repeated: they may be a secret
        return f"{table.program} {table.version} has no flag {first} …", f"write {first} and its value as two words"
    fault, instead = f"{table.program} {table.version} has no flag {written}", table.instead(written)
    if instead is not None:
        return fault, instead
    close = table.close_to(written)
    return fault, f"did you mean {close}?" if close else f"see {table.program} --help"


def _following(words: Sequence[str], start: int) -> Iterator[str]:
    for word in words[start:]:
        if is_flag(word):
            return
        yield word


def _fault(flag: Flag, written: str, values: Sequence[str]) -> tuple[str, str]:
    """What is wrong with the values of a flag, and what would be right; two empty texts if nothing is."""
    if flag.kind == "switch":
        return (f"{written} takes no value", f"write {written} alone") if values else ("", "")
    if len(values) < flag.least:
        return f"{written} needs {flag.least if flag.least > 1 else 'a value'}", f"{written} {_example(flag)}"
    for value in values:
        if flag.choices and value not in flag.choices:
            return f'{written} does not take "{value}"', f"one of {', '.join(flag.choices)}"
        if not _fits(flag.kind, value) and "." not in written:
            return f'{written} does not take "{value}"', f"{written} {_example(flag)}"
    return "", ""


def _fits(kind: str, value: str) -> bool:
    match kind:
        case "int":
            return _WHOLE.fullmatch(value) is not None
        case "count":
            return value in {"auto", "-1"} or _COUNT.fullmatch(value) is not None
        case "float":
            return _is_float(value)
        case "json":
            return _is_json(value)
        case _:
            return True


def _is_float(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


def _is_json(value: str) -> bool:
    try:
        json.loads(value)
    except ValueError:
        return False
    return True


_EXAMPLES: Final = {"int": "8", "count": "8k", "float": "0.9", "json": "'{\"key\": 1}'"}


def _example(flag: Flag) -> str:
    return flag.choices[0] if flag.choices else _EXAMPLES.get(flag.kind, flag.name.strip("-").upper())
