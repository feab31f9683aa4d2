"""What a parser makes of one generated token."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Text:
    """Part of the answer's content."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStart:
    """A tool call begins: its name is known."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    """More of a call's arguments, which may be nothing."""

    index: int
    text: str


Delta: TypeAlias = Text | CallStart | CallArguments


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A complete call of an answer that is not streamed."""

    name: str
    arguments: str


def split_reasoning(pieces: Sequence[str], *, inside: bool) -> list[tuple[str, str]]:
    """Each token as (reasoning, content); markers become ("", ""). `inside`: the text begins within the reasoning."""
    out: list[tuple[str, str]] = []
    ended = False
    for piece in pieces:
        if piece == "<think>" and not ended:
            inside = True
            out.append(("", ""))
        elif piece == "</think>" and inside:
            inside, ended = False, True
            out.append(("", ""))
        else:
            out.append((piece, "") if inside else ("", piece))
    return out


def common_prefix(one: str, other: str) -> str:
    """The longest beginning of both."""
    length = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        length += 1
    return one[:length]
