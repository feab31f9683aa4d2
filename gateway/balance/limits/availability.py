"""Whether something that may be away is asked: a breaker whose trials are made by somebody who has time."""

from typing import Final

FAILURES: Final = 2
"""Failures in a row after which nobody waits any more; a broken connection is enough by itself."""


class Availability:
    """Away until it has answered once. Invariant: `up` changes only by `answered` and `failed`, which say so."""

    __slots__ = ("_failures", "_known", "reason", "up")

    def __init__(self) -> None:
        self.up = False
        self._known = False
        self.reason = "not reached yet"
        self._failures = 0

    def answered(self) -> bool:
        """It has answered; whether that is news."""
        self._failures = 0
        news, self.up, self._known = not self.up, True, True
        return news

    def failed(self, reason: str, *, surely: bool) -> bool:
        """It has not, or with an error; whether that is news: it counts as away from now on and did not before.

        ``surely``: there is no doubt that the next question would fail too.
        """
        self._failures += 1
        if self.up and not surely and self._failures < FAILURES:
            return False
        news, self.up, self._known = self.up or not self._known, False, True
        self.reason = reason
        return news
