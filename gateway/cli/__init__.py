"""The `turnout` command.

What has been loaded once stays in memory for as long as a process lives, and `turnout serve` lives long. So the way in
is light: a plain `turnout serve` is read here and loads what serves, and nothing else; all other commands, and whatever
is not plain about this one, go to `commands`.
"""

import importlib
import io
import sys
from collections.abc import Sequence
from typing import TextIO

from gateway.cli.failing import Failure, Told
from gateway.cli.plain import plain_serve


class SparedPipe(io.FileIO):
    """A standard output whose reader may leave (`turnout check | head`) without changing what the exit code says."""

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]  # what buffered writers give
        """Writes, or pretends to once nobody reads."""
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


def _spared(stream: TextIO) -> TextIO:
    raw = SparedPipe(stream.fileno(), "wb", closefd=False)
    buffered = io.BufferedWriter(raw)  # type: ignore[type-var]  # it is a FileIO, which fits
    return io.TextIOWrapper(buffered, stream.encoding, stream.errors, line_buffering=bool(stream.line_buffering))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and gives its exit code; every error is one line on stderr."""
    if arguments is None:
        sys.stdout, sys.stderr = _spared(sys.stdout), _spared(sys.stderr)
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(given)
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
