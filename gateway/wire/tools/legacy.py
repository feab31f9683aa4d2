"""`functions` and `function_call`, OpenAI's words before there were tools.

Requests go on in the new words, and their answers come back in the old.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from engines.policy import NULL, Members

_SIGNS: Final = (b'"function_call"', b'"function"')
_NOTHING: Final = (NULL, msgspec.Raw(b"[]"))


def speaks_of_functions(members: Members) -> bool:
    """Whether a request offers functions in the old words, and no tools."""
    return members.get("functions", NULL) not in _NOTHING and members.get("tools", NULL) in _NOTHING


def in_new_words(members: Members) -> Members | None:
    """The request with `tools` and `tool_choice`, one call at most; None if it is not understood."""
    try:
        functions = msgspec.json.decode(members["functions"], type=list[dict[str, msgspec.Raw]])
        choice = msgspec.json.decode(members.get("function_call", NULL))
        messages = _messages(members.get("messages", NULL))
    except (msgspec.DecodeError, RecursionError):
        return None
    made = {name: raw for name, raw in members.items() if name not in ("functions", "function_call")}
    made["tools"] = _raw([{"type": "function", "function": function} for function in functions])
    made["parallel_tool_calls"] = msgspec.Raw(b"false")
    if isinstance(choice, str):
        made["tool_choice"] = _raw(choice)
    elif isinstance(choice, dict):
        made["tool_choice"] = _raw({"type": "function", "function": choice})
    if messages is not None:
        made["messages"] = messages
    return made


def _messages(raw: msgspec.Raw) -> msgspec.Raw | None:
    """The messages with calls and results in the new words; None if there are none in the old."""
    if not any(sign in bytes(raw) for sign in _SIGNS):
        return None
    made = []
    number = 0
    for message in msgspec.json.decode(raw, type=list[dict[str, Any]]):
        call = message.pop("function_call", None) if message.get("role") == "assistant" else None
        if isinstance(call, Mapping):
            number += 1
            message["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": call}]
        elif message.get("role") == "function":
            message |= {"role": "tool", "tool_call_id": f"call_{number}"}
            message.pop("name", None)
        made.append(message)
    return _raw(made)


class LegacyWords:
    """An answer with its call in the old words."""

    __slots__ = ()

    def delta(self, choice: Mapping[str, Any]) -> Mapping[str, Any]:
        """One choice of an event."""
        return self._said(choice, "delta")

    def message(self, choice: Mapping[str, Any]) -> Mapping[str, Any]:
        """One choice of a whole answer."""
        return self._said(choice, "message")

    def _said(self, choice: Mapping[str, Any], member: str) -> Mapping[str, Any]:
        says = choice.get(member) or {}
        calls = says.get("tool_calls")
        finished = choice.get("finish_reason") == "tool_calls"
        if not calls and not finished:
            return choice
        made = dict(choice)
        if finished:
            made["finish_reason"] = "function_call"
        if calls:
            rest = {name: value for name, value in says.items() if name != "tool_calls"}
            made[member] = {**rest, "function_call": calls[0]["function"]}
        return made


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
