"""Usage: what a client asked for and no more, and what it tells about the end of an answer."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from engines.profile import Members
from gateway.wire.shape.event import Event, choices_of
from gateway.wire.shape.stage import Stage

_TRUE: Final = b"true"
_DIGITS: Final = 12


class UnaskedUsage(Stage):
    """For streams whose client asked for no usage: OpenAI's have no such member then, and no event for it."""

    __slots__ = ()

    signs = (b'"usage":',)

    def take(self, event: Event) -> Sequence[Event] | None:
        """The event without its usage; nothing if that was all of it."""
        if "usage" not in event:
            return None
        del event["usage"]
        return (event,) if event.get("choices") != [] else ()


class HiddenLength(Stage):
    """For engines that say `stop` where the limit ended the answer: the usage decides. One per stream.

    The event with the finish reason waits for the usage; without one it is sent as it is. `length` wins over
    `tool_calls`. An answer that stopped by itself at its very last token cannot be told apart and counts as cut.
    """

    __slots__ = ("_held", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: list[Event] = []

    def take(self, event: Event) -> Sequence[Event] | None:
        """Holds the finish reason until the usage is known."""
        finishes = any(choice.get("finish_reason") is not None for choice in choices_of(event))
        used = completion_tokens(event.get("usage"))
        if finishes and used is None:
            self._held.append(event)
            return ()
        if used is None or not (finishes or self._held):
            return None
        held, self._held = [*self._held, event], []
        changed = self._decide(held, used)
        return held if changed or len(held) > 1 else None

    def end(self) -> Sequence[Event]:
        """No usage came."""
        held, self._held = self._held, []
        return held

    def concerns_whole(self, data: bytes) -> bool:
        """Every answer has a finish reason."""
        del data
        return True

    def whole(self, answer: Event) -> bool:
        """The same in a whole answer."""
        used = completion_tokens(answer.get("usage"))
        return used is not None and self._decide((answer,), used)

    def _decide(self, events: Iterable[Event], used: int) -> bool:
        if used < self._limit:
            return False
        finished = [choice for event in events for choice in choices_of(event) if choice.get("finish_reason")]
        if len(finished) != 1 or finished[0]["finish_reason"] == "length":
            return False  # with several choices the sum tells nothing about one
        finished[0]["finish_reason"] = "length"
        return True


def completion_tokens(usage: object) -> int | None:
    """The tokens of the answer that a raw `usage` member tells."""
    if not isinstance(usage, msgspec.Raw):
        return None
    try:
        return _decode_usage(usage).completion_tokens
    except msgspec.DecodeError:
        return None


def wants_usage(members: Members) -> bool:
    """Whether a request for a stream asks for its usage."""
    return bytes(_options(members).get("include_usage", b"")) == _TRUE


def asking_usage(members: Members) -> Members:
    """The request members, asking for usage too; the same object if they do."""
    options = _options(members)
    if bytes(options.get("include_usage", b"")) == _TRUE:
        return members
    options["include_usage"] = msgspec.Raw(_TRUE)
    return members | {"stream_options": msgspec.Raw(msgspec.json.encode(options))}


def limit_of(members: Members, names: Iterable[str]) -> int | None:
    """How many tokens an answer may have: the first of these members that is sent."""
    for name in names:
        text = bytes(members.get(name, b"null"))
        if text != b"null":
            return int(text) if text.isdigit() and len(text) <= _DIGITS else None
    return None


def _options(members: Members) -> Members:
    raw = members.get("stream_options")
    if raw is None:
        return {}
    try:
        return _decode_options(raw) or {}
    except msgspec.DecodeError:
        return {}


class _Usage(msgspec.Struct):
    completion_tokens: int | None = None


_decode_usage = msgspec.json.Decoder(_Usage).decode
_decode_options = msgspec.json.Decoder(dict[str, msgspec.Raw] | None).decode
