"""What becomes of requests when they have ended: a line in the log for some of them, and the errors of late.

Lines are gathered and written together, a few times a second: what a line costs is its text, not a call to the system.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

import structlog

from gateway.logs.recent import Noted, RecentErrors
from gateway.logs.setup import LEVELS, Sink, level

Which: TypeAlias = Literal["off", "errors", "all"] | float
"""Which requests have a line: none, those that ended in an error, all, or this share of those that did not."""

MOST: Final = 256
"""Lines that may wait."""

WAIT: Final = 0.2
"""Seconds that they may."""


@dataclass(frozen=True, slots=True)
class RequestSummary:
    """One finished request to a forwarded path. Times in seconds.

    ``status`` is what the client got, 0 if it left before that. ``engine`` is "" when no engine was reached,
    ``first_token`` is None for answers that are not streamed. ``code`` and ``message`` are what the client was told of
    an error. ``prompt`` is there for models that have theirs logged, ``key`` (its name) where keys are asked for.
    """

    request_id: str
    operation: str
    model: str
    engine: str
    status: int
    outcome: str
    attempts: int
    seconds: float
    first_token: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    code: str = ""
    message: str = ""
    prompt: str = ""
    key: str = ""


Later: TypeAlias = Callable[[float, Callable[[], None]], object]
"""Has something done in so many seconds, as `loop.call_later`."""


class Journal:
    """Takes note of finished requests. ``later`` is what gives a batch its end, ``rng`` draws samples."""

    __slots__ = ("_batch", "_due", "_later", "_rng", "recent", "which")

    def __init__(self, later: Later, rng: Callable[[], float], which: Which = "off") -> None:
        self.which: Which = which
        self.recent = RecentErrors()
        self._later = later
        self._rng = rng
        self._batch: list[tuple[float, RequestSummary]] = []
        self._due = False

    def draws(self) -> bool:
        """Whether a request that ended without an error gets a line."""
        return self.which == "all" or (isinstance(self.which, float) and self._rng() < self.which)

    def note(self, summary: RequestSummary) -> None:
        """A request has ended, in an error or drawn to have a line."""
        now = time.time()
        if summary.code:
            self.recent.note(_noted(summary, now))
        if self.which == "off":
            return
        self._batch.append((now, summary))
        if len(self._batch) >= MOST:
            self.flush()
        elif not self._due:
            self._due = True
            self._later(WAIT, self.flush)

    def flush(self) -> None:
        """Writes the lines that wait."""
        self._due = False
        batch, self._batch = self._batch, []
        sink = structlog.get_config()["logger_factory"]
        if not isinstance(sink, Sink) or sink.pretty:
            for _, summary in batch:
                structlog.get_logger().info("request", **_fields(summary))
        elif batch and LEVELS[level()] <= LEVELS["info"]:
            sink.write([_line(at, summary) for at, summary in batch])


def _line(at: float, summary: RequestSummary) -> str:
    """The line that the log's own way would lead to, for a fraction of the cost."""
    stamp = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
    return json.dumps({"timestamp": stamp, "level": "info", "event": "request"} | _fields(summary))


def _fields(summary: RequestSummary) -> dict[str, object]:
    fields: dict[str, object] = {
        "id": summary.request_id,
        "operation": summary.operation,
        "model": summary.model,
        "engine": summary.engine,
        "status": summary.status,
        "outcome": summary.outcome,
        "attempts": summary.attempts,
        "ms": round(summary.seconds * 1000.0, 1),
    }
    if summary.first_token is not None:
        fields["first_token_ms"] = round(summary.first_token * 1000.0, 1)
    fields |= {"input_tokens": summary.input_tokens, "output_tokens": summary.output_tokens}
    more: Mapping[str, str] = {
        "key": summary.key,
        "code": summary.code,
        "error": summary.message,
        "prompt": summary.prompt,
    }
    return fields | {key: value for key, value in more.items() if value}


def _noted(summary: RequestSummary, at: float) -> Noted:
    return Noted(
        at=round(at, 3),
        request_id=summary.request_id,
        operation=summary.operation,
        model=summary.model,
        engine=summary.engine,
        status=summary.status,
        outcome=summary.outcome,
        code=summary.code,
        message=summary.message,
        attempts=summary.attempts,
        ms=round(summary.seconds * 1000.0, 1),
    )
