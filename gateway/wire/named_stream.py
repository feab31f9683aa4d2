"""A stream of named events on its way from an engine to a client: the Responses API, and Anthropic's Messages API.

Rules of this file:

- a packet of whole events in which nothing has to change leaves as the object that came in, unparsed;
- ``event`` lines stay; comments, ``id:`` and ``retry:`` lines, and a ``[DONE]``, which these APIs do not have, do not;
- a stream is whole when its closing event has come (``response.completed``, ``message_stop``), and only then;
- what says that the answer failed is never passed on: it is kept for the exchange, which decides what the client may
  read. That includes ``response.failed``: it is no success, whatever the HTTP status was (cases.md 73).

The first events say only that the engine has read the request (vLLM sends them before its model has begun: recording
``responses_stream``). They are held until one comes that says more, and while they are held another replica can serve.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from engines.profile import Operation
from gateway.errors import ApiError
from gateway.wire import anthropic
from gateway.wire.answer import AnswerNames, Usage
from gateway.wire.passed import Tokens, name_model, read_members, read_tokens
from gateway.wire.sse import EventCutter, event_data, with_data, without_noise

_NULL: Final = msgspec.Raw(b"null")
_SEQUENCE: Final = b'"sequence_number":'
_DIGITS: Final = 12


class _Event(msgspec.Struct):
    type: str = ""
    response: msgspec.Raw = _NULL
    message: msgspec.Raw = _NULL
    usage: msgspec.Raw = _NULL
    error: msgspec.Raw = _NULL


_decode_event = msgspec.json.Decoder(_Event).decode


@dataclass(slots=True, eq=False)
class Told:
    """What a stream has told so far that its farewell repeats."""

    own_id: bytes
    model: msgspec.Raw | None = None
    id: msgspec.Raw | None = None
    created_at: msgspec.Raw | None = None
    last: bytes = b""
    """The last packet or event that was passed on."""

    @property
    def sequence_number(self) -> int:
        """The number that the next event has."""
        at = self.last.rfind(_SEQUENCE) + len(_SEQUENCE)
        if at < len(_SEQUENCE):
            return 0
        digits = self.last[at : at + _DIGITS].lstrip()
        end = next((i for i, byte in enumerate(digits) if not 0x30 <= byte <= 0x39), len(digits))
        return int(digits[:end]) + 1 if end else 0


def response_failed(error: ApiError, told: Told) -> bytes:
    """The closing event of a response that broke off.

    The event is the API's own, which Codex understands; OpenAI's SDKs raise for the ``error`` beside it.
    """
    document = {
        "type": "response.failed",
        "sequence_number": told.sequence_number,
        "response": {
            "id": told.id or f"resp_{told.own_id.decode()}",
            "object": "response",
            "created_at": told.created_at,
            "status": "failed",
            "error": {"code": error.code or error.type, "message": error.message},
            "incomplete_details": None,
            "model": told.model,
            "output": [],
            "usage": None,
        },
        "error": {"message": error.message, "type": error.type, "param": error.param, "code": error.code},
    }
    return b"event: response.failed\ndata: " + msgspec.json.encode(document) + b"\n\n"


@dataclass(frozen=True, slots=True)
class NamedEvents:
    """What the events of one API mean, by their ``type``."""

    openings: frozenset[str]
    """Say only that the request has been read."""
    ends: frozenset[str]
    """Close an answer that is whole."""
    failures: frozenset[str]
    marks: tuple[bytes, ...]
    """A packet without these bytes holds no event that has to be read."""
    farewell: Callable[[ApiError, Told], bytes]


NAMED: Final[Mapping[Operation, NamedEvents]] = {
    Operation.RESPONSES: NamedEvents(
        openings=frozenset({"response.created", "response.queued", "response.in_progress"}),
        ends=frozenset({"response.completed", "response.incomplete"}),
        failures=frozenset({"response.failed", "error"}),
        marks=(b'"response":', b'"error"'),
        farewell=response_failed,
    ),
    Operation.MESSAGES: NamedEvents(
        openings=frozenset({"message_start", "ping"}),
        ends=frozenset({"message_stop"}),
        failures=frozenset({"error"}),
        marks=(b'"message_', b'"error"'),
        farewell=lambda error, _: anthropic.error_event(error),
    ),
}


class NamedStream:
    """Takes the engine's bytes and gives the client's, as `gateway.wire.stream.StreamRelay` does for chunks.

    ``committed`` turns true when something worth sending is there; until then ``feed`` returns b"".
    ``error`` holds the JSON of what failed, after which nothing more is given.
    """

    __slots__ = (
        "_cutter",
        "_events",
        "_fast",
        "_held",
        "_names",
        "_said",
        "_tokens",
        "committed",
        "done",
        "error",
        "events",
        "told",
    )

    def __init__(self, events: NamedEvents, names: AnswerNames, own_id: bytes) -> None:
        """``own_id`` is the unique part of the id that a farewell has when the engine gave none."""
        self._events = events
        self._names = names
        self._cutter = EventCutter()
        self._fast = False
        self._held = b""
        self._said = False
        self._tokens = Tokens()
        self.told = Told(own_id, names.model_json)
        self.committed = False
        self.done = False
        self.error: bytes | None = None
        self.events = 0

    @property
    def usage(self) -> Usage | None:
        """What the stream reported at its end."""
        tokens = self._tokens
        return None if tokens.output_tokens is None else Usage(tokens.input_tokens or 0, tokens.output_tokens)

    def feed(self, data: bytes) -> bytes:
        """What ``data`` adds to the client's stream. Raises OverflowError for an event without end."""
        if self._fast and data[:7] == b"event: " and data[-2:] == b"\n\n":
            count = data.count(b"\ndata: ")
            if 3 * count == data.count(b"\n") and data.count(b"\n\nevent: ") == count - 1 and self._is_plain(data):
                self.events += count
                self.told.last = data
                return data
        return self._feed_slowly(data)

    def end(self, expected: int = 0) -> bytes | None:
        """The engine has ended its answer properly. What is left to send, or None if the answer is not whole."""
        del expected  # only chunks of chat are counted
        rest = self._cutter.rest()
        tail = b""
        if rest.strip() and not self.done:
            tail = self._release(self._take(rest.rstrip(b"\r\n") + b"\n\n"))
        return tail if self.done else None

    def _is_plain(self, data: bytes) -> bool:
        """Whether no event of the packet has to be read."""
        for mark in self._events.marks:
            if mark in data:
                return False
        return b"\r" not in data

    def _feed_slowly(self, data: bytes) -> bytes:
        events = self._cutter.feed(data)
        if not events:
            self._fast = False
            return b""
        out = self._release(b"".join([self._take(event) for event in events]))
        self._fast = self.committed and self._cutter.empty and not self.done and self.error is None
        return out

    def _release(self, out: bytes) -> bytes:
        if self.committed or not out:
            return out
        if not self._said:
            self._held += out
            return b""
        self.committed = True
        held, self._held = self._held, b""
        return held + out

    def _take(self, event: bytes) -> bytes:
        """One event of the engine as the client shall see it, b"" for none."""
        if self.done or self.error is not None:
            return b""
        data = event_data(event)
        if data is None or not (stripped := data.strip()) or stripped == b"[DONE]":
            return b""
        try:
            read = _decode_event(data)
        except (msgspec.DecodeError, RecursionError):
            return self._pass(without_noise(event))  # not of the expected shape: not ours to judge, and not to lose
        if read.type in self._events.failures or bytes(read.error) != b"null":
            self.error = _what_failed(read, data)
            return b""
        self._said = self._said or read.type not in self._events.openings
        self.done = read.type in self._events.ends
        return self._pass(self._spell(event, data, read))

    def _pass(self, event: bytes) -> bytes:
        self.events += 1
        self.told.last = event
        return event

    def _spell(self, event: bytes, data: bytes, read: _Event) -> bytes:
        """Sets the model's name right in the object that some events hold, and notes what it tells."""
        opening = read.type in self._events.openings
        self._note_usage(read.usage, opening=opening)
        for name, raw in (("response", read.response), ("message", read.message)):
            inner = read_members(raw)
            if inner is None:
                continue
            self.told.id = inner.get("id", self.told.id)
            self.told.created_at = inner.get("created_at", self.told.created_at)
            self._note_usage(inner.get("usage"), opening=opening)
            renamed = name_model(inner, self._names)
            outer = read_members(data)
            if renamed is not None and outer is not None:
                outer[name] = msgspec.Raw(msgspec.json.encode(renamed))
                return _with_data(event, msgspec.json.encode(outer))
        return without_noise(event)

    def _note_usage(self, raw: msgspec.Raw | None, *, opening: bool) -> None:
        """Keeps the newest counts. What opens a message tells its input, and an output of 0 that means nothing."""
        new, old = read_tokens(raw), self._tokens
        self._tokens = Tokens(
            old.input_tokens if new.input_tokens is None else new.input_tokens,
            old.output_tokens if new.output_tokens is None or opening else new.output_tokens,
        )


def farewell(operation: Operation, error: ApiError, relay: object, own_id: bytes) -> bytes:
    """The event that ends a stream which broke; ``relay`` is what has read it, if anything has.

    ``own_id`` is the unique part of the id that it has when the engine gave none.
    """
    named = NAMED.get(operation)
    if named is None:
        return with_data(error.body())
    return named.farewell(error, relay.told if isinstance(relay, NamedStream) else Told(own_id))


def _what_failed(read: _Event, data: bytes) -> bytes:
    """The error as engines answer it over HTTP, for the profile to read."""
    response = read_members(read.response)
    if response is None or "error" not in response:
        return data
    return msgspec.json.encode({"error": response["error"]})


def _with_data(event: bytes, data: bytes) -> bytes:
    """The event with its name and one line of other data."""
    kept = [line for line in without_noise(event).split(b"\n") if line.startswith(b"event:")]
    return b"\n".join([*kept, b"data: " + data]) + b"\n\n"
