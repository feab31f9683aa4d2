"""`extras: strip`: an answer without the members and nulls that OpenAI's do not have."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from gateway.wire.shape.event import Event, is_null
from gateway.wire.shape.fields import REASONING, Fields
from gateway.wire.shape.stage import Stage

_EMPTY: Final[tuple[object, ...]] = (None, "", [])
_NEVER_EMPTY: Final = REASONING | {"tool_calls"}
"""Members that OpenAI leaves out rather than to give them empty, or does not have."""


class Strip(Stage):
    """Keeps the members that the field lists name."""

    __slots__ = ("_event", "_whole")

    def __init__(self, event: Fields, whole: Fields) -> None:
        self._event = event
        self._whole = whole

    def take(self, event: Event) -> Sequence[Event] | None:
        """The event with OpenAI's members only."""
        kept = _object(event, self._event)
        return None if kept is event else (kept,)

    def concerns_whole(self, data: bytes) -> bool:
        """Any answer may have more."""
        del data
        return True

    def whole(self, answer: Event) -> bool:
        """The answer with OpenAI's members only."""
        kept = _object(answer, self._whole)
        if kept is answer:
            return False
        answer.clear()
        answer.update(kept)
        return True


def _object(given: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """The same object if nothing is to go."""
    kept: dict[str, Any] = {}
    changed = False
    for name, value in given.items():
        if name not in fields.names or (is_null(value) and name not in fields.nulls):
            changed = True
            continue
        if name in _NEVER_EMPTY and value in _EMPTY:
            changed = True
            continue
        inside = fields.inside.get(name)
        new = value if inside is None else _inside(value, inside)
        changed = changed or new is not value
        kept[name] = new
    return kept if changed else given


def _inside(value: object, fields: Fields) -> object:
    if isinstance(value, msgspec.Raw):
        plain = msgspec.json.decode(value)
        kept = _inside(plain, fields)
        return value if kept is plain else kept
    if isinstance(value, dict):
        return _object(value, fields)
    if isinstance(value, list):
        new = [_inside(one, fields) for one in value]
        return value if all(a is b for a, b in zip(new, value, strict=True)) else new
    return value
