"""Where the machine puts what it finds: joins neighbouring pieces, numbers calls, keeps whitespace policy."""

import re
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Final, TypeAlias

from gateway.wire.toolcalls.deltas import (
    CallArguments,
    CallEnd,
    CallStart,
    Delta,
    ReasoningDelta,
    TextDelta,
)
from gateway.wire.toolcalls.ids import CallIds

_WHITESPACE: Final = " \t\r\n\f\v"
_CLEAN_ID: Final = re.compile(r"[A-Za-z0-9_.:/-]{4,128}")


_State: TypeAlias = tuple[list[str] | None, list[str], bool]


@dataclass(frozen=True, slots=True)
class _Held:
    """The sink as it was when it began to hold things back."""

    out: list[Delta]
    count: int
    ids: set[str]
    content: _State
    reasoning: _State


class Channel:
    """Content or reasoning: plain text with two rules at its edges.

    Whitespace at the beginning and after markup is held back until it is clear that text follows; with markup or the
    end instead, it is dropped. Turn-end tokens likewise: at an edge they are markup, before more text they are text.
    """

    __slots__ = ("_emit", "_gap", "_tail", "spoken")

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._gap: list[str] | None = []
        self._tail: list[str] = []
        self.spoken = False

    @property
    def plain(self) -> bool:
        """Whether the next text goes out as it is."""
        return self._gap is None and not self._tail

    @property
    def at_edge(self) -> bool:
        """Whether nothing but whitespace came since markup or the beginning."""
        return self._gap is not None

    def write(self, text: str) -> None:
        """Adds text."""
        if self._gap is None and not self._tail:
            self._emit(text)
            return
        if not text.strip(_WHITESPACE):
            (self._tail if self._tail or self._gap is None else self._gap).append(text)
            return
        held = "".join((*(self._gap or ()), *self._tail))
        self._gap = None
        self._tail.clear()
        self.spoken = True
        self._emit(held + text)

    def turn_end(self, token: str) -> None:
        """Adds a turn-end token."""
        self._tail.append(token)

    def edge(self) -> None:
        """Markup stands here."""
        self._gap = []
        self._tail.clear()

    def finish(self, *, keep_blank: bool) -> None:
        """The end; `keep_blank`: whitespace is all there is, so it counts."""
        if keep_blank and self._gap:
            self._emit("".join(self._gap))
        self.edge()

    def state(self) -> _State:
        """A copy of the state, for `restore`."""
        return (None if self._gap is None else list(self._gap), list(self._tail), self.spoken)

    def restore(self, state: _State) -> None:
        """Goes back to a state."""
        self._gap, self._tail, self.spoken = state


class Sink:
    """Collects deltas.

    Args:
        ids: makes an id for a call that brought none.
        parallel: False keeps the first call only.
        used: ids that no call may have.
    """

    def __init__(self, ids: CallIds, *, parallel: bool, used: Container[str]) -> None:
        self.content: Final = Channel(self._text)
        self.reasoning: Final = Channel(self._thought)
        self.repairs: Final[dict[str, int]] = {}
        self.count = 0
        self.open = False
        self._new_id = ids
        self._parallel = parallel
        self._used = used
        self._muted = False
        self._ids: set[str] = set()
        self._out: list[Delta] = []
        self._kind: type[TextDelta | ReasoningDelta | CallArguments] | None = None
        self._run: list[str] = []
        self._held: _Held | None = None

    def repair(self, name: str) -> None:
        """Counts a leniency."""
        self.repairs[name] = self.repairs.get(name, 0) + 1

    def start(self, name: str, call_id: str = "") -> None:
        """A call begins."""
        self.content.edge()
        self.reasoning.edge()
        self._flush()
        self.open = True
        self.count += 1
        if not self._parallel and self.count > 1:
            self._muted = True
            self.repair("second_call_dropped")
            return
        if not _CLEAN_ID.fullmatch(call_id) or call_id in self._ids or call_id in self._used:
            call_id = self._new_id()
        self._ids.add(call_id)
        self._out.append(CallStart(self.count - 1, call_id, name))

    def arguments(self, text: str) -> None:
        """More of the open call's arguments."""
        if text and not self._muted:
            self._push(CallArguments, text)

    def end(self, *, complete: bool = True) -> None:
        """The open call ends."""
        self._flush()
        self.open = False
        if self._muted:
            self._muted = False
        else:
            self._out.append(CallEnd(self.count - 1, complete))
        self.content.edge()

    def hold(self) -> None:
        """From here on nothing goes out until it is clear whether it counts."""
        self._flush()
        self._held = _Held(self._out, self.count, set(self._ids), self.content.state(), self.reasoning.state())
        self._out = []

    def keep(self) -> None:
        """What was held counts."""
        self._flush()
        if self._held:
            self._out = [*self._held.out, *self._out]
            self._held = None

    def discard(self) -> None:
        """What was held does not count."""
        self._kind, self._run = None, []
        if self._held:
            self._out, self.count, self._ids = self._held.out, self._held.count, self._held.ids
            self.content.restore(self._held.content)
            self.reasoning.restore(self._held.reasoning)
            self.open = self._muted = False
            self._held = None

    @property
    def holds_calls(self) -> bool:
        """Whether a call is among what is held."""
        return self._held is not None and self.count > self._held.count

    def drain(self) -> list[Delta]:
        """Takes out what may go out."""
        if self._held:
            out = list(self._held.out)
            self._held.out.clear()
            return out
        self._flush()
        out, self._out = self._out, []
        return out

    def finish(self) -> list[Delta]:
        """Takes out the rest at the end of the answer."""
        self.keep()
        if self.open:
            self.end(complete=False)
        bare = not self.count
        self.reasoning.finish(keep_blank=False)
        self.content.finish(keep_blank=bare and not self.reasoning.spoken)
        return self.drain()

    def _text(self, text: str) -> None:
        self._push(TextDelta, text)

    def _thought(self, text: str) -> None:
        self._push(ReasoningDelta, text)

    def _push(self, kind: type[TextDelta | ReasoningDelta | CallArguments], text: str) -> None:
        if kind is not self._kind:
            self._flush()
            self._kind = kind
        self._run.append(text)
        self._new_id.note(text)

    def _flush(self) -> None:
        if self._kind is None:
            return
        text = "".join(self._run)
        if self._kind is CallArguments:
            self._out.append(CallArguments(self.count - 1, text))
        elif self._kind is TextDelta:
            self._out.append(TextDelta(text))
        else:
            self._out.append(ReasoningDelta(text))
        self._kind = None
        self._run = []
