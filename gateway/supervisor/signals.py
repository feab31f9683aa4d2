"""Signals as something to read, and how a fork gets rid of them."""

import contextlib
import signal
import socket
from collections.abc import Iterator
from types import FrameType
from typing import Final

HEARD: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)


def _heed(_number: int, _frame: FrameType | None) -> None:
    """Nothing: because there is a handler, Python writes the signal's number into the wake-up socket."""


class Signals:
    """From here on to the end of the process, signals are read from `inlet` and interrupt nothing."""

    def __init__(self) -> None:
        self.inlet, self._outlet = socket.socketpair()
        self.inlet.settimeout(0)
        self._outlet.settimeout(0)
        signal.set_wakeup_fd(self._outlet.fileno(), warn_on_full_buffer=False)
        for number in HEARD:
            signal.signal(number, _heed)

    def arrived(self) -> list[int]:
        """The numbers of the signals since the last look, in their order."""
        try:
            return list(self.inlet.recv(4096))
        except BlockingIOError:
            return []

    def forget(self) -> None:
        """For a fork: its signals are its own again. A hang-up is for those who know what to do then."""
        signal.set_wakeup_fd(-1)
        self.inlet.close()
        self._outlet.close()
        for number in HEARD:
            signal.signal(number, signal.SIG_IGN if number == signal.SIGHUP else signal.SIG_DFL)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Signals wait outside. Between a fork and `forget`, a signal to the fork would be read by the supervisor."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
