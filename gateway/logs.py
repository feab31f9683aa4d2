"""What the gateway says about itself: lines for people on a terminal, JSON lines everywhere else.

One set-up for our own events (structlog) and for what libraries log (uvicorn, asyncio, warnings). Nothing here, or in
any call of it, ever holds prompt text, answers, or secrets.
"""

import json
import logging
import os
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final, TextIO, TypeAlias

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

CUT_ON_PURPOSE: Final = "ASGI callable returned without completing response."
"""What uvicorn says when a stream is cut after its error event; that is how a broken stream has to end."""

QUIET: Final = ("uvicorn", "uvicorn.error", "uvicorn.access", "httpx2", "httpcore2", "asyncio")
"""Libraries of which only warnings are of interest. A level of their own also spares uvicorn its trace lines."""


@dataclass(frozen=True, slots=True)
class RequestSummary:
    """One finished request to a forwarded path, for the access log. Times in seconds.

    ``status`` is what the client got, 0 if it left before that. ``engine`` is "" when no engine was reached,
    ``first_token`` is None for answers that are not streamed.
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


Observer: TypeAlias = Callable[[RequestSummary], None]


def configure(stream: TextIO, level: int = logging.INFO) -> None:
    """Sends every event from here on to ``stream``, one line each (a traceback has more, on a terminal only)."""
    pretty = stream.isatty()
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S" if pretty else "iso", utc=not pretty),
    ]
    after: list[Processor] = [structlog.processors.format_exc_info]
    if pretty:
        colors = not os.environ.get("NO_COLOR")
        after += [_escape_controls, structlog.dev.ConsoleRenderer(colors=colors, pad_event_to=0)]
    else:
        after.append(_as_json)
    structlog.configure(
        processors=[*before, *after],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    _configure_libraries(stream, level, before, after)


def _configure_libraries(stream: TextIO, level: int, before: list[Processor], after: list[Processor]) -> None:
    sink = logging.StreamHandler(stream)
    sink.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*before, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *after],
        )
    )
    root = logging.getLogger()
    root.handlers = [sink]
    root.setLevel(level)
    for name in QUIET:
        logger = logging.getLogger(name)
        logger.handlers = []
        logger.setLevel(max(level, logging.WARNING))
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    logging.captureWarnings(capture=True)


def _is_news(record: logging.LogRecord) -> bool:
    return record.msg != CUT_ON_PURPOSE


def printable(text: str) -> str:
    """``text`` in which control characters are visible: nobody forges a line, or moves the cursor of a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _escape_controls(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    for key, value in event.items():
        if isinstance(value, str):
            lines = value.split("\n") if key == "exception" else (value,)
            event[key] = "\n".join(map(printable, lines))
    return event


def _as_json(_logger: WrappedLogger, _method: str, event: MutableMapping[str, Any]) -> str:
    first = {key: event[key] for key in ("timestamp", "level", "event") if key in event}
    return json.dumps(first | dict(event), default=str)


def access_log() -> Observer:
    """An observer that writes one line per finished request."""
    log = structlog.get_logger()

    def observe(summary: RequestSummary) -> None:
        log.info("request", **_fields(summary))

    return observe


def _fields(summary: RequestSummary) -> Mapping[str, object]:
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
    return fields | {"input_tokens": summary.input_tokens, "output_tokens": summary.output_tokens}
