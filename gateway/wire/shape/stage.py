"""The protocol of stages.

A stage looks at one thing. It gets every event of a stream in turn, or a whole answer, may keep a state of its own
stream, and knows nothing of the other stages.
"""

from collections.abc import Container, Sequence
from typing import Protocol, TypeAlias

from gateway.wire.shape.event import Event

Place: TypeAlias = str | int
"""Where text goes in an event: the member of a delta, or the index of a tool call whose arguments it belongs to."""


class Ahead(Protocol):
    """Reads the text of events that are alike but for it, before they are taken apart."""

    @property
    def said(self) -> tuple[Place, str] | None:
        """Where the text of the last event went, and what it was then."""

    def read(self, text: str, known: Container[Place]) -> Sequence[tuple[Place, str]] | None:
        """What an event with this text comes to: where something is to be sent, and what; or nothing.

        None if there is more, or its place is not `known`: then the stage must be given the event, and does not read
        its text again.
        """


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
    def ahead(self) -> Ahead | None:
        """For stages that read text and are never `over`: who reads the text of events like the last one, if that had
        nothing but text and became one event with nothing but text."""
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
