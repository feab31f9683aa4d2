"""Text that may be read before the event that brings it is taken apart: content, and arguments of an engine's calls."""

from collections.abc import Container, Sequence
from typing import Final

from gateway.wire.shape.stage import Ahead, Place
from gateway.wire.toolcalls import CallArguments, CallEnd, Delta, ReasoningDelta, TextDelta
from gateway.wire.toolcalls.normalise import Choice, Normaliser, Reads, carries_more

_CONTENT: Final = "content"
_REASONING: Final = "reasoning"
_NOTHING: Final[tuple[object, ...]] = (None, "", [])


class ArgumentsAhead:
    """Arguments of one call of an engine. ``at``: its number of the call; ``said``: what the last event came to."""

    __slots__ = ("_at", "_normaliser", "said")

    def __init__(self, normaliser: Normaliser, at: int, said: tuple[Place, str]) -> None:
        self._normaliser = normaliser
        self._at = at
        self.said: tuple[Place, str] | None = said

    def read(self, text: str, known: Container[Place]) -> Sequence[tuple[Place, str]] | None:
        """Reads `text`. None: nothing was read."""
        del known
        more = self._normaliser.more_arguments(self._at, text)
        if more is None:
            return None
        return (more,) if more[1] else ()


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

    def read(self, text: str, known: Container[Place]) -> Sequence[tuple[Place, str]] | None:
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


def ahead_of(choice: Choice, made: Choice, normaliser: Normaliser, content: ReadAhead | None) -> Ahead | None:
    """What reads the text of events like the one that had only this choice, which became one that has only `made`.

    None if there is more in them than text. ``content``: reads content, None if more is done with it.
    """
    delta = choice.get("delta") or {}
    if choice.get("finish_reason") is not None or carries_more(choice):
        return None
    says = {name: value for name, value in delta.items() if value not in _NOTHING}
    if says.keys() == {"content"}:
        return content
    if says.keys() != {"tool_calls"} or len(calls := says["tool_calls"]) != 1:
        return None
    (call,) = calls
    given = (made.get("delta") or {}).get("tool_calls") or [{}]
    if not _only_arguments(call) or not _only_arguments(given[0]) or len(given) != 1:
        return None
    return ArgumentsAhead(normaliser, call["index"], (given[0]["index"], given[0]["function"]["arguments"]))


def _only_arguments(call: Choice) -> bool:
    """Whether an entry of `tool_calls` has arguments and nothing else to say."""
    function = call.get("function") or {}
    plain = isinstance(call.get("index"), int) and not call.get("id") and not function.get("name")
    return plain and isinstance(arguments := function.get("arguments"), str) and bool(arguments)
