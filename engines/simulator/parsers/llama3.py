"""Triton's `llama3` parser, with its mistakes: prose before a call hides it, non-ASCII arguments come twice.

Recordings: `tools_llama3_*` of Triton's OpenAI frontend.
"""

import json

from engines.simulator.parsers.deltas import CallArguments, CallStart, Delta, ParsedCall, Text, common_prefix
from engines.simulator.partial import Incomplete, read

TAG = "<|python_tag|>"


class Llama3Stream:
    """One token in, at most one delta out."""

    def __init__(self) -> None:
        self._text = ""
        self._current = -1
        self._named = False
        self._sent: list[str] = []
        self._previous: list[dict[str, object]] = []

    @property
    def called(self) -> bool:
        """Whether the finish reason will be `tool_calls`, which a JSON answer that is no call also causes."""
        return bool(self._previous)

    def feed(self, piece: str) -> list[Delta]:
        """What this token adds."""
        self._text += piece
        if not self._text.startswith((TAG, "{")):
            return [Text(piece)]
        try:
            found, whole = self._read()
        except Incomplete:
            return []
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
            out = self._arguments(_arguments_of(current), complete=whole[self._current])
        self._previous = found
        return out

    def _read(self) -> tuple[list[dict[str, object]], list[bool]]:
        found: list[dict[str, object]] = []
        whole: list[bool] = []
        at = len(TAG) if self._text.startswith(TAG) else 0
        while at < len(self._text):
            value, at, complete = read(self._text, at, open_strings=self._named)
            if isinstance(value, dict):
                found.append(value)
                whole.append(complete)
            at += len("; ") if self._text[at : at + 1] == ";" else 0
        return found, whole

    def _next_call(self, found: list[dict[str, object]]) -> list[Delta]:
        out: list[Delta] = []
        if self._current >= 0 and (arguments := _arguments_of(found[self._current])):
            rest = json.dumps(arguments)[len(self._sent[self._current]) :]
            out.append(CallArguments(self._current, rest))
            self._sent[self._current] += rest
        self._current, self._named = len(found) - 1, False
        self._sent.append("")
        return out

    def _arguments(self, arguments: dict[str, object], *, complete: bool) -> list[Delta]:
        if not arguments:
            return []
        text, sent = json.dumps(arguments), self._sent[self._current]
        before = _arguments_of(self._previous[self._current]) if self._current < len(self._previous) else {}
        if complete:
            more = text[len(sent) :]
        elif before and text != json.dumps(before):
            more = common_prefix(json.dumps(before), text)[len(sent) :]
            if not more:
                return []
        else:
            return []
        self._sent[self._current] += more
        return [CallArguments(self._current, more)]

    def last(self, delta: CallArguments) -> CallArguments:
        """The arguments delta of the last event: what the whole arguments hold beyond what was sent before it.

        The whole is written with non-ASCII characters as they are, the parts before it escaped; where they differ, all
        of it is sent once more (`tools_llama3_auto_l3_unicode_stream`).
        """
        whole = json.dumps(_arguments_of(self._previous[delta.index]), ensure_ascii=False)
        sent = self._sent[delta.index]
        before = sent[: len(sent) - len(delta.text)]
        return CallArguments(delta.index, whole.replace(before, "", 1))


def _arguments_of(call: dict[str, object]) -> dict[str, object]:
    arguments = call.get("parameters", call.get("arguments"))
    return arguments if isinstance(arguments, dict) else {}


def parse(text: str) -> tuple[str, list[ParsedCall]]:
    """Content and calls of a whole answer; it has to begin with a call."""
    if not text.startswith((TAG, "{")):
        return text, []
    calls: list[ParsedCall] = []
    at = len(TAG) if text.startswith(TAG) else 0
    try:
        while at < len(text):
            value, at = json.JSONDecoder().raw_decode(text, at)
            calls.append(ParsedCall(value["name"], json.dumps(value.get("parameters", value.get("arguments")))))
            at += len("; ")
    except (ValueError, KeyError, TypeError, AttributeError):
        return text, []
    return "", calls
