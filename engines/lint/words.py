"""Command lines of a shell script, with the line of each word. Variables and substitutions stay as they are written."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

_PART: Final = re.compile(
    r"""(?P<gap>(?:[^\S\n]|\\\n)+)|(?P<end>\n|;;?|&&?|\|\|?|[()](?!\s*\$))|(?P<single>'[^']*')"""
    r"""|(?P<double>"(?:\\.|[^"\\])*")|(?P<sub>\$\([^()]*\)|\$\{[^{}]*\})|\\(?P<escaped>.)|(?P<plain>[^\s'"\\;&|()$]+|\$)""",
    re.DOTALL,
)
_IN_DOUBLE: Final = re.compile(r'\\(["\\$`\n])')


class Word(NamedTuple):
    """A word without its quotes, and the line where it begins."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Line:
    """One command; `behind`: the shell does not wait for its end."""

    words: tuple[Word, ...]
    behind: bool = False


class UnclosedError(Exception):
    """A quote without its end; `line` counts from 1."""

    def __init__(self, line: int) -> None:
        self.line = line
        super().__init__(f"line {line}: a quote is not closed")


def split_lines(text: str) -> Iterator[Line]:
    """The commands of a script, here-documents left out.

    Raises:
        UnclosedError: a quote is not closed.
    """
    words: list[Word] = []
    for part, line in _parts(_without_documents(text)):
        if part is None:
            if words:
                yield Line(tuple(words))
            words = []
        elif isinstance(part, bool):
            if words:
                yield Line(tuple(words), behind=True)
            words = []
        else:
            words.append(Word(part, line))
    if words:
        yield Line(tuple(words))


def _parts(text: str) -> Iterator[tuple[str | bool | None, int]]:
    """Words; None at the end of a command, True at the end of one that is left behind."""
    at, line, word, begun = 0, 1, "", 0
    while at < len(text):
        if text[at] == "#" and not begun:
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
            continue
        match = _PART.match(text, at)
        if match is None:
            raise UnclosedError(line)
        kind, raw = match.lastgroup or "", match[0]
        if kind in {"gap", "end"}:
            if begun:
                yield word, begun
            word, begun = "", 0
            if kind == "end":
                yield (True if raw == "&" else None), line
        else:
            begun, word = begun or line, word + _plain(kind, match)
        line += raw.count("\n")
        at = match.end()
    if begun:
        yield word, begun


def _plain(kind: str, match: re.Match[str]) -> str:
    match kind:
        case "single":
            return match[0][1:-1]
        case "double":
            return _IN_DOUBLE.sub(lambda found: "" if found[1] == "\n" else found[1], match[0][1:-1])
        case "escaped":
            return match["escaped"]
        case _:
            return match[0]


def _without_documents(text: str) -> str:
    """The text with the lines of here-documents emptied."""
    kept, end = [], ""
    for line in text.split("\n"):
        if end:
            end = "" if line.strip() == end else end
            kept.append("")
            continue
        found = re.search(r"<<-?\s*['\"]?(\w+)['\"]?", line)
        end = found[1] if found else ""
        kept.append(line)
    return "\n".join(kept)
