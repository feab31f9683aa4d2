"""`object` and `created`: what every answer of OpenAI's has, should an engine leave it out."""

from collections.abc import Mapping, Sequence
from typing import Final

from engines.profile import Operation
from gateway.wire.shape.event import Event, is_null
from gateway.wire.shape.stage import Stage

CHUNK: Final[Mapping[Operation, str]] = {
    Operation.CHAT: "chat.completion.chunk",
    Operation.COMPLETIONS: "text_completion",
}
"""The `object` of a stream's events."""

WHOLE: Final[Mapping[Operation, str]] = {Operation.CHAT: "chat.completion", Operation.COMPLETIONS: "text_completion"}
"""The `object` of an answer that is not streamed."""

_MEMBER: Final = {operation: b'"object":"%s"' % kind.encode() for operation, kind in WHOLE.items()}


class Envelope(Stage):
    """Gives every event of a stream the same `created` (Unix seconds), and its `object`."""

    __slots__ = ("_created", "_kind")

    def __init__(self, kind: str, created: int) -> None:
        self._kind = kind
        self._created = created

    def take(self, event: Event) -> Sequence[Event] | None:
        """The event with both members."""
        return (event,) if complete(event, self._kind, self._created) else None


def has_envelope(body: bytes, operation: Operation) -> bool:
    """Whether a whole answer, written without blanks, has both members; they stand near its beginning or its end."""
    return _MEMBER[operation] in body and b'"created":' in body


def complete(event: Event, kind: str, created: int) -> bool:
    """Sets `object` and a missing `created`. Returns whether anything was changed."""
    changed = False
    given = event.get("object")
    if given != kind and (given is None or bytes(given) != b'"%s"' % kind.encode()):
        event["object"] = kind
        changed = True
    if is_null(event.get("created")):
        event["created"] = created
        changed = True
    return changed
