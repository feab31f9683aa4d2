"""Signs of life in a stream whose first token is awaited (`server.heartbeat`): boxes in the middle keep it open."""

from typing import Final, Protocol

BEAT: Final = b": waiting\n\n"
"""An SSE comment. A blank line ends it, so that clients which split at blank lines lose nothing; no ``id:`` line is
ever sent, without which openai-python takes the blank line for what it is (cases.md A5)."""


class Awaiting(Protocol):
    """Whose client waits."""

    def beat(self, now: float) -> bool:
        """Sends a sign of life. False: it is no longer waited for."""


class Heartbeat:
    """One stream's place in the wheel of deadlines (`Timed`); ``interval`` in seconds."""

    __slots__ = ("_interval", "_of", "bucket")

    def __init__(self, of: Awaiting, interval: float) -> None:
        self._of = of
        self._interval = interval
        self.bucket = -1

    def on_deadline(self, now: float) -> float | None:
        """The next sign is due (`Timed`)."""
        return now + self._interval if self._of.beat(now) else None
