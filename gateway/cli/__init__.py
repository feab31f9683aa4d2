"""The `turnout` command.

What has been loaded once stays in memory for as long as a process lives, and `turnout serve` lives long. So the way in
is light: a plain `turnout serve` is read here and loads what serves, and nothing else; all other commands, and whatever
is not plain about this one, go to `commands`.
"""

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from gateway.cli.failing import Failure, Told
from gateway.cli.plain import plain_serve


class SparedPipe(io.FileIO):
    """A standard output whose reader may leave (`turnout check | head`) without changing what the exit code says.

    Another failure, such as a full disk, is raised once; what is still buffered then is given up.
    """

    _given_up = False

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]  # what buffered writers give
        """Writes, or pretends to once nobody reads."""
        if not self._given_up:
            try:
                return super().write(data)
            except BrokenPipeError:
                self._given_up = True
            except OSError as error:
                self._given_up = True
                raise OSError(error.errno, error.strerror, "standard output") from None
        return memoryview(data).nbytes


class SparedErrors(io.FileIO):
    """A standard error that may be full or left alone: there is nobody to tell, so what is done goes on."""

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]  # what buffered writers give
        """Writes what can be written."""
        with contextlib.suppress(OSError):
            return super().write(data) or memoryview(data).nbytes
        return memoryview(data).nbytes


def _spared(stream: TextIO, kind: type[SparedPipe | SparedErrors]) -> TextIO:
    raw = kind(stream.fileno(), "wb", closefd=False)
    buffered = io.BufferedWriter(raw)  # type: ignore[type-var]  # it is a FileIO, which fits
    at_once = kind is SparedErrors or bool(stream.line_buffering)  # the log goes past this, and waits for nothing here
    return io.TextIOWrapper(buffered, stream.encoding, stream.errors, line_buffering=at_once)


def _open_streams() -> None:
    """Gives closed standard streams something to read from and to write to.

    Otherwise the next file or socket that is opened would take the place of one, and get what is meant for it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it takes the lowest number that is free: this one
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - a descriptor, for as long as the process lives
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - as above
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115 - as above


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and gives its exit code; every error is one line on stderr."""
    if arguments is None:
        _open_streams()
        sys.stdout, sys.stderr = _spared(sys.stdout, SparedPipe), _spared(sys.stderr, SparedErrors)
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(given)
        sys.stdout.flush()
    except Told as told:
        return told.code
    except Failure as failure:
        why = str(failure)
    except OSError as error:
        about = f"{error.filename}: " if error.filename is not None else ""
        why = f"{about}{error.strerror or error}"
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    else:
        return code
    print(f"turnout: {why}", file=sys.stderr)
    return 1


def _run(given: list[str]) -> int:
    """By name, for one of the two is all that is loaded."""
    order = plain_serve(given)
    code: int
    if order is None:
        code = importlib.import_module("gateway.cli.commands").run(given)
    else:
        code = importlib.import_module("gateway.cli.sparing").serve_sparingly(order)
    return code
