"""The header blocks of answers: ready bytes, with the same names on every one (CONTRACT §4)."""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from engines.profile import Operation
from gateway.errors import ApiError
from gateway.wire import anthropic

EVENT_STREAM: Final = b"text/event-stream; charset=utf-8"
JSON: Final = b"application/json"

BLOCK: Final = b"content-type: %s\r\nx-request-id: %s\r\nopenai-processing-ms: %d\r\n%s"
"""The lines that every answer has: type, request id, milliseconds, and more lines."""

_ENGINE: Final = b"x-turnout-engine: %s\r\nx-turnout-attempts: %d\r\n"
NO_ATTEMPT: Final = b"x-turnout-attempts: 0\r\n"
"""In the place of engine and attempts where no engine was asked."""

STREAM_LINES: Final = b"cache-control: no-cache\r\nx-accel-buffering: no\r\n"
"""Asks middle boxes not to hold events back."""

REQUEST_ID: Final = b"request-id: %s\r\n"
"""Where Anthropic's SDKs look for the id."""

_HALF_AN_ESCAPE: Final = re.compile(r"%.?\Z")
_VISIBLE: Final = "!\"#$&'()*+,/:;<=>?@[\\]^`{|}"
"""What may stand in a model's name as it is, beside letters, digits and `_.-~`."""
_NAME_LIMIT: Final = 64
_NAMES_LIMIT: Final = 32


def block(content_type: bytes, request_id: bytes, seconds: float, more: bytes) -> bytes:
    """`BLOCK`, filled."""
    return BLOCK % (content_type, request_id, seconds * 1000.0, more)


def refusal(error: ApiError, operation: Operation, request_id: bytes, echo: bytes) -> bytes:
    """The lines of an answer to a request that was never served."""
    more = error_lines(error) + NO_ATTEMPT
    if operation in anthropic.ANTHROPIC:
        more += REQUEST_ID % request_id
    return block(JSON, request_id, 0.0, more + echo)


def error_body(error: ApiError, operation: Operation, request_id: bytes) -> bytes:
    """The body of an error, in the shape that the operation's clients know."""
    return anthropic.error_body(error, request_id) if operation in anthropic.ANTHROPIC else error.body()


def engine_lines(engine: bytes, attempts: int) -> bytes:
    """Who answered, and after how many attempts."""
    return _ENGINE % (engine, attempts)


def told(dropped: Sequence[str], translated: Sequence[str]) -> bytes:
    """What the engine's profile changed in the request."""
    lines = b""
    if dropped:
        lines += b"x-turnout-dropped: %s\r\n" % _listed(dropped)
    if translated:
        lines += b"x-turnout-translated: %s\r\n" % _listed(translated)
    return lines


def _listed(names: Sequence[str]) -> bytes:
    """The names as a header value, odd characters as in URLs (`%C3%A9`), so that a client can have its names back.

    They are a client's: they may hold line ends, or fill megabytes.
    """
    shown = [_escaped(name) for name in names[:_NAMES_LIMIT] if name]
    if len(names) > _NAMES_LIMIT:
        shown.append("...")
    return ", ".join(shown).encode()


def _escaped(name: str) -> str:
    """A name in at most `_NAME_LIMIT` characters that end no line and no item."""
    return _HALF_AN_ESCAPE.sub("", quote(name[:_NAME_LIMIT], safe="", errors="replace")[:_NAME_LIMIT])


def fallback_lines(model: str, cause: str) -> bytes:
    """Which other model answered, and why."""
    return b"x-turnout-fallback: %s\r\nx-turnout-fallback-reason: %s\r\n" % (
        quote(model, safe=_VISIBLE, errors="replace").encode(),
        cause.encode(),
    )


def error_lines(error: ApiError) -> bytes:
    """What tells a client whether and when to come again."""
    lines = b""
    if error.retry_after is not None:
        lines += b"retry-after: %d\r\n" % max(1, round(error.retry_after + 0.4999))
    if error.should_retry is not None:
        lines += b"x-should-retry: true\r\n" if error.should_retry else b"x-should-retry: false\r\n"
    return lines + error.lines
