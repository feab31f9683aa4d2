"""Answers to the parts of a split call, made one: choices and vectors numbered through, usage added up, one end.

The parts' answers are already as a client may see them; here only what a client would see twice is put right:
``index``, ``id``, ``created``, ``usage``, ``[DONE]``. All else stays byte for byte.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from engines.profile import Members
from gateway.wire.sse import DONE, EventCutter, event_data, with_data, with_new_data

_PROMPT_KEYS: Final = ("prompt_tokens", "prompt_tokens_details")
_NULL: Final = b"null"
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode


def merge_usage(usages: Sequence[Mapping[str, Any] | None], copies: int) -> dict[str, Any] | None:
    """The usage of the whole call. ``copies`` parts in a row share one prompt, which counts once.

    None when no part gave any.
    """
    given = [usage for usage in usages if usage]
    if not given:
        return None
    groups = [usages[start : start + copies] for start in range(0, len(usages), copies)]
    prompts = [first for group in groups if (first := next((usage for usage in group if usage), None)) is not None]
    merged: dict[str, Any] = {}
    for key in dict.fromkeys(key for usage in given for key in usage):
        merged[key] = _sum([usage.get(key) for usage in (prompts if key in _PROMPT_KEYS else given)])
    if "total_tokens" in merged:
        merged["total_tokens"] = _count(merged.get("prompt_tokens")) + _count(merged.get("completion_tokens"))
    return merged


def _sum(values: Sequence[Any]) -> Any:  # noqa: ANN401 - any JSON value
    there = [value for value in values if value is not None]
    if not there:
        return None
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in there):
        return sum(there)
    if all(isinstance(value, dict) for value in there):
        return {key: _sum([value.get(key) for value in there]) for key in dict.fromkeys(k for v in there for k in v)}
    return there[0]


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def merge_answers(bodies: Sequence[bytes], items: str, copies: int) -> bytes:
    """One whole answer made of those to the parts, in their order. ``items``: the member that holds what is numbered.

    Raises ValueError when one of them is no such answer.
    """
    try:
        answers = [_decode_members(body) for body in bodies]
        lists = [_decode_items(answer[items]) for answer in answers]
        usages = [_usage(answer) for answer in answers]
    except (msgspec.DecodeError, KeyError, RecursionError) as error:
        raise ValueError(f"an answer to a part of the call has no {items}: {error}") from None
    numbered: list[Members] = []
    for answered in lists:
        for item in answered:
            numbered.append({**item, "index": msgspec.Raw(b"%d" % len(numbered))})
    merged = answers[0] | {items: msgspec.Raw(msgspec.json.encode(numbered))}
    usage = merge_usage(usages, copies)
    if usage is not None:
        merged["usage"] = msgspec.Raw(msgspec.json.encode(usage))
    return msgspec.json.encode(merged)


def _usage(members: Members) -> dict[str, Any] | None:
    raw = members.get("usage")
    if raw is None or bytes(raw) == _NULL:
        return None
    return msgspec.json.decode(raw, type=dict[str, Any])


class MergedStream:
    """Streams of one choice each, as one stream of many: events leave as they come, with the number of their part.

    ``done`` turns true with the end of the last part, which is when the usage and ``[DONE]`` leave.
    """

    def __init__(self, parts: int, copies: int) -> None:
        self.done = False
        self._copies = copies
        self._cutters = [EventCutter() for _ in range(parts)]
        self._usages: list[dict[str, Any] | None] = [None] * parts
        self._closed = [False] * parts
        self._same: dict[str, msgspec.Raw] = {}
        self._usage_event: Members | None = None

    def feed(self, part: int, data: bytes) -> bytes:
        """What a part's bytes add to the client's stream."""
        return b"".join([self._take(part, event) for event in self._cutters[part].feed(data)])

    def close(self, part: int) -> bytes:
        """The part is complete; what is left to send."""
        if self._closed[part]:
            return b""
        self._closed[part] = True
        self.done = all(self._closed)
        return self._last() if self.done else b""

    def _last(self) -> bytes:
        usage = merge_usage(self._usages, self._copies)
        event = self._usage_event
        if usage is None or event is None:
            return DONE
        return with_data(msgspec.json.encode(event | {"usage": msgspec.Raw(msgspec.json.encode(usage))})) + DONE

    def _take(self, part: int, event: bytes) -> bytes:
        data = event_data(event)
        if data is None:
            return b""
        if data.strip() == b"[DONE]":
            return self.close(part)
        try:
            members = _decode_members(data)
            choices = _decode_items(members["choices"])
            usage = _usage(members)
        except (msgspec.DecodeError, KeyError, RecursionError):
            return event  # of a shape that nobody knows: not ours to judge
        if not self._same:
            self._same = {key: members[key] for key in ("id", "created") if key in members}
        members |= self._same
        if usage is not None:
            self._usages[part] = usage
            if not choices:
                self._usage_event = members
                return b""
            members["usage"] = msgspec.Raw(msgspec.json.encode(merge_usage(self._usages, self._copies)))
        members["choices"] = msgspec.Raw(
            msgspec.json.encode([{**choice, "index": msgspec.Raw(b"%d" % part)} for choice in choices])
        )
        return with_new_data(event, msgspec.json.encode(members))
