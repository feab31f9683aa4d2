"""When a member that ended is followed by another, and when there is no point any more. Time is an argument."""

from typing import Final

STEADY: Final = 10.0
"""Seconds after which a member counts as one that works, whatever ends it."""

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 2.0
"""Seconds. New connections wait for the next member of their place, so it is never long."""

IN_VAIN: Final = 4
"""So many starts in a row without success, and at least one per place, are enough."""


class Restarts:
    """Remembers how members fared, by their place in the group."""

    def __init__(self, places: int) -> None:
        self._failures = [0] * places
        self._in_vain = 0
        self._enough = max(IN_VAIN, places)

    def started(self) -> None:
        """A member takes requests."""
        self._in_vain = 0

    def ended(self, place: int, served: float | None, *, others: bool) -> float | None:
        """Seconds until the next member may start at this place; None: give up.

        ``served`` is for how many seconds the one that ended took requests, None if it never came to that.
        ``others`` says whether another member serves now: as long as one does, nothing is given up.
        """
        if served is None:
            self._in_vain += 1
            if self._in_vain >= self._enough and not others:
                return None
        if served is not None and served >= STEADY:
            self._failures[place] = 0
            return 0.0
        pause = FIRST_PAUSE * 2.0 ** min(self._failures[place], 10)
        self._failures[place] += 1
        return min(pause, LONGEST_PAUSE)
