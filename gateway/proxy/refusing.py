"""Requests that are refused before they are whole: no exchange serves them, and yet they are told of."""

from gateway.errors import ApiError
from gateway.logs import RequestSummary
from gateway.proxy.downstream import Inbound
from gateway.proxy.plane import Plane


def note_refusal(plane: Plane, inbound: Inbound, request_id: bytes, error: ApiError) -> None:
    """Tells the journal of a wrong key, of too long a body, of what is not HTTP."""
    if plane.journal is None:
        return
    plane.journal.note(
        RequestSummary(
            request_id=request_id.decode(),
            operation=inbound.operation.value,
            model="",
            engine="",
            status=error.status,
            outcome="rejected",
            attempts=0,
            seconds=0.0,
            code=error.code or error.type,
            message=error.brief,
            key="" if inbound.caller is None else inbound.caller.name,
        )
    )
