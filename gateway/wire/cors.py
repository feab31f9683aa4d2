"""Cross-origin lines for the data path (Fetch standard). The control plane uses Starlette's middleware with the same
names; preflight requests are answered there too.
"""

from collections.abc import Collection
from typing import Final

ALLOWED_HEADERS: Final = ("*", "authorization")
"""``*`` never covers ``authorization`` (Fetch §4.9), so it is named."""

EXPOSED_HEADERS: Final = (
    "x-request-id",
    "retry-after",
    "retry-after-ms",
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
    "x-should-retry",
    "openai-processing-ms",
    "x-turnout-engine",
    "x-turnout-attempts",
    "x-turnout-dropped",
    "x-turnout-translated",
    "x-turnout-fallback",
    "x-turnout-fallback-reason",
)
"""What a script in a browser may read of an answer."""

_LINES: Final = (
    b"access-control-allow-origin: %s\r\nvary: origin\r\naccess-control-expose-headers: "
    + ", ".join(EXPOSED_HEADERS).encode()
    + b"\r\n"
)


def cors_lines(origin: bytes, allowed: Collection[bytes]) -> bytes:
    """The header lines for an answer to a page of ``origin``; b"" if it may not call."""
    if origin in allowed:
        return _LINES % origin
    if b"*" in allowed:
        return _LINES % b"*"
    return b""
