"""Reads the beginning of a JSON text as far as it goes, the way incremental tool parsers of the engines do."""

import json
import re
from typing import Any

_STRING = re.compile(r'"((?:[^"\\\x00-\x1f]|\\.)*)"')
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_BLANK = re.compile(r"\s*")
_WORDS = {"true": True, "false": False, "null": None}


class Incomplete(Exception):
    """The text ends before a value begins that could be given."""


class _Reader:
    def __init__(self, text: str, start: int, *, open_strings: bool) -> None:
        self.text, self.at, self.open_strings = text, start, open_strings
        self.complete = True

    def skip(self) -> str:
        """Passes blanks; the next character, or "" at the end."""
        found = _BLANK.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1]

    def value(self) -> Any:  # noqa: ANN401 - whatever JSON holds
        first = self.skip()
        if first == "":
            raise Incomplete
        if first == "{":
            return self.members()
        if first == "[":
            return self.items()
        if first == '"':
            return self.string(partial=self.open_strings)
        if found := _NUMBER.match(self.text, self.at):
            self.at = found.end()
            if self.at == len(self.text):
                self.complete = False
            return json.loads(found[0])
        for word, value in _WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        raise Incomplete

    def string(self, *, partial: bool) -> str:
        if found := _STRING.match(self.text, self.at):
            self.at = found.end()
            text: str = json.loads(found[0])
            return text
        if not partial:
            raise Incomplete
        rest = self.text[self.at + 1 :]
        self.at, self.complete = len(self.text), False
        rest = re.sub(r"\\(u[0-9a-fA-F]{0,3})?$", "", rest) if not rest.endswith("\\\\") else rest
        try:
            text = json.loads(f'"{rest}"', strict=False)
        except ValueError as error:
            raise Incomplete from error
        return text

    def members(self) -> dict[str, Any]:
        self.at += 1
        out: dict[str, Any] = {}
        while True:
            if self.skip() == "}":
                self.at += 1
                return out
            try:
                key = self.string(partial=False) if self.skip() == '"' else self.fail()
                if self.skip() != ":":
                    self.fail()
                self.at += 1
                out[key] = self.value()
            except Incomplete:
                self.at, self.complete = len(self.text), False
                return out
            if not self.more("}"):
                return out

    def items(self) -> list[Any]:
        self.at += 1
        out: list[Any] = []
        while True:
            if self.skip() == "]":
                self.at += 1
                return out
            try:
                out.append(self.value())
            except Incomplete:
                self.at, self.complete = len(self.text), False
                return out
            if not self.more("]"):
                return out

    def more(self, closing: str) -> bool:
        """After a member: passes a comma. False when the text ends here."""
        following = self.skip()
        if following == ",":
            self.at += 1
            return True
        if following == closing:
            return True
        self.at, self.complete = len(self.text), False
        return False

    def fail(self) -> str:
        raise Incomplete


def read(text: str, start: int = 0, *, open_strings: bool = True) -> tuple[Any, int, bool]:
    """The value that begins at `start`, where it ends, and whether it is complete.

    With `open_strings` a string that has no closing quote yet is given as far as it goes; without, it is left out.
    Raises `Incomplete` when there is no value yet, or none that this reader understands.
    """
    reader = _Reader(text, start, open_strings=open_strings)
    value = reader.value()
    return value, reader.at, reader.complete
