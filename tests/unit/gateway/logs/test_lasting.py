"""A log that cannot be written for a while."""

import contextlib
import errno
import io
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gateway.logs.lasting import LastingStream

ROOM: Final = 40
"""Bytes that the small file may have."""


def report(lines: int, why: str) -> str:
    return f"lost {lines}: {why}\n"


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Files of this process end after `ROOM` bytes, as a full disk does: in the middle of what is written."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    heed = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
        signal.signal(signal.SIGXFSZ, heed)


def test_lines_that_find_no_room_are_counted_and_told_after_the_end_of_the_line_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("a") as file, limited():
        log = LastingStream(file, report)
        log.write("a" * 29 + "\n")
        log.write("b" * 29 + "\n")
        log.write("c\nd\n")
        full = path.read_text()
        os.truncate(path, 0)
        log.write("e\n")
        log.write("f\n")
        told = path.read_text()

    assert full == "a" * 29 + "\n" + "b" * 10
    assert told == f"\nlost 3: {os.strerror(errno.EFBIG)}\ne\nf\n"


def test_a_word_about_lost_lines_that_is_cut_itself_is_said_again(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("a") as file, limited():
        log = LastingStream(file, report)
        log.write("a" * 29 + "\n")
        log.write("b" * 29 + "\n")
        os.truncate(path, 30)
        log.write("c\n")
        cut = path.read_text()
        os.truncate(path, 0)
        log.write("d\n")
        told = path.read_text()

    assert cut == "a" * 29 + "\n\nlost 1: F"
    assert told == f"\nlost 2: {os.strerror(errno.EFBIG)}\nd\n"


def test_a_stream_that_is_no_file_may_fail_too() -> None:
    class Failing(io.StringIO):
        full = True

        def write(self, text: str, /) -> int:
            if self.full:
                raise OSError(errno.ENOSPC, "no room")
            return super().write(text)

    stream = Failing()
    log = LastingStream(stream, report)
    assert log.write("a\n") == 2
    stream.full = False
    log.write("b\n")

    assert stream.getvalue() == "lost 1: no room\nb\n"


def test_a_reader_that_left_raises_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as file:
        assert LastingStream(file, report).write("a\n") == 2
