"""Active health checks of one endpoint: when to ask next, and what the answers add up to.

Invariants:
- Up turns to down exactly with the `down_after`-th failure in a row, down to up with the `up_after`-th pass in a row.
- Nothing known turns to up with the first pass, to down with the `down_after`-th failure in a row.
- The next check is never later than `interval` after the last answer, and never sooner than `confirm` after it.

A suspicion (a request was refused, a connection died) and a refused check bring the next check forward to `confirm`
after the last one: nobody listening is not a matter of opinion. Other failures keep to the interval, because Triton
says "not ready" for one to five seconds whenever any of its models unloads, and that must not look like three failures.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import inf


class Health(StrEnum):
    """What the checks say."""

    UNKNOWN = "unknown"
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class HealthSettings:
    """How often to ask and how many answers make a verdict. Times in seconds."""

    interval: float = 5.0
    confirm: float = 1.0
    down_after: int = 3
    up_after: int = 2


class HealthCheck:
    """The verdict over one endpoint. The shell asks when `due` has come and reports what it heard."""

    __slots__ = ("_asked", "_settings", "_streak", "due", "verdict")

    def __init__(self, settings: HealthSettings) -> None:
        """Nothing is known, and the first check is due at once."""
        self._settings = settings
        self._asked = -inf
        self._streak = 0
        self.due = -inf
        self.verdict = Health.UNKNOWN

    def adjust(self, settings: HealthSettings) -> None:
        """Go on with other settings; what is known stays known."""
        self._settings = settings
        self.due = min(self.due, self._asked + settings.interval)

    def passed(self, now: float) -> bool:
        """Note a good answer; True if the verdict changed."""
        against = self.verdict is Health.DOWN
        enough = self._settings.up_after if against else 1
        return self._note(Health.UP, enough, now, soon=against)

    def failed(self, now: float, *, refused: bool = False) -> bool:
        """Note a bad answer or none; True if the verdict changed. `refused`: nobody was listening."""
        return self._note(Health.DOWN, self._settings.down_after, now, soon=refused and self.verdict is not Health.DOWN)

    def _note(self, heard: Health, enough: int, now: float, *, soon: bool) -> bool:
        self._asked = now
        if self.verdict is heard:
            self._streak = 0
        else:
            self._streak += 1
        changed = self._streak >= enough
        if changed:
            self.verdict = heard
            self._streak = 0
        settings = self._settings
        self.due = now + (min(settings.confirm, settings.interval) if soon and not changed else settings.interval)
        return changed

    def suspect(self, now: float) -> None:
        """Ask again soon: a request has just failed to reach the endpoint."""
        self.due = min(self.due, max(now, self._asked + self._settings.confirm))
