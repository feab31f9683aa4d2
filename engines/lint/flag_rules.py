"""What holds for the flags of every program: known, not gone, with values that fit."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Final

from engines.launch.flags import bounds
from engines.launch.flags.bounds import Bounds
from engines.launch.flags.table import Given
from engines.lint.finding import At, Finding
from engines.lint.numbers import number_of
from engines.lint.start import Start
from engines.profile import EngineKind

_BOUNDS: Final[Mapping[EngineKind, Mapping[str, Bounds]]] = {
    EngineKind.VLLM: bounds.VLLM,
    EngineKind.TRTLLM: bounds.TRTLLM,
    EngineKind.TRITON: bounds.TRITON,
}
_SEVERAL: Final = frozenset({"--load-model", "--openai-restricted-api", "--middleware", "--help"})
"""Flags that may be given again."""


def flag_rules(start: Start) -> Iterator[Finding]:
    """The faults of single flags."""
    seen: dict[str, Given] = {}
    for given in start.given:
        at = At(start.file, start.words[given.at].line)
        if given.flag is None:
            yield _unknown(start, given, at)
            continue
        if any("$" in value for value in given.values):
            continue
        if given.fault:
            yield at.error("flag-value", given.fault, given.fix)
        else:
            yield from _range(start, given, at)
        name = given.flag.name
        if name in seen and name not in _SEVERAL and "." not in given.written:
            message = f"{given.written} is given twice: the last one counts"
            yield at.warning("given-twice", message, "keep one of the two")
        seen[name] = given


def _unknown(start: Start, given: Given, at: At) -> Finding:
    table = start.table
    name = given.written.partition("=")[0]
    if table.instead(name) is not None:
        return at.error("removed-flag", given.fault, given.fix)
    other = f"--{name[2:].replace('-', '_')}"
    if start.kind is EngineKind.TRTLLM and other in table.by_name:
        message = f"{table.program} writes its flags with underscores, and does not know {name}"
        return at.error("unknown-flag", message, other)
    return at.error("unknown-flag", given.fault, given.fix)


def _range(start: Start, given: Given, at: At) -> Iterator[Finding]:
    limits = _BOUNDS[start.kind].get(given.flag.name) if given.flag is not None else None
    number = number_of(given.values[0]) if given.values else None
    if limits is not None and number is not None and not limits.holds(number):
        yield at.error("out-of-range", f"{given.written} is {given.values[0]}", f"{limits}")


def unknown_name(
    start: Start, flag: str, known: tuple[str, ...], rule: str, *, plugins: bool = False
) -> Iterator[Finding]:
    """A parser that the program does not have."""
    name = start.text(flag)
    if name and "$" not in name and name not in known and not plugins:
        message = f"{start.table.program} {start.table.version} has no parser {name}"
        close = difflib.get_close_matches(name, known, n=1)
        fix = f"did you mean {close[0]}?" if close else f"one of {', '.join(known)}"
        yield start.at(flag).error(rule, message, fix)
