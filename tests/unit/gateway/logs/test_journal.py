"""The lines about requests, and the errors of late."""

import io
import json
import logging
from collections.abc import Callable, Iterator

import pytest
import structlog

from gateway import logs
from gateway.logs.journal import MOST, WAIT, Journal, RequestSummary, Which
from gateway.logs.recent import KEPT
from gateway.logs.setup import QUIET

FORGED = "a\nERROR forged\x1b[2J\u2028\x85\u202e"
SERVED = RequestSummary("r1", "chat", "m", "e", 200, "served", 1, 0.1234, 0.0456, 3, 5)
REFUSED = RequestSummary("r2", "chat", "m", "", 404, "rejected", 0, 0.0001, code="model_not_found", message=FORGED)


class Timer:
    """Has things done when it is told to."""

    def __init__(self) -> None:
        self.due: list[tuple[float, Callable[[], None]]] = []

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        self.due.append((seconds, what))

    def ring(self) -> None:
        for _, what in self.due:
            what()
        self.due.clear()


@pytest.fixture(autouse=True)
def stream() -> Iterator[io.StringIO]:
    """Where the log goes."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    made = io.StringIO()
    logs.configure(made)
    yield made
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    logging.getLogger("uvicorn.error").filters.clear()
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.NOTSET)
    structlog.reset_defaults()


def written(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_request_is_one_line_with_what_happened(stream: io.StringIO) -> None:
    timer = Timer()
    journal = Journal(timer.later, lambda: 0.0, "all")
    journal.note(SERVED)
    journal.note(REFUSED)
    assert stream.getvalue() == ""
    assert [seconds for seconds, _ in timer.due] == [WAIT]
    timer.ring()

    first, second = written(stream)
    assert str(first.pop("timestamp")).endswith("Z")
    assert first == {
        "level": "info",
        "event": "request",
        "id": "r1",
        "operation": "chat",
        "model": "m",
        "engine": "e",
        "status": 200,
        "outcome": "served",
        "attempts": 1,
        "ms": 123.4,
        "first_token_ms": 45.6,
        "input_tokens": 3,
        "output_tokens": 5,
    }
    assert "first_token_ms" not in second
    assert (second["code"], second["error"]) == ("model_not_found", FORGED)
    assert stream.getvalue().isascii()
    assert stream.getvalue().count("\n") == 2


def test_its_line_has_the_members_and_the_order_of_every_other_line(stream: io.StringIO) -> None:
    journal = Journal(Timer().later, lambda: 0.0, "all")
    journal.note(SERVED)
    journal.flush()
    structlog.get_logger().info("request", **dict.fromkeys(list(written(stream)[0])[3:], 1))
    own, usual = written(stream)

    assert list(own) == list(usual)
    assert len(str(own["timestamp"])) == len(str(usual["timestamp"]))


def test_many_lines_do_not_wait(stream: io.StringIO) -> None:
    timer = Timer()
    journal = Journal(timer.later, lambda: 0.0, "all")
    for _ in range(MOST):
        journal.note(SERVED)

    assert len(written(stream)) == MOST
    timer.ring()
    assert len(written(stream)) == MOST


def test_what_waits_at_the_end_is_written(stream: io.StringIO) -> None:
    journal = Journal(Timer().later, lambda: 0.0, "all")
    journal.note(SERVED)
    journal.flush()

    assert len(written(stream)) == 1


@pytest.mark.parametrize(
    ("which", "draws"),
    [("all", [True, True, True]), ("errors", [False] * 3), ("off", [False] * 3), (0.5, [True, False, True])],
)
def test_which_of_those_that_ended_well_have_a_line(which: Which, draws: list[bool]) -> None:
    dice = iter([0.1, 0.9, 0.2])
    journal = Journal(Timer().later, lambda: next(dice), which)

    assert [journal.draws() for _ in range(3)] == draws


@pytest.mark.parametrize(("which", "lines"), [("off", 0), ("errors", 1), ("all", 1), (0.01, 1)])
def test_an_error_has_a_line_unless_there_are_none_and_is_remembered(
    stream: io.StringIO, which: Which, lines: int
) -> None:
    journal = Journal(Timer().later, lambda: 0.99, which)
    journal.note(REFUSED)
    journal.flush()

    assert len(written(stream)) == lines
    (noted,) = journal.recent
    assert (noted.request_id, noted.code, noted.status, noted.model) == ("r2", "model_not_found", 404, "m")


def test_the_newest_errors_come_first_and_old_ones_go() -> None:
    journal = Journal(Timer().later, lambda: 0.0)
    for number in range(KEPT + 5):
        journal.note(RequestSummary(str(number), "chat", "m", "e", 500, "failed", 1, 0.1, code="c"))
    ids = [noted.request_id for noted in journal.recent]

    assert ids == [str(number) for number in range(KEPT + 4, 4, -1)]


def test_there_are_no_lines_where_only_worse_is_wanted(stream: io.StringIO) -> None:
    logs.set_level("warning")
    journal = Journal(Timer().later, lambda: 0.0, "all")
    journal.note(SERVED)
    journal.flush()

    assert stream.getvalue() == ""


def test_on_a_terminal_people_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    logs.configure(terminal)
    journal = Journal(Timer().later, lambda: 0.0, "all")
    journal.note(REFUSED)
    journal.flush()

    said = terminal.getvalue()
    assert " request " in said
    assert "nERROR forged" in said
    assert said.removesuffix("\n").isprintable()
