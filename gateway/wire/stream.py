"""A streamed chat or completions answer on its way from an engine to a client.

Rules of this file (CONTRACT §4, cases.md A and B):

- a packet of whole events in which nothing has to change leaves as the object that came in, unparsed;
- ``[DONE]`` leaves exactly once, and never after an error;
- comments, ``id:`` and ``retry:`` lines stay behind;
- an ``error`` event is never passed on: it is kept for the exchange, which decides what the client may read;
- what else is to be put right is for the stages of a chain to say (``gateway.wire.shape``).

A first event that says nothing but ``role: assistant`` is held until the second arrives: some engines fail right after
it (Triton, trtllm-serve), and while it is held another replica can serve.
"""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from gateway.wire.answer import AnswerNames, Usage, find_usage
from gateway.wire.glance import NULL, Glance, glance
from gateway.wire.shape.chain import Chain
from gateway.wire.shape.envelope import CHUNK, Envelope
from gateway.wire.shape.event import Event, read_event
from gateway.wire.shape.frames import Frames, learned
from gateway.wire.shape.template import Frame
from gateway.wire.sse import DONE, EventCutter, event_data, with_new_data, without_noise

_FINISHED: Final = b'"finish_reason":"'
_USAGE: Final = b'"usage":{'
_ERROR: Final = b'"error"'
_DONE_MARK: Final = b"[DONE]"
_FIRST_EVENTS: Final = 4
"""The role, one text that shows that there is an answer, one to learn from, and one to spare."""

_LAST_EVENTS: Final = 3
_LESSONS: Final = 32
_LESSON: Final = 8
"""A stream's events are looked at 32 times at most to learn their frame, and one that is learned counts for 8."""

_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class StreamRelay:
    """Takes the engine's bytes and gives the client's.

    ``committed`` turns true when something worth sending is there; until then ``feed`` returns b"".
    ``error`` holds the JSON of an error event, after which nothing more is given.
    """

    __slots__ = (
        "_carry",
        "_chain",
        "_clock",
        "_compact",
        "_cutter",
        "_fast",
        "_held",
        "_learned",
        "_lessons",
        "_names",
        "_own_id",
        "_substance",
        "_swaps",
        "_template",
        "_usage_at",
        "committed",
        "done",
        "error",
        "events",
        "finished",
    )

    def __init__(
        self, names: AnswerNames, own_id: bytes, chain: Chain | None = None, clock: Callable[[], float] = float
    ) -> None:
        """``own_id`` is the unique part of the id that is used when the engine's may not stay.

        ``chain`` is what else is done to the events, this stream's own. ``clock`` gives Unix seconds.
        """
        self._names = names
        self._own_id = own_id
        self._chain = chain
        self._clock = clock
        self._template: Frame | None = None
        self._lessons = _LESSONS
        self._cutter = EventCutter()
        self._carry = b""
        self._compact = False
        self._fast = False
        self._learned = False
        self._substance = False
        self._held = b""
        self._swaps: tuple[tuple[bytes, bytes], ...] = ()
        self._usage_at = b""
        self.committed = False
        self.done = False
        self.error: bytes | None = None
        self.events = 0
        self.finished = 0

    @property
    def usage(self) -> Usage | None:
        """The last usage that the stream reported."""
        return find_usage(self._usage_at) if self._usage_at else None

    def feed(self, data: bytes) -> bytes:
        """What ``data`` adds to the client's stream. Raises OverflowError for an event without end."""
        if not self._fast:
            return self._feed_first(data) if not self._learned else self._feed_slowly(data)
        if self._carry:
            data = self._carry + data
            self._carry = b""
        if self._template is not None and (filled := self._template.fill(data)) is not None:
            self.events += 1
            return filled
        if data[-2:] != b"\n\n":
            end = data.rfind(b"\n\n") + 2
            if end < 2 or b"\r" in data:
                return self._carry_on(data)
            self._carry = data[end:]
            data = data[:end]
        if self._template is not None and (several := self._template.fill_all(data)) is not None:
            self.events += several[1]
            return several[0]
        if _DONE_MARK not in data and self._passes(data):
            new = self._pass(data)
            if self._lessons > 0:
                self._study(data, new)
            return new
        return self._feed_mixed(data)

    def _feed_first(self, data: bytes) -> bytes:
        """The beginning of the stream: what is learnt from its first events may let the rest of a packet pass."""
        out = b""
        for _ in range(_FIRST_EVENTS):
            end = data.find(b"\n\n") + 2
            if self._template is not None or not 2 <= end < len(data):
                break
            out += self._feed_slowly(data[:end])
            data = data[end:]
        return out + (self.feed(data) if self._fast else self._feed_slowly(data))

    def _carry_on(self, data: bytes) -> bytes:
        """The beginning of an event, and nothing else."""
        if b"\r" in data:
            return self._feed_slowly(data)
        if len(data) > self._cutter.limit:
            raise OverflowError("an event is larger than the gateway holds")
        self._carry = data
        return b""

    def _feed_mixed(self, data: bytes) -> bytes:
        """Whole events, some of which must be looked at: those before the stream's end may pass all the same.

        The last events (finish reason, usage, ``[DONE]``) often come in one packet with many that only add text.
        """
        if self._template is not None and (known := self._template.fill_front(data, _LAST_EVENTS)) is not None:
            passed, number, at = known
            self.events += number
            carry, self._carry = self._carry, b""
            return passed + self._feed_slowly(data[at:] + carry)
        passed = b""
        at = len(data)
        for _ in range(_LAST_EVENTS):
            at = data.rfind(b"\n\n", 0, at - 2) + 2
            if at < 2:
                break
            front = data[:at]
            if _DONE_MARK not in front and self._passes(front):
                passed = self._pass(front)
                data = data[at:]
                break
        carry, self._carry = self._carry, b""
        return passed + self._feed_slowly(data + carry)

    def _passes(self, data: bytes) -> bool:
        """Whether these are plain events of one data line each, none an error, with the names where they should be."""
        lines = data.count(b"\n")
        return (
            data[:6] == b"data: "
            and (lines == 2 or 2 * data.count(b"\n\ndata: ") + 2 == lines)
            and _ERROR not in data
            and (not self._swaps or self._swappable(data, lines >> 1))
            and (self._chain is None or not self._chain.concerns(data))
        )

    def _pass(self, data: bytes) -> bytes:
        self.events += data.count(b"\n") >> 1
        if _USAGE in data:
            self._usage_at = data
        if _FINISHED in data:
            self.finished += data.count(_FINISHED)
        for old, new in self._swaps:
            data = data.replace(old, new)
        return data

    def end(self, expected: int) -> bytes | None:
        """The engine has ended its answer properly. What is left to send, or None if the answer is not whole.

        ``expected`` is the number of choices that must have their finish reason.
        """
        tail = b""
        rest = self._carry + self._cutter.rest()
        if rest.strip() and not self.done:
            tail = self._release(self._take(rest.rstrip(b"\r\n") + b"\n\n"))
        if self.done:
            return tail
        if self.error is not None or self.finished < expected:
            return None
        self.done = self.committed = True
        held, self._held = self._held, b""
        return held + tail + self._flushed() + DONE

    def _feed_slowly(self, data: bytes) -> bytes:
        events = self._cutter.feed(data)
        if not events:
            self._fast = False
            return b""
        out = self._release(b"".join([self._take(event) for event in events]))
        over = self.done or self.error is not None
        self._fast = self._compact and self.committed and self._cutter.empty and not over
        return out

    def _swappable(self, data: bytes, events: int) -> bool:
        """Whether every event has each name to exchange exactly once, spelled as in the first event."""
        return all(data.count(old) == events for old, _ in self._swaps)

    def _release(self, out: bytes) -> bytes:
        if self.committed or not out:
            return out
        if self.events < 2 and not self._substance and not self.done:
            self._held += out
            return b""
        self.committed = True
        held, self._held = self._held, b""
        return held + out

    def _take(self, event: bytes) -> bytes:
        """One event of the engine as the client shall see it, b"" for none."""
        if self.done or self.error is not None:
            return b""
        if self._template is not None and (filled := self._template.fill(event)) is not None:
            self.events += 1
            return filled
        data = event_data(event)
        if data is None or not (stripped := data.strip()):
            return b""
        if stripped == _DONE_MARK:
            self.done = self.events > 0  # the end of nothing is no answer
            return self._flushed() + DONE if self.done else b""
        try:
            read = glance(data)
        except (msgspec.DecodeError, RecursionError):
            return self._take_odd(event, data)
        if read.is_error:
            self.error = data
            return b""
        self._count(read, data)
        new = self._spell(event, data, read)
        if self._lessons > 0 and self.committed and new:
            self._study(event, new)
        return new

    def _take_odd(self, event: bytes, data: bytes) -> bytes:
        """An event that is not of the expected shape: not ours to judge, and not ours to lose."""
        self.events += 1
        try:
            members = _decode_members(data)
        except (msgspec.DecodeError, RecursionError):
            return without_noise(event)
        if bytes(members.get("error", NULL)) != b"null":
            self.error = data
            return b""
        return with_new_data(event, msgspec.json.encode(self._names.apply(members, self._own_id)))

    def _count(self, read: Glance, data: bytes) -> None:
        choices = read.choices
        self.events += 1
        if choices:
            self.finished += sum(1 for choice in choices if choice.finish_reason is not None)
            self._substance = self._substance or any(choice.says_something for choice in choices)
        else:
            self._substance = True
        if find_usage(data) is not None:
            self._usage_at = data

    def _spell(self, event: bytes, data: bytes, read: Glance) -> bytes:
        names = self._names
        if not self._learned:
            self._learned = True
            self._learn(read, data)
        if (parts := self._shaped(data)) is not None:
            return self._written(event, parts)
        if read.model == names.model and names.good_id(read.id):
            return without_noise(event)
        return with_new_data(event, msgspec.json.encode(names.apply(_decode_members(data), self._own_id)))

    def _shaped(self, data: bytes) -> Iterable[Event] | None:
        """What the chain makes of an event, None if it stays as it is."""
        chain = self._chain
        if chain is None or (self._compact and not chain.concerns(data)):
            return None
        try:
            return chain.take(read_event(data))
        except (msgspec.DecodeError, RecursionError):
            return None

    def _written(self, event: bytes, parts: Iterable[Event]) -> bytes:
        names, own_id = self._names, self._own_id
        return b"".join([with_new_data(event, msgspec.json.encode(names.apply(part, own_id))) for part in parts])

    def _flushed(self) -> bytes:
        """What the chain has held back until the end."""
        return b"" if self._chain is None else self._written(b"data:", self._chain.end())

    def _study(self, event: bytes, new: bytes) -> None:
        """Learns what becomes of events that only add text."""
        frame = learned(self._chain, self._template, event, new)
        if frame is None:
            self._lessons -= 1
            return
        self._template = frame
        self._lessons = _LESSONS if isinstance(frame, Frames) else self._lessons - _LESSON

    def _learn(self, read: Glance, data: bytes) -> None:
        """What to exchange in every event of this stream, from its first one."""
        names = self._names
        kind = CHUNK.get(names.operation)
        if self._chain is not None and kind is not None and (read.object != kind or read.created is None):
            self._chain = self._chain.after(Envelope(kind, int(self._clock())))
        swaps = []
        if read.model != names.model:
            swaps.append((b'"model":' + msgspec.json.encode(read.model), names.model_member))
        if not names.good_id(read.id):
            fresh = msgspec.json.encode(f"{names.prefix}{self._own_id.decode()}")
            swaps.append((b'"id":' + msgspec.json.encode(read.id), b'"id":' + fresh))
        self._swaps = tuple(swaps)
        self._compact = b'"choices":[' in data and self._swappable(data, 1)
