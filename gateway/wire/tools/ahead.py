"""A reader whose text may be read before the event that brings it is taken apart."""

from collections.abc import Container, Sequence
from typing import Final

from gateway.wire.shape.stage import Place
from gateway.wire.toolcalls import CallArguments, CallEnd, Delta, ReasoningDelta, TextDelta
from gateway.wire.toolcalls.normalise import Reads

_CONTENT: Final = "content"
_REASONING: Final = "reasoning"


class ReadAhead:
    """Reads (`normalise.Reads`) as another reader does, or gives what that has read already."""

    __slots__ = ("_last", "_reads", "_waiting")

    def __init__(self, reads: Reads) -> None:
        self._reads = reads
        self._waiting: list[Delta] | None = None
        self._last: Sequence[Delta] = ()

    def feed(self, text: str, /) -> list[Delta]:
        """More content; it may have been read ahead."""
        waiting, self._waiting = self._waiting, None
        read = self._reads.feed(text) if waiting is None else waiting
        self._last = read
        return read

    def finish(self, reason: str | None, /) -> list[Delta]:
        """The end."""
        return self._reads.finish(reason)

    @property
    def said(self) -> tuple[Place, str] | None:
        """What the text last fed came to, if that was text for one place."""
        placed = _placed(self._last)
        return placed[0] if placed is not None and len(placed) == 1 else None

    def ahead(self, text: str, known: Container[Place]) -> Sequence[tuple[Place, str]] | None:
        """Reads `text`. None: what came of it is not text for one known place, and `feed` will give it (until then
        nothing more is read)."""
        if self._waiting is not None:
            return None
        read = self._reads.feed(text)
        placed = _placed(read)
        if placed is None or len(placed) > 1 or (placed and placed[0][0] not in known):
            self._waiting = read
            return None
        return placed


def _placed(read: Sequence[Delta]) -> list[tuple[Place, str]] | None:
    """Texts and where they go; None if there is more than that."""
    placed: list[tuple[Place, str]] = []
    for delta in read:
        if isinstance(delta, CallArguments):
            placed.append((delta.index, delta.text))
        elif isinstance(delta, TextDelta):
            placed.append((_CONTENT, delta.text))
        elif isinstance(delta, ReasoningDelta):
            placed.append((_REASONING, delta.text))
        elif not isinstance(delta, CallEnd):
            return None
    return placed
