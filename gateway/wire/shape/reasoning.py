"""The member that holds what a model thought: vLLM says `reasoning`, trtllm-serve `reasoning_content`, clients read
one or the other."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

from gateway.wire.shape.event import Event, said_in
from gateway.wire.shape.stage import Stage

NAMES: Final = ("reasoning", "reasoning_content")
_BEGIN: Final = b'"reasoning'
_MEMBERS: Final = (b'"reasoning"', b'"reasoning_content"')
_NULLS: Final = (b'"reasoning":null', b'"reasoning_content":null')


class ReasoningField(StrEnum):
    """A model's `reasoning.field`: where clients find it."""

    REASONING = "reasoning"
    REASONING_CONTENT = "reasoning_content"
    BOTH = "both"


class Reasoning(Stage):
    """Gives reasoning under the configured name or names. Members without text are left as they are."""

    __slots__ = ("_unwanted", "_wanted")

    def __init__(self, field: ReasoningField) -> None:
        self._wanted = NAMES if field is ReasoningField.BOTH else (field.value,)
        self._unwanted = tuple(name for name in NAMES if name not in self._wanted)

    signs = (_BEGIN,)

    def take(self, event: Event) -> Sequence[Event] | None:
        """The deltas' reasoning."""
        return (event,) if self._respell(event, "delta") else None

    def concerns_whole(self, data: bytes) -> bool:
        """One of the names, and not null: vLLM's answers always have `"reasoning":null`."""
        at = data.find(_BEGIN)
        while at >= 0:
            if data.startswith(_MEMBERS, at) and not data.startswith(_NULLS, at):
                return True
            at = data.find(_BEGIN, at + len(_BEGIN))
        return False

    def whole(self, answer: Event) -> bool:
        """The messages' reasoning."""
        return self._respell(answer, "message")

    def _respell(self, event: Event, member: str) -> bool:
        changed = False
        for says in said_in(event, member):
            changed = self._rename(says) or changed
        return changed

    def _rename(self, says: dict[str, Any]) -> bool:
        text = says.get("reasoning") or says.get("reasoning_content")
        if not isinstance(text, str) or not text:
            return False
        if all(says.get(name) == text for name in self._wanted) and not any(name in says for name in self._unwanted):
            return False
        for name in self._wanted:
            says[name] = text
        for name in self._unwanted:
            says.pop(name, None)
        return True
