"""Lines of what stands in files, for findings to point at."""

import re
from collections.abc import Iterator
from typing import Final

_TOKEN: Final = re.compile(r"#[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[A-Za-z_][\w.]*|[^\s\w]|[\w.]+")


def fields_of(text: str) -> dict[tuple[str, ...], int]:
    """The line of each field of a protobuf text, by its path; the first one where there are several."""
    found: dict[tuple[str, ...], int] = {}
    path: list[str] = []
    last = ""
    for token, line in _tokens(text):
        if token in "{<":
            path.append(last)
        elif token in "}>":
            last = path.pop() if path else ""
        elif token[0].isalpha() or token[0] == "_":
            last = token
            found.setdefault((*path, token), line)
    return found


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    line, seen = 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", seen, match.start())
        seen = match.start()
        if not match[0].startswith("#"):
            yield match[0], line


def member_line(text: str, key: str) -> int:
    """The line of a JSON member, whatever it is in; 1 if it is not found."""
    match = re.search(rf'"{re.escape(key)}"\s*:', text)
    return 1 + text.count("\n", 0, match.start()) if match else 1
