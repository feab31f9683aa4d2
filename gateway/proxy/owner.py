"""The port between an attempt and who started it: an exchange, or a fan-out."""

from typing import Protocol

from gateway.balance.outcome import Outcome
from gateway.errors import ApiError


class Owner(Protocol):
    """Who started the attempt."""

    __slots__ = ()

    def on_stream(self, data: bytes) -> None:
        """Bytes for the client."""

    def on_heard(self) -> None:
        """The engine has sent something that comes to nothing for the client."""

    def on_stream_end(self, tail: bytes) -> None:
        """The stream is complete once ``tail`` is sent. The lease has ended."""

    def on_whole(self, body: bytes, now: float) -> None:
        """The whole answer, at ``now`` (loop time). The lease has ended."""

    def on_failure(self, outcome: Outcome, error: ApiError) -> None:
        """The attempt is over without an answer. The lease has ended."""
