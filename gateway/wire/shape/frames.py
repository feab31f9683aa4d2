"""Events that only add text which a stage reads: nearly all of a stream with tools.

They differ in their text alone, and so does what becomes of them, once the stage has read it. So the text is cut out of
the known bytes, read, and put between the bytes that an event with text of that sort came to before.
"""

from typing import Final

import msgspec

from gateway.wire.shape.chain import Chain
from gateway.wire.shape.stage import Ahead, Place, Stage
from gateway.wire.shape.template import READ_MARKS, Frame, frame_of, parts_of, template_of

_decode = msgspec.json.Decoder(str).decode
_encode: Final = msgspec.json.Encoder().encode


class Frames:
    """The frames of one stream (a `template.Frame`). ``stage`` is the only one of its chain that reads text."""

    __slots__ = ("_ahead", "_before", "_behind", "_end", "_made", "_stage", "_start")

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._ahead: Ahead | None = None
        self._before = b""
        self._behind = b""
        self._start = 0
        self._end = 0
        self._made: dict[Place, tuple[bytes, ...]] = {}

    def learn(self, event: bytes, new: bytes) -> bool:
        """Learns from an event and what it became. Returns whether there was anything to learn."""
        ahead = self._stage.ahead
        if ahead is None or (said := ahead.said) is None or (frame := frame_of(event, READ_MARKS)) is None:
            return False
        place, text = said
        if (parts := parts_of(new, _encode(text)[1:-1], READ_MARKS)) is None:
            return False
        if frame != (self._before, self._behind):
            self._before, self._behind = frame
            self._start, self._end = len(self._before), len(self._behind)
            self._made.clear()
        self._made[place] = parts
        self._ahead = ahead
        return True

    def fill(self, event: bytes) -> bytes | None:
        """What an event becomes; None if it is not one, and one only, whose frame is known."""
        ahead = self._ahead
        end = len(event) - self._end
        start = self._start
        if ahead is None or end <= start or not (event.startswith(self._before) and event.endswith(self._behind)):
            return None
        raw = event[start:end]
        if b"\n" in raw:
            return None
        try:
            text = _decode(b'"%b"' % raw)
        except msgspec.DecodeError:
            return None
        read = ahead.read(text, self._made)
        if not read:
            return None if read is None else b""
        place, new = read[0]
        parts = self._made[place]
        if new != text:
            return _encode(new)[1:-1].join(parts)
        if parts == (self._before, self._behind):
            return event
        return (_encode(text)[1:-1] if b"\\" in raw else raw).join(parts)

    def fill_all(self, events: bytes) -> tuple[bytes, int] | None:
        """Nothing of several: each is read by itself."""
        del events
        return None

    def fill_front(self, events: bytes, last: int) -> tuple[bytes, int, int] | None:
        """As `fill_all`."""
        del events, last
        return None


def learned(chain: Chain | None, known: Frame | None, event: bytes, new: bytes) -> Frame | None:
    """The frame of events like this one, which became ``new``; None if there is nothing to learn from it.

    ``known`` is what was learned before. Where the text is read, what one stage of ``chain`` makes of it can be;
    what several make of it cannot.
    """
    if chain is None or not chain.reads_text:
        return template_of(event, new)
    frames = known if isinstance(known, Frames) else Frames(chain.readers[0]) if len(chain.readers) == 1 else None
    return frames if frames is not None and frames.learn(event, new) else None
