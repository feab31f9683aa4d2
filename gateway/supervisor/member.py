"""A serving process as the supervisor sees it."""

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

import structlog

from gateway.supervisor.frames import Frame, FrameReader

UNREAD: Final = 1 << 16
"""Bytes that may wait for a member that does not read; it hangs, and gets no more questions, but still all orders."""

_log = structlog.get_logger()


class State(Enum):
    """Where a member is in its life."""

    STARTING = auto()
    SERVING = auto()
    LEAVING = auto()
    """It takes nothing new, and finishes what it has."""


@dataclass(slots=True, eq=False)
class Member:
    """One forked process at a place of the group, and the supervisor's end of the line to it."""

    place: int
    pid: int
    line: socket.socket
    follows: int | None = None
    """The process id of the one that it replaces."""
    state: State = State.STARTING
    ready_at: float | None = None
    open: bool = True
    _reader: FrameReader = field(default_factory=FrameReader)
    _unsent: bytearray = field(default_factory=bytearray)

    def heard(self) -> list[Frame]:
        """What has come since the last look; afterwards, `open` says whether more may come."""
        frames: list[Frame] = []
        while self.open:
            try:
                piece = self.line.recv(1 << 18)
            except BlockingIOError:
                break
            except OSError:
                piece = b""
            if piece:
                frames += self._reader.feed(piece)
            else:
                self.open = False
        return frames

    def send(self, frame: Frame, *, surely: bool = False) -> None:
        """Sends as much as goes now, the rest with `flush` when the line takes more. ``surely``: never left out."""
        if self.open and (surely or len(self._unsent) < UNREAD):
            self._unsent += frame.encode()
            self.flush()

    def flush(self) -> None:
        """Sends what waits."""
        try:
            while self._unsent:
                del self._unsent[: self.line.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent.clear()  # it has gone; reading will tell

    @property
    def waits(self) -> bool:
        """Whether something could not be sent yet."""
        return bool(self._unsent)

    def signal(self, number: int) -> None:
        """Passes a signal on. A member that has just ended does not mind."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def ended(self) -> str | None:
        """How the process ended, for people; None while it runs. To be called no more after it has told."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            return None
        code = os.waitstatus_to_exitcode(status)
        return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"


def become(serve: Callable[[], int]) -> None:
    """Lets the forked process serve, and ends it there: nothing of the supervisor's own way out is for it."""
    code = 1
    try:
        code = serve()
    except Exception:
        _log.exception("the serving process failed")
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
