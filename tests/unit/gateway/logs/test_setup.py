"""Log lines: JSON for machines, readable for people, forged by nobody."""

import io
import json
import logging
import sys
import warnings
from collections.abc import Iterator

import pytest
import structlog

from gateway import logs
from gateway.logs.setup import QUIET

FORGED = "m\n2026-01-01 ERROR forged \x1b[31m\x9b\u2028end"


class Terminal(io.StringIO):
    """A stream that says that a person reads it."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Puts the process's logging back as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    logging.getLogger("uvicorn.error").filters.clear()
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.NOTSET)
    structlog.reset_defaults()


def written(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_json_line_whatever_it_holds() -> None:
    stream = io.StringIO()
    logs.configure(stream)
    structlog.get_logger().info("endpoint is up", engine=FORGED, answer=b"\xff")

    assert stream.getvalue().isascii()
    assert stream.getvalue().count("\n") == 1
    (line,) = written(stream)
    assert list(line)[:3] == ["timestamp", "level", "event"]
    assert (line["level"], line["event"], line["engine"]) == ("info", "endpoint is up", FORGED)


def test_on_a_terminal_control_characters_are_shown_and_not_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    logs.configure(stream)
    structlog.get_logger().warning(FORGED, engine=FORGED)

    text = stream.getvalue()
    assert len(text.splitlines()) == 1
    assert text.rstrip("\n").isprintable()
    assert "\\n" in text
    assert "\\x1b" in text
    assert not text.startswith("{")


def test_libraries_write_the_same_lines_and_only_when_it_matters() -> None:
    stream = io.StringIO()
    logs.configure(stream)
    logging.getLogger("uvicorn.error").info("Started server process")
    logging.getLogger("httpx2").info("HTTP Request: GET http://engine.inside/health")
    logging.getLogger("uvicorn.error").error("Invalid %s", "HTTP request")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("deprecated", DeprecationWarning, stacklevel=1)

    lines = written(stream)
    assert [(line["level"], line["logger"]) for line in lines] == [
        ("error", "uvicorn.error"),
        ("warning", "py.warnings"),
    ]
    assert lines[0]["event"] == "Invalid HTTP request"


def test_the_cut_of_a_broken_stream_is_not_an_error_of_the_application() -> None:
    """uvicorn says this when a stream is cut on purpose; everything near it is still said."""
    stream = io.StringIO()
    logs.configure(stream)
    logger = logging.getLogger("uvicorn.error")
    logger.error("ASGI callable returned without completing response.")
    logger.error("ASGI callable returned without starting response.")

    assert [line["event"] for line in written(stream)] == ["ASGI callable returned without starting response."]


def test_a_fault_is_one_json_line_with_its_traceback_and_the_request() -> None:
    stream = io.StringIO()
    logs.configure(stream)
    with structlog.contextvars.bound_contextvars(request_id="trace-1"):
        try:
            raise RuntimeError(FORGED)
        except RuntimeError:
            logging.getLogger("uvicorn.error").error("Exception in ASGI application", exc_info=sys.exc_info())

    (line,) = written(stream)
    assert line["request_id"] == "trace-1"
    assert "RuntimeError" in str(line["exception"])


def test_the_level_changes_for_events_of_ours_and_of_libraries() -> None:
    stream = io.StringIO()
    logs.configure(stream)
    ours, theirs = structlog.get_logger(), logging.getLogger("a.library")
    assert logs.level() == "info"
    logs.set_level("error")
    ours.warning("not this")
    theirs.warning("nor this")
    ours.error("but this")
    logs.set_level("debug")
    ours.debug("and this")
    theirs.debug("and that")

    assert logs.level() == "debug"
    assert [line["event"] for line in written(stream)] == ["but this", "and this", "and that"]
