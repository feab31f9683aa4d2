"""Reasoning at the beginning of an answer, for content that no parser of tool calls reads.

It does what `gateway.wire.toolcalls` does with reasoning, but for an answer's beginning only, so that it is out of the
way as soon as an answer has begun without any.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gateway.wire.shape.reasoning import ReasoningField
from gateway.wire.toolcalls import Delta, Format, ReasoningDelta, TextDelta, reasoning_named
from gateway.wire.toolcalls.marks import marks

_BLANKS: Final = 256
"""Characters of blanks before an opener that are waited for."""

OFF: Final = "off"
AUTO: Final = "auto"


@dataclass(frozen=True, slots=True)
class ReasoningRule:
    """A model's `reasoning`.

    Args:
        format: `auto`, `off`, or a family or reasoning parser by name.
        opened: the prompt already opens the block, so that only its end is in the text.
        field: where clients get it.
    """

    format: str = AUTO
    opened: bool = False
    field: ReasoningField = ReasoningField.BOTH

    def pairs(self, wire: Format | None = None) -> tuple[tuple[str, str], ...]:
        """Openers and closers that count at the beginning of an answer; ``wire`` is the model's format, if known."""
        return _pairs(self.format, "" if wire is None else wire.reasoning)


@lru_cache(maxsize=256)
def _pairs(name: str, family: str) -> tuple[tuple[str, str], ...]:
    if name == OFF:
        return ()
    think = reasoning_named("think").pairs if name == AUTO else ()
    own = family or "think" if name == AUTO else name
    found = reasoning_named(own)
    return tuple(dict.fromkeys((*found.pairs, *found.leads, *think)))


class Thoughts:
    """The content of one answer. ``settled`` turns true when nothing more of it can be reasoning.

    A block of blanks is no reasoning, wherever it stands.
    """

    __slots__ = ("_closer", "_fresh", "_held", "_leads", "_pairs", "_said", "_spoken", "settled")

    def __init__(self, pairs: Sequence[tuple[str, str]], *, opened: bool = False) -> None:
        self._pairs = dict(reversed(pairs))
        self._leads = marks(*self._pairs, *self._pairs.values())
        self._held = ""
        self._said = False  # some reasoning has been given
        self._spoken = False  # by the block that is open, too
        self._closer = pairs[0][1] if opened and pairs else ""
        self._fresh = bool(self._closer)
        self.settled = not pairs

    def settle(self) -> None:
        """The engine gives reasoning by itself: what it calls content is content."""
        if not self._held and not self._said:
            self.settled = True

    def feed(self, text: str, /) -> list[Delta]:
        """More content."""
        if self.settled or not text:
            return [TextDelta(text)] if text else []
        self._held += text
        made: list[Delta] = []
        while self._held and not self.settled:
            before = self._held
            made.extend(self._think() if self._closer else self._begin())
            if self._held == before:
                break
        return made

    def finish(self, reason: str | None, /) -> list[Delta]:
        """The end: what was held."""
        del reason
        held = self._given()
        self.settled = True
        if not held or (self._said and not self._closer and not held.strip()):
            return []
        if not self._closer:
            return [TextDelta(held)]
        return [ReasoningDelta(held)] if self._spoken or held.strip() else []

    def _given(self) -> str:
        held, self._held = self._held, ""
        return held

    def _begin(self) -> list[Delta]:
        """The start of the answer, and what comes after a block."""
        start = len(self._held) - len(self._held.lstrip())
        word = self._leads.at(self._held, start)
        if not word and start <= _BLANKS and self._leads.unfinished(self._held, start):
            return []
        if not word:
            self.settled = True
            return [TextDelta(self._given())]
        self._held = self._held[start + len(word) :]
        self._closer = self._pairs.get(word, "")  # a closer without an opener: the prompt held an empty block
        self._fresh = self._spoken = False
        return []

    def _think(self) -> list[Delta]:
        if self._fresh and not self._opened_once():
            return []
        closer = marks(self._closer)
        at, found = closer.find(self._held, 0)
        end = at if found else closer.hold(self._held, 0)
        thought = self._held[:end]
        if not found and not self._spoken and not thought.strip():
            return []  # blanks only, so far
        self._held = self._held[end + len(found) :]
        if found:
            self._closer = ""
        if not thought or not (self._spoken or thought.strip()):
            return []
        self._said = self._spoken = True
        return [ReasoningDelta(thought)]

    def _opened_once(self) -> bool:
        """Drops an opener that the model writes although the prompt has it. False: that is not clear yet."""
        start = len(self._held) - len(self._held.lstrip())
        word = self._leads.at(self._held, start)
        if not word and start <= _BLANKS and self._leads.unfinished(self._held, start):
            return False
        self._fresh = False
        if word in self._pairs:
            self._held = self._held[start + len(word) :]
        return True
