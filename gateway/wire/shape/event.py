"""One JSON object of an answer (an event's, or the whole answer), taken apart as far as stages look into it."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

Event: TypeAlias = dict[str, Any]
"""Raw members, but for `choices`: those are plain values, of which only log probabilities stay raw."""

_LOGPROBS = b'"logprobs"'
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_choices = msgspec.json.Decoder(list[dict[str, Any]]).decode
_decode_raw_choices = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
_decode = msgspec.json.decode


def read_event(data: bytes) -> Event:
    """Takes one JSON object apart.

    Raises msgspec.DecodeError when it is none, or its `choices` are no list of objects.
    """
    event: Event = dict(_decode_members(data))
    raw = event.get("choices")
    if raw is not None:
        event["choices"] = _choices(raw)
    return event


def _choices(raw: msgspec.Raw) -> list[dict[str, Any]]:
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
