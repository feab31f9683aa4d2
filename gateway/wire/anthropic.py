"""Errors as Anthropic's API spells them, for its clients (CONTRACT §5).

The HTTP status stays the one that every other path gives: a full engine is 503 here too, not Anthropic's own 529, which
middle boxes do not know. Their SDKs and Claude Code come again for both, and obey ``retry-after`` and
``x-should-retry``.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from engines.profile import Operation
from gateway.errors import ApiError, ContextLengthExceeded

ANTHROPIC: Final = frozenset({Operation.MESSAGES, Operation.COUNT_TOKENS})
"""Operations that Anthropic's clients ask for."""

TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""By status; every other status below 500 is ``invalid_request_error``, every other one ``api_error``."""

TOO_LONG: Final = "prompt is too long: "
"""How Anthropic's own message begins; Claude Code compacts its conversation when it reads this."""


def error_type(status: int) -> str:
    """Anthropic's type of an error with this status."""
    return TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")


def error_body(error: ApiError, request_id: bytes | None = None) -> bytes:
    """The JSON document of an error."""
    message = TOO_LONG + error.message if isinstance(error, ContextLengthExceeded) else error.message
    document: dict[str, object] = {
        "type": "error",
        "error": {"type": error_type(error.status), "message": message},
    }
    if request_id is not None:
        document["request_id"] = request_id.decode()
    return msgspec.json.encode(document)


def error_event(error: ApiError) -> bytes:
    """The event that ends a broken stream."""
    return b"event: error\ndata: " + error_body(error) + b"\n\n"
