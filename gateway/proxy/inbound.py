"""From a request's headers to what an exchange needs of them: the same rules for every carrier."""

from collections.abc import Mapping, Sequence
from typing import Final

from engines.profile import FORWARDED_HEADERS, Operation
from gateway.errors import BodyTooLarge
from gateway.proxy.downstream import Inbound
from gateway.proxy.limits import READ_TIMEOUT, TIMEOUT, read_bound
from gateway.proxy.plane import Plane
from gateway.wire.cors import cors_lines
from gateway.wire.headers import FORWARDED_TO_ENGINE, REQUEST_ID, clean_request_id, forwardable

_ALWAYS: Final = FORWARDED_TO_ENGINE | {
    REQUEST_ID,
    b"origin",
    b"content-type",
    b"content-encoding",
    TIMEOUT,
    READ_TIMEOUT,
}
_OF_INTEREST: Final[Mapping[Operation, frozenset[bytes]]] = {
    operation: _ALWAYS | {name.encode() for name in FORWARDED_HEADERS.get(operation, ())} for operation in Operation
}


COMPRESSED: Final = ("Compressed request bodies are not taken; send plain JSON.", "invalid_encoding")
"""Nothing on the way could read the model's name."""

NOT_JSON: Final = ("The body must be JSON, and content-type say so: application/json.", "unsupported_content_type")
"""What vLLM and OpenAI do; and it keeps out web pages, which may send other types to anybody without being asked."""


def read_headers(plane: Plane, operation: Operation, headers: Sequence[tuple[bytes, bytes]]) -> Inbound:
    """What the headers say. Names are lower case."""
    inbound = Inbound(operation)
    if plane.guard is not None and (caller := plane.guard.caller(operation, headers)) is not None:
        inbound.caller, inbound.priority = caller, caller.priority
    origin = content_type = b""
    of_interest = _OF_INTEREST[operation]
    for name, value in headers:
        if name in plane.session_headers:
            inbound.sessions = {**(inbound.sessions or {}), name: value}
        if name not in of_interest:
            continue
        if name == REQUEST_ID:
            inbound.request_id = clean_request_id(value)
        elif name == b"origin":
            origin = value
            inbound.echo = cors_lines(value, plane.origins)
        elif name == b"content-type":
            content_type = value
        elif name == b"content-encoding":
            inbound.objection = None if value.lower() == b"identity" else COMPRESSED
        elif name in (TIMEOUT, READ_TIMEOUT):
            inbound.bounds = read_bound(inbound.bounds, name, value)
        elif forwardable(value):
            inbound.forward += b"%s: %s\r\n" % (name, value)
    if content_type != b"application/json" and not _means_json(
        content_type, stranger=bool(origin) and not inbound.echo
    ):
        inbound.objection = inbound.objection or NOT_JSON
    return inbound


def _means_json(content_type: bytes, *, stranger: bool) -> bool:
    """Whether a content type lets the body be JSON. None does, unless a page sends it that may not call."""
    kind = content_type.partition(b";")[0].strip().lower()
    if not kind:
        return not stranger
    return kind == b"application/json" or (kind.startswith(b"application/") and kind.endswith(b"+json"))


def too_large(limit: int) -> BodyTooLarge:
    """The refusal of a body over ``limit`` bytes."""
    return BodyTooLarge(f"The request body is larger than the {limit} bytes that this gateway takes.")
