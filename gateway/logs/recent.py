"""The errors that clients were told of late, for operators to look at. No bodies, no prompts, no keys."""

from collections import deque
from collections.abc import Iterator
from typing import Final

import msgspec

KEPT: Final = 200
"""Errors that are remembered."""


class Noted(msgspec.Struct, frozen=True):
    """One error. ``at`` in Unix seconds, ``status`` as the client got it: 200 where a stream had begun."""

    at: float
    request_id: str
    operation: str
    model: str
    engine: str
    status: int
    outcome: str
    code: str
    message: str
    attempts: int
    ms: float


class RecentErrors:
    """The last errors, the newest first."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept: deque[Noted] = deque(maxlen=kept)

    def note(self, one: Noted) -> None:
        """One more; the oldest goes when there are too many."""
        self._kept.appendleft(one)

    def __iter__(self) -> Iterator[Noted]:
        return iter(tuple(self._kept))
