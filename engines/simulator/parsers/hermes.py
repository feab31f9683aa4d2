"""vLLM's `hermes` parser: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, arguments passed on as written.

Recordings: `tool_*_stream` of vLLM 0.32.
"""

import json
import re

from engines.simulator.parsers.deltas import CallArguments, CallStart, Delta, ParsedCall, Text

OPEN, CLOSE = "<tool_call>", "</tool_call>"
_NAME = re.compile(r'"name"\s*:\s*"([^"]+)"')
_ARGUMENTS = re.compile(r'"arguments"\s*:\s*')
_BLOCK = re.compile(rf"{OPEN}(.*?){CLOSE}", re.DOTALL)


class HermesStream:
    """Streams a call's name once and its arguments token by token."""

    def __init__(self) -> None:
        self._index = -1
        self._call: str | None = None
        self._named = False
        self._sent = 0

    @property
    def calls(self) -> int:
        """Calls whose name was given."""
        return self._index + (1 if self._named or self._call is None else 0)

    def feed(self, piece: str) -> list[Delta]:
        """What this token adds."""
        if self._call is None:
            return self._outside(piece)
        if piece == CLOSE:
            self._call = None
            return []
        self._call += piece
        out: list[Delta] = []
        if not self._named:
            name = _NAME.search(self._call)
            if name is None:
                return []
            self._named = True
            out.append(CallStart(self._index, name[1]))
        if begin := _ARGUMENTS.search(self._call):
            raw = self._call[begin.end() :]
            upto = _end(raw)
            if upto > self._sent:
                out.append(CallArguments(self._index, raw[self._sent : upto]))
                self._sent = upto
        return out

    def _outside(self, piece: str) -> list[Delta]:
        if piece == OPEN:
            self._index += 1
            self._call, self._named, self._sent = "", False, 0
            return []
        if not piece or (self._index >= 0 and piece.isspace()):
            return []
        return [Text(piece)]


def _end(raw: str) -> int:
    """How far the arguments go: to the brace that closes them, or to a line break where JSON allows none."""
    depth, quoted, escaped = 0, False, False
    for at, char in enumerate(raw):
        if quoted:
            if char == "\n":
                return at
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                quoted = False
        elif char == '"':
            quoted = True
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
            if depth == 0:
                return at + 1
        elif depth == 0 and char == "\n":
            return at
    return len(raw)


def parse(text: str) -> tuple[str, list[ParsedCall]]:
    """Content and calls of a whole answer. One call that cannot be read leaves all of it as content."""
    if OPEN not in text:
        return text, []
    calls: list[ParsedCall] = []
    try:
        for block in _BLOCK.findall(text):
            call = json.loads(block)
            calls.append(ParsedCall(call["name"], json.dumps(call["arguments"], ensure_ascii=False)))
    except (ValueError, KeyError, TypeError):
        return text, []
    if not calls:
        return text, []
    return text[: text.index(OPEN)], calls
