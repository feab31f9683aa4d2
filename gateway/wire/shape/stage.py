"""The protocol of stages.

A stage looks at one thing. It gets every event of a stream in turn, or a whole answer, may keep a state of its own
stream, and knows nothing of the other stages.
"""

from collections.abc import Sequence

from gateway.wire.shape.event import Event


class Stage:
    """A stage that changes nothing; others override what they need."""

    __slots__ = ()

    reads_text: bool = False
    """What it does with an event depends on the text of the answer, not only on which members are there."""

    def concerns(self, data: bytes) -> bool:
        """Whether one of these events, as the engine sent them, may be of interest.

        False must be certain for JSON without blanks between its tokens; other spellings are always taken apart.
        """
        del data
        return True

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
        """As `concerns`, for a whole answer."""
        del data
        return False

    def whole(self, answer: Event) -> bool:
        """Puts a whole answer right, in place. Returns whether anything was changed."""
        del answer
        return False
