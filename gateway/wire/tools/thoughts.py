"""Reasoning at the beginning of an answer, for content that no parser of tool calls reads.

It does what `gateway.wire.toolcalls` does with reasoning, but for an answer's beginning only, so that it is out of the
way as soon as an answer has begun without any.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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
        if self.format == OFF:
            return ()
        if self.format != AUTO:
            family = reasoning_named(self.format)
            return (*family.pairs, *family.leads)
        think = reasoning_named("think").pairs
        if wire is None:
            return think
        family = reasoning_named(wire.reasoning)
        return tuple(dict.fromkeys((*family.pairs, *family.leads, *think)))


class Thoughts:
    """The content of one answer. ``settled`` turns true when nothing more of it can be reasoning."""

    __slots__ = ("_closer", "_held", "_openers", "_pairs", "_said", "settled")

    def __init__(self, pairs: Sequence[tuple[str, str]], *, opened: bool = False) -> None:
        self._pairs = dict(reversed(pairs))
        self._openers = marks(*self._pairs)
        self._held = ""
        self._said = False
        self._closer = pairs[0][1] if opened and pairs else ""
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
        if not self._closer and (given := self._begin()) is not None:
            return given
        return self._think()

    def finish(self, reason: str | None, /) -> list[Delta]:
        """The end: what was held."""
        del reason
        if self._closer and not self.settled:
            held, self._held = self._held, ""
            self.settled = True
            return [ReasoningDelta(held)] if self._said or held.strip() else []
        self.settled = True
        return self._given()

    def _given(self) -> list[Delta]:
        held, self._held = self._held, ""
        return [TextDelta(held)] if held else []

    def _begin(self) -> list[Delta] | None:
        """What is given out while the answer does not begin with reasoning; None if it does."""
        start = len(self._held) - len(self._held.lstrip())
        opener = self._openers.at(self._held, start)
        if self._openers.unfinished(self._held, start) and start <= _BLANKS:
            return []
        if not opener:
            self.settled = True
            return self._given()
        self._closer = self._pairs[opener]
        self._held = self._held[start + len(opener) :]
        return None

    def _think(self) -> list[Delta]:
        closer = marks(self._closer)
        at, found = closer.find(self._held, 0)
        end = at if found else closer.hold(self._held, 0)
        thought = self._held[:end]
        made: list[Delta] = []
        if thought and (self._said or thought.strip()):
            self._said = True
            made.append(ReasoningDelta(thought))
        elif not found:
            return []  # blanks only: an empty block is no reasoning
        self._held = self._held[end + len(found) :]
        if found:
            self.settled = True
            made.extend(self._given())
        return made
