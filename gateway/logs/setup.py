"""What the gateway says about itself: lines for people on a terminal, JSON lines everywhere else.

One set-up for our own events (structlog) and for what libraries log (uvicorn, asyncio, warnings).
"""

import functools
import json
import logging
import os
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, Final, Literal, TextIO, TypeAlias, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from gateway.logs.lasting import LastingStream

CUT_ON_PURPOSE: Final = "ASGI callable returned without completing response."
"""What uvicorn says when a stream is cut after its error event; that is how a broken stream has to end."""

QUIET: Final = ("uvicorn", "uvicorn.error", "uvicorn.access", "httpx2", "httpcore2", "asyncio")
"""Libraries of which only warnings are of interest. A level of their own also spares uvicorn its trace lines."""


Level: TypeAlias = Literal["debug", "info", "warning", "error"]
LEVELS: Final[Mapping[Level, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
"""What may be left out of the log, by the least that is written."""


class Sink(structlog.WriteLoggerFactory):
    """Where lines go; ``pretty`` if people read them there."""

    def __init__(self, stream: LastingStream, *, pretty: bool) -> None:
        super().__init__(cast("TextIO", stream))  # it writes and flushes, which is all that is asked of it
        self._stream = stream
        self.pretty = pretty

    def write(self, lines: Sequence[str]) -> None:
        """Writes finished lines, all at once."""
        self._stream.write("".join(f"{line}\n" for line in lines))


def configure(stream: TextIO, least: int = logging.INFO) -> None:
    """Sends every event from here on to ``stream``, one line each (a traceback has more, on a terminal only).

    Where lines cannot be written, the next one that can is about how many were lost.
    """
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
    lasting = LastingStream(stream, functools.partial(_lost, (*before[1:], *after)))
    structlog.configure(
        processors=[*before, *after],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=Sink(lasting, pretty=pretty),
        cache_logger_on_first_use=False,
    )
    _configure_libraries(lasting, least, before, after)


def _configure_libraries(stream: LastingStream, least: int, before: list[Processor], after: list[Processor]) -> None:
    sink = logging.StreamHandler(stream)
    sink.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*before, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *after],
        )
    )
    root = logging.getLogger()
    root.handlers = [sink]
    for name in QUIET:
        logging.getLogger(name).handlers = []
    _set_libraries(least)
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    logging.captureWarnings(capture=True)


def _lost(processors: Sequence[Processor], lines: int, why: str) -> str:
    """The line about lines that were lost."""
    what = "1 line of the log was lost" if lines == 1 else f"{lines} lines of the log were lost"
    said: Any = {"event": what, "lines": lines, "reason": why}
    for processor in processors:
        said = processor(None, "warning", said)
    return f"{said}\n"


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


def level() -> Level:
    """The least that is written now."""
    number = logging.getLogger().level
    return next((name for name, least in LEVELS.items() if number <= least), "error")


def set_level(wanted: Level) -> None:
    """Writes less or more from here on, of our own events and of libraries'."""
    number = LEVELS[wanted]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(number))
    _set_libraries(number)


def _set_libraries(number: int) -> None:
    logging.getLogger().setLevel(number)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(number, logging.WARNING))
