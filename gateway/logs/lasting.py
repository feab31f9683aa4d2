"""A log that outlasts its disk: what cannot be written is counted, and said as soon as writing works again."""

import io
import os
import threading
from collections.abc import Callable
from typing import Final, TextIO, TypeAlias

NO_DESCRIPTOR: Final = -1

Report: TypeAlias = Callable[[int, str], str]
"""The line, with its end, about so many lines that were lost, and why."""


class LastingStream(io.TextIOBase):
    """Takes finished lines to ``stream``, past its buffers, and never raises OSError: a log that cannot be written must
    not change what becomes of a request or an order.

    A line that was cut counts as lost, and the next thing written begins with the end of a line.
    """

    def __init__(self, stream: TextIO, report: Report) -> None:
        super().__init__()
        self._stream = stream
        self._report = report
        self._number = _number_of(stream)
        self._encoding = stream.encoding or "utf-8"
        self._lost = 0
        self._why = ""
        self._cut = False
        # A signal's handler may have something to say while a line is written.
        self._lock = threading.RLock()

    def write(self, text: str, /) -> int:
        """Writes lines, after a word about those that were lost before."""
        with self._lock:
            if self._lost and not self._put(("\n" if self._cut else "") + self._report(self._lost, self._why)):
                self._lost = 0
            # While there is no word about them, nothing else is tried: the order of lines tells what happened.
            left = self._encoded(text) if self._lost else self._put(text)
            self._lost += left.count(b"\n")
        return len(text)

    def _put(self, text: str) -> bytes:
        """Writes as much as can be written; gives what is left."""
        left = self._encoded(text)
        try:
            if self._number == NO_DESCRIPTOR:
                self._stream.write(text)
                self._stream.flush()
                return b""
            while left:
                written = os.write(self._number, left)
                self._cut = left[written - 1 : written] != b"\n"
                left = left[written:]
        except OSError as error:
            self._why = error.strerror or str(error)
        return left

    def _encoded(self, text: str) -> bytes:
        return text.encode(self._encoding, "backslashreplace")


def _number_of(stream: TextIO) -> int:
    try:
        stream.flush()
        return stream.fileno()
    except OSError:  # nothing of the system's is behind it
        return NO_DESCRIPTOR
