"""Which headers travel, and what a clean request id is.

Both directions have an allow-list: a header that is not named here stays on its side. That keeps hop-by-hop headers,
credentials and cookies from crossing without naming each of them.
"""

import re
from typing import Final

FORWARDED_TO_ENGINE: Final = frozenset({b"traceparent", b"tracestate"})
"""Request headers that are sent on as they are (W3C Trace Context)."""

REQUEST_ID: Final = b"x-request-id"
_CLEAN_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}\Z")
_VALUE = re.compile(rb"[\x20-\x7e\t]*\Z")


def clean_request_id(value: bytes | None) -> bytes | None:
    """The client's own id when it is safe to repeat in headers and logs, else None.

    vLLM puts the id into every event, whatever its length or characters (engines/vllm.md §3.3), so at most 128 plain
    characters are taken.
    """
    if value is not None and _CLEAN_ID.match(value):
        return value
    return None


def forwardable(value: bytes) -> bool:
    """Whether a header value may be written into a request of ours: printable ASCII, no line ends."""
    return _VALUE.match(value) is not None
