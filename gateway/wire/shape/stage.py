"""The protocol of stages.

A stage looks at one thing. It gets every event of a stream in turn, or a whole answer, may keep a state of its own
stream, and knows nothing of the other stages.
"""

from collections.abc import Container, Sequence
from typing import TypeAlias

from gateway.wire.shape.event import Event

Place: TypeAlias = str | int
"""Where text goes in an event: the member of a delta, or the index of a tool call whose arguments it belongs to."""


class Stage:
    """A stage that changes nothing; others override what they need."""

    __slots__ = ()

    signs: tuple[bytes, ...] | None = None
    """What the bytes of an event must have for it to be of interest, any of these; None: every event is.

    This must be certain for JSON without blanks between its tokens; other spellings are always taken apart. A name with
    its quotes is safe to look for: inside a string every quote is escaped.
    """

    reads_text: bool = False
    """What it does with an event depends on the text of the answer, not only on which members are there."""

    @property
    def over(self) -> bool:
        """Nothing more of this stream concerns it: it is taken out of the chain. For stages with a state of their
        own."""
        return False

    @property
    def said(self) -> tuple[Place, str] | None:
        """For stages that read text: what the last event came to, if it had nothing but text and became one event with
        nothing but this text in this place."""
        return None

    def ahead(self, text: str, known: Container[Place]) -> Sequence[tuple[Place, str]] | None:
        """For stages that read text and are never `over`: reads the text of an event that is like the one `said` spoke
        of, without the event.

        Returns:
            What to send and where, or nothing; None if there is more, or its place is not `known`: then the event must
            be taken, and its text is not read again.
        """
        del text, known
        return None

    def take(self, event: Event) -> Sequence[Event] | None:
        """The events to send in place of this one; None if it is right as it is.

        The event belongs to the stage now: it may be changed and given back.
        """
        del event
        return None

    def end(self) -> Sequence[Event]:
        """The stream is over: what was held back."""
        return ()

    def concerns_whole(self, data: bytes) -> bool:
        """Whether a whole answer, as the engine sent it, may be of interest."""
        del data
        return False

    def whole(self, answer: Event) -> bool:
        """Puts a whole answer right, in place. Returns whether anything was changed."""
        del answer
        return False
