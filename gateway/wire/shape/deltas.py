"""Deltas of chat streams: a role once, nothing that says nothing, no event without a word."""

from collections.abc import Sequence
from typing import Any, Final

from gateway.wire.shape.event import Event, choices_of, is_null
from gateway.wire.shape.stage import Stage

_NOTHING: Final[tuple[object, ...]] = (None, "", [])
_ENVELOPE: Final = frozenset({"id", "object", "created", "model", "choices", "system_fingerprint", "service_tier"})
_FRAME: Final = frozenset({"index", "delta", "text"})


class HollowDeltas(Stage):
    """For engines that fill their deltas with nulls and empty strings: the first delta of a choice has its role, later
    ones have no role and only members that say something. One per stream."""

    __slots__ = ("_begun",)

    def __init__(self) -> None:
        self._begun: set[int] = set()

    def take(self, event: Event) -> Sequence[Event] | None:
        """Events without choices are left alone."""
        changed = False
        for choice in choices_of(event):
            delta = choice.get("delta")
            if isinstance(delta, dict):
                changed = self._clean(choice, delta) or changed
        return (event,) if changed else None

    def _clean(self, choice: dict[str, Any], delta: dict[str, Any]) -> bool:
        index = choice.get("index")
        if not isinstance(index, int):
            index = 0
        if index not in self._begun:
            self._begun.add(index)
            if delta.get("role") is None:
                choice["delta"] = {"role": "assistant", **{name: delta[name] for name in delta if name != "role"}}
                return True
            return False
        kept = {name: value for name, value in delta.items() if name != "role" and value not in _NOTHING}
        choice["delta"] = kept
        return len(kept) < len(delta)


class Silence(Stage):
    """Events that carry nothing are not sent. vLLM has a few (held-back text), trtllm-serve many."""

    __slots__ = ()

    signs = (b':""', b":{}", b":[]", b'"content":null}', b'"reasoning":null}')

    def take(self, event: Event) -> Sequence[Event] | None:
        """Nothing in place of an event that says nothing."""
        choices = event.get("choices")
        if not isinstance(choices, list) or not all(map(_is_silent, choices)):
            return None
        for name, value in event.items():
            if name not in _ENVELOPE and not is_null(value):
                return None
        return ()


def _is_silent(choice: dict[str, Any]) -> bool:
    for name, value in choice.items():
        if name not in _FRAME and value is not None:
            return False
    delta = choice.get("delta")
    if isinstance(delta, dict):
        for value in delta.values():
            if value not in _NOTHING:
                return False
    elif delta is not None:
        return False
    return choice.get("text") in _NOTHING
