"""From a request's headers to what an exchange needs of them: the same rules for every carrier."""

from collections.abc import Iterable, Mapping
from typing import Final

from engines.profile import FORWARDED_HEADERS, Operation
from gateway.errors import BodyTooLarge
from gateway.proxy.downstream import Inbound
from gateway.proxy.limits import READ_TIMEOUT, TIMEOUT, read_bound
from gateway.proxy.plane import Plane
from gateway.wire.cors import cors_lines
from gateway.wire.headers import FORWARDED_TO_ENGINE, REQUEST_ID, clean_request_id, forwardable

_ALWAYS: Final = frozenset({REQUEST_ID, b"origin", b"content-encoding", TIMEOUT, READ_TIMEOUT}) | FORWARDED_TO_ENGINE
_OF_INTEREST: Final[Mapping[Operation, frozenset[bytes]]] = {
    operation: _ALWAYS | {name.encode() for name in FORWARDED_HEADERS.get(operation, ())} for operation in Operation
}


def read_headers(plane: Plane, operation: Operation, headers: Iterable[tuple[bytes, bytes]]) -> Inbound:
    """What the headers say. Names are lower case."""
    inbound = Inbound(operation)
    of_interest = _OF_INTEREST[operation]
    for name, value in headers:
        if name in plane.session_headers:
            inbound.sessions = {**(inbound.sessions or {}), name: value}
        if name not in of_interest:
            continue
        if name == REQUEST_ID:
            inbound.request_id = clean_request_id(value)
        elif name == b"origin":
            inbound.echo = cors_lines(value, plane.origins)
        elif name == b"content-encoding":
            inbound.compressed = value.lower() != b"identity"
        elif name in (TIMEOUT, READ_TIMEOUT):
            inbound.bounds = read_bound(inbound.bounds, name, value)
        elif forwardable(value):
            inbound.forward += b"%s: %s\r\n" % (name, value)
    return inbound


def too_large(limit: int) -> BodyTooLarge:
    """The refusal of a body over ``limit`` bytes."""
    return BodyTooLarge(f"The request body is larger than the {limit} bytes that this gateway takes.")
