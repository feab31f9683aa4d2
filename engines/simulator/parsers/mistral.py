"""Triton's `mistral` parser, with its mistakes: any `[` in prose swallows the rest of a streamed answer.

Recordings: `tools_mistral_*` of Triton's OpenAI frontend.
"""

import json

from engines.simulator.parsers.deltas import CallArguments, CallStart, Delta, ParsedCall, Text, common_prefix
from engines.simulator.partial import Incomplete, read

TAG = "[TOOL_CALLS]"


class MistralStream:
    """One token in, at most one delta out. Sends the difference of two readings, which is often nothing."""

    def __init__(self) -> None:
        self._text = ""
        self._current = -1
        self._named = False
        self._sent: list[str] = []
        self._previous: list[dict[str, object]] = []

    @property
    def called(self) -> bool:
        """Whether the finish reason will be `tool_calls`."""
        return bool(self._previous)

    def feed(self, piece: str) -> list[Delta]:
        """What this token adds."""
        self._text += piece
        if "[" not in self._text:
            return [Text(piece)]
        if TAG not in self._text:
            return []
        start = self._text.index(TAG) + len(TAG)
        try:
            value, _, _ = read(self._text, start, open_strings=self._named)
        except Incomplete:
            return []
        found = [call for call in value if isinstance(call, dict)] if isinstance(value, list) else []
        if not found:
            return []
        if len(found) > self._current + 1:
            return self._next_call(found)
        current = found[self._current]
        out: list[Delta] = []
        if not self._named:
            name = current.get("name")
            if isinstance(name, str) and name:
                self._named = True
                out.append(CallStart(self._current, name))
        else:
            out = self._arguments(_arguments_of(current), piece)
        self._previous = found
        return out

    def _next_call(self, found: list[dict[str, object]]) -> list[Delta]:
        out: list[Delta] = []
        if self._current >= 0:
            whole = _written(_arguments_of(found[self._current]))
            rest = whole.replace(self._sent[self._current], "", 1)
            if _arguments_of(found[self._current]):
                out.append(CallArguments(self._current, rest))
                self._sent[self._current] += rest
        self._current, self._named = len(found) - 1, False
        self._sent.append("")
        return out

    def _arguments(self, arguments: dict[str, object], piece: str) -> list[Delta]:
        before = _arguments_of(self._previous[self._current]) if self._current < len(self._previous) else {}
        if not arguments:
            return []
        text = _written(arguments)
        if before:
            more = _middle(_written(before), text)
        else:
            opened = text[:-2]
            at = opened.rfind(piece)
            if at < 0:
                return []
            more = opened[: at + len(piece)]
        self._sent[self._current] += more
        return [CallArguments(self._current, more)]

    def last(self, delta: CallArguments) -> CallArguments:
        """The arguments delta of the last event: all that was not sent before it."""
        sent = self._sent[delta.index]
        before = sent[: len(sent) - len(delta.text)]
        return CallArguments(delta.index, _written(_arguments_of(self._previous[delta.index])).replace(before, "", 1))


def _middle(old: str, new: str) -> str:
    """What `new` has between the beginning and the end that it shares with `old`."""
    tail = common_prefix(old[::-1], new[::-1])[::-1]
    while tail and tail[0].isalnum():
        tail = tail[1:]
    new = new[: len(new) - len(tail)]
    old = old[: len(old) - len(tail)]
    return new[len(common_prefix(old, new)) :]


def _written(arguments: dict[str, object]) -> str:
    return json.dumps(arguments, ensure_ascii=False)


def _arguments_of(call: dict[str, object]) -> dict[str, object]:
    arguments = call.get("arguments")
    return arguments if isinstance(arguments, dict) else {}


def parse(text: str) -> tuple[str, list[ParsedCall]]:
    """Content and calls of a whole answer; it has to begin with the tag and hold a JSON list."""
    if not text.startswith(TAG):
        return text, []
    try:
        calls = [ParsedCall(call["name"], _written(call["arguments"])) for call in json.loads(text[len(TAG) :])]
    except (ValueError, KeyError, TypeError):
        return text, []
    return "", calls
