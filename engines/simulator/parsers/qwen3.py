"""trtllm-serve's `qwen3` parser over its base parser: arguments are read as JSON and written again, piece by piece.

What is given at each token is what the last two readings have in common, so the stream lags and ends in bursts; the
text is ASCII-escaped. Recordings: `tools_auto_*` of trtllm-serve.
"""

import json
import re
from collections.abc import Collection

from engines.simulator.parsers.deltas import CallArguments, CallStart, Delta, ParsedCall, Text, common_prefix
from engines.simulator.partial import Incomplete, read

OPEN, CLOSE = "<tool_call>", "</tool_call>"
_BLOCK = re.compile(rf"{OPEN}\n(.*?)\n{CLOSE}", re.DOTALL)


class Qwen3Stream:
    """One token in, at most one delta out."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._buffer = ""
        self._index = 0
        self._named = False
        self._sent = ""
        self._previous: dict[str, object] = {}

    @property
    def calls(self) -> int:
        """Calls whose name was given."""
        return self._index + int(self._named)

    def feed(self, piece: str) -> list[Delta]:
        """What this token adds."""
        self._buffer += piece
        if OPEN not in self._buffer:
            return self._outside()
        start = self._buffer.index(OPEN) + len(OPEN)
        try:
            value, end, complete = read(self._buffer, start, open_strings=self._named)
        except Incomplete:
            return []
        if not isinstance(value, dict):
            return []
        if not self._named:
            return self._name(value)
        return self._arguments(value, end, complete=complete)

    def _outside(self) -> list[Delta]:
        text = self._buffer
        if OPEN.startswith(text):
            return []
        self._buffer = ""
        if self._index and (text.isspace() or text == CLOSE):
            return []
        text = text.replace(CLOSE, "")
        return [Text(text)] if text else []

    def _name(self, value: dict[str, object]) -> list[Delta]:
        name = value.get("name")
        if not isinstance(name, str):
            return []
        if name not in self._names:
            self._buffer = ""
            return []
        self._named = True
        return [CallStart(self._index, name)]

    def _arguments(self, value: dict[str, object], end: int, *, complete: bool) -> list[Delta]:
        arguments = value.get("arguments")
        out: list[Delta] = []
        if isinstance(arguments, dict) and arguments:
            text = json.dumps(arguments)
            if complete:
                out.append(CallArguments(self._index, text[len(self._sent) :]))
            elif self._previous and text != json.dumps(self._previous):
                shared = common_prefix(json.dumps(self._previous), text)
                if shared[len(self._sent) :]:
                    out.append(CallArguments(self._index, shared[len(self._sent) :]))
                    self._sent = shared
            self._previous = arguments
        if complete:
            self._buffer = self._buffer[end:]
            self._index, self._named, self._sent, self._previous = self._index + 1, False, "", {}
        return out


def parse(text: str, names: Collection[str]) -> tuple[str, list[ParsedCall]]:
    """Content and calls of a whole answer. What follows an opening tag is lost when it is no complete, known call."""
    if OPEN not in text:
        return text, []
    calls: list[ParsedCall] = []
    for block in _BLOCK.findall(text):
        try:
            call = json.loads(block)
        except ValueError:
            continue
        if isinstance(call, dict) and call.get("name") in names:
            calls.append(ParsedCall(call["name"], json.dumps(call.get("arguments", {}), ensure_ascii=False)))
    return text[: text.index(OPEN)].strip(), calls
