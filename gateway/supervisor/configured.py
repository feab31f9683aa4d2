"""The configuration as the supervisor keeps it: it reads the file, and every member gets what it has read.

So all members have the same one, a member that starts later has it too even if the file has become unusable meanwhile,
and nobody else looks at the file.
"""

import time
from dataclasses import dataclass

import structlog

from gateway import logs
from gateway.api.orders import Put, Refused
from gateway.background.reloader import log_found, log_open
from gateway.balance.drains import StandingOrders
from gateway.settings.problems import ConfigErrors
from gateway.settings.source import LOOK_EVERY, ConfigFile, Configuration

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Standing:
    """What holds already for a member that starts: the configuration, what is wrong with its file now, and drains."""

    configuration: Configuration
    error: str
    drains: StandingOrders


class Configured:
    """What is in force, and what is wrong with the file; ``file`` is None where the command line names the engines."""

    def __init__(self, current: Configuration, file: ConfigFile | None) -> None:
        self.current = current
        self.error = ""
        self._file = file
        self._look_at = 0.0

    def until(self) -> float | None:
        """When the next look is due; None: never."""
        return None if self._file is None else self._look_at

    def look(self, now: float) -> Put | Refused | None:
        """Looks at the file if it is time to; gives what all members must know, or None if there is no news."""
        if self._file is None or now < self._look_at:
            return None
        self._look_at = now + LOOK_EVERY
        found = self._file.poll(now, time.time())
        return None if found is None else self._noted(found)

    def read(self, now: float) -> Put | Refused:
        """Reads the file, changed or not; gives what all members must know."""
        if self._file is None:
            return Put.of(self.current)
        return self._noted(self._file.read(now, time.time()))

    def _noted(self, found: Configuration | ConfigErrors) -> Put | Refused:
        log_found(found)
        if isinstance(found, ConfigErrors):
            self.error = str(found)
            return Refused(self.error)
        if found.settings.logs.level != self.current.settings.logs.level:
            logs.set_level(found.settings.logs.level)
        log_open(self.current.settings, found.settings)
        self.current, self.error = found, ""
        return Put.of(found)
