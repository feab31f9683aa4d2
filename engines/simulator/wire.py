"""What a simulated frontend gives back for one request: a finished reply, or work that takes the engine time."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol, TypeAlias

Frames: TypeAlias = tuple[bytes, ...]
"""Stream events; each is sent as one HTTP chunk."""

DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Request:
    """A complete request. Header names are lower case; of repeated headers the last counts."""

    method: str
    path: str
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    body: bytes = b""

    def header(self, name: bytes) -> str:
        """The header's value, "" when it is absent."""
        return self.headers.get(name, b"").decode("latin-1")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that needs no engine."""

    status: int = 200
    body: bytes = b""
    content_type: bytes | None = b"application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """What a client sees when the engine fails during this work."""

    reply: Reply
    """In place of an answer that is not streamed."""
    frames: Frames = ()
    """At the end of a stream."""
    cut: bool = False
    """A stream ends in a closed connection, without a last chunk."""


@dataclass(frozen=True, slots=True)
class Work:
    """An accepted generation, rendered in advance: what will be sent, and how many engine steps it takes."""

    model: str
    prompt_tokens: int
    tokens: int
    """Generated tokens of all choices."""
    finish: str
    failure: Failure
    body: bytes | None = None
    """The whole answer; None for a stream."""
    steps: Sequence[Frames] = ()
    """Events of each engine step. Only their number counts when the answer is not streamed."""
    opening: Frames = ()
    """Sent before the engine has begun."""
    closing: Frames = ()
    fails_at: int | None = None
    """The step at which the script lets the engine fail."""


class Leaving(Enum):
    """What the engine does with a request whose client is gone."""

    ABORT = auto()
    """Ends it at once (vLLM: `wire_disconnect_stream`)."""
    ABORT_ON_POLL = auto()
    """Looks once a second (trtllm-serve)."""
    RUN_ON = auto()
    """Generates to the end for nobody (Triton: `client_disconnect_stream`)."""


class Frontend(Protocol):
    """One engine's way of speaking. It does no input or output of its own."""

    leaving: Leaving
    headers: tuple[tuple[bytes, bytes], ...]
    """On every answer."""

    def respond(self, request: Request, *, unhealthy: bool) -> Reply | Work:
        """The answer to one request, which may be an error in the engine's own shape."""

    def refusal(self) -> Reply | None:
        """The answer when the queue is full; None for an engine that queues without a limit."""

    def fault(self, status: int) -> Reply:
        """An error reply with this status in the engine's own shape."""


def dumps(value: object) -> bytes:
    """Compact JSON as all three engines write it: no blanks, characters as UTF-8."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def event(value: object) -> bytes:
    """One stream event."""
    return b"data: " + dumps(value) + b"\n\n"


def reply(status: int, value: object, *headers: tuple[bytes, bytes]) -> Reply:
    """A JSON reply."""
    return Reply(status, dumps(value), headers=headers)


NOT_FOUND = reply(404, {"detail": "Not Found"})


def wrong_method(allowed: str) -> Reply:
    """The frameworks' answer to a known path with another method."""
    return reply(405, {"detail": "Method Not Allowed"}, (b"allow", allowed.encode()))
