"""One JSON object of an answer (an event's, or the whole answer), taken apart as far as stages look into it."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

Event: TypeAlias = dict[str, Any]
"""Raw members, but for `choices`: those are plain values, of which only log probabilities stay raw."""


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, msgspec.Raw] | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Says(msgspec.Struct):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None


class _Choice(msgspec.Struct):
    """What stages take for granted in a choice. Whatever else is in it is nobody's business."""

    index: int | None = None
    text: str | None = None
    delta: _Says | None = None
    message: _Says | None = None
    finish_reason: str | None = None


_LOGPROBS = b'"logprobs"'
_check_choices = msgspec.json.Decoder(list[_Choice]).decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_choices = msgspec.json.Decoder(list[dict[str, Any]]).decode
_decode_raw_choices = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
_decode = msgspec.json.decode


def read_event(data: bytes) -> Event:
    """Takes one JSON object apart.

    Raises msgspec.DecodeError when it is none, or its `choices` are none that any stage could read: what an engine
    says then passes as it is.
    """
    event: Event = dict(_decode_members(data))
    raw = event.get("choices")
    if raw is not None:
        event["choices"] = _choices(raw)
    return event


def _choices(raw: msgspec.Raw) -> list[dict[str, Any]]:
    _check_choices(raw)
    # Numbers change their spelling when they are read and written; log probabilities are to stay as they are.
    if _LOGPROBS + b":{" not in bytes(raw) and _LOGPROBS + b": {" not in bytes(raw):
        return _decode_choices(raw)
    return [
        {name: value if name == "logprobs" else _decode(value) for name, value in choice.items()}
        for choice in _decode_raw_choices(raw)
    ]


def choices_of(event: Event) -> list[dict[str, Any]]:
    """The choices; none where the event has no such member."""
    found: list[dict[str, Any]] = event.get("choices") or []
    return found


def said_in(event: Event, member: str) -> Iterator[dict[str, Any]]:
    """What the choices say: the `delta` or `message` of each."""
    for choice in choices_of(event):
        says = choice.get(member)
        if isinstance(says, dict):
            yield says


def is_null(value: object) -> bool:
    """Whether a member's value, raw or plain, is null."""
    return value is None or (isinstance(value, msgspec.Raw) and bytes(value) == b"null")
