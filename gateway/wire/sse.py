"""Server-sent events as bytes: cut a stream into events, whatever the packets' borders.

The rule of this file: an event is never decoded to text, so a character split over two packets cannot be harmed.
Line ends may be LF, CRLF or CR (WHATWG HTML §9.2.6); an event ends at an empty line.
"""

import re
from typing import Final

DONE: Final = b"data: [DONE]\n\n"
_BLANK_LINE = re.compile(rb"\r\n\r\n|\n\n|\r\r|\n\r\n|\r\n\n")
_LINE = re.compile(rb"\r\n|\n|\r")
_BOM: Final = b"\xef\xbb\xbf"


class EventCutter:
    """Collects bytes and gives back whole events, each with its closing blank line as it was sent.

    ``limit`` bounds what is held for an unfinished event, in bytes; OverflowError is raised above it.
    """

    __slots__ = ("_begun", "_held", "limit")

    def __init__(self, limit: int = 16 * 1024 * 1024) -> None:
        self._held = b""
        self._begun = False
        self.limit = limit

    @property
    def empty(self) -> bool:
        """True when no part of an event is held."""
        return not self._held

    def feed(self, data: bytes) -> list[bytes]:
        """The events that ``data`` completes, in order."""
        if not self._begun:
            data = self._held + data
            self._held = b""
            if len(data) < len(_BOM) and _BOM.startswith(data):
                self._held = data
                return []
            self._begun = True
            data = data.removeprefix(_BOM)
        # A blank line may lie across the border, so the search starts three bytes back.
        start = max(0, len(self._held) - 3)
        buffer = self._held + data
        events = []
        begin = 0
        while (match := _BLANK_LINE.search(buffer, max(start, begin))) is not None:
            end = match.end()
            if match.group() == b"\r\r" and end == len(buffer):
                break  # the LF of a CRLF may still come
            events.append(buffer[begin:end])
            begin = end
        self._held = buffer[begin:]
        if len(self._held) > self.limit:
            raise OverflowError("an event is larger than the gateway holds")
        return events

    def rest(self) -> bytes:
        """What is left when the stream has ended: an event without its blank line."""
        held, self._held = self._held, b""
        return held


def event_data(event: bytes) -> bytes | None:
    """The payload of an event: its ``data`` lines joined by LF; None for comments and events without data."""
    if event.startswith(b"data: ") and event.endswith(b"\n\n") and event.count(b"\n") == 2 and b"\r" not in event:
        return event[6:-2]
    found = None
    for line in _LINE.split(event):
        if line == b"data":
            value = b""
        elif line.startswith(b"data:"):
            value = line[5:]
            value = value.removeprefix(b" ")
        else:
            continue
        found = value if found is None else found + b"\n" + value
    return found


def with_data(data: bytes) -> bytes:
    """An event that carries one line of data."""
    return b"data: " + data + b"\n\n"


def with_new_data(event: bytes, data: bytes) -> bytes:
    """The event with one line of other data; its ``event`` lines stay."""
    if event.startswith(b"data:"):
        return b"data: " + data + b"\n\n"
    kept = [line for line in _LINE.split(event) if line.startswith(b"event:")]
    return b"\n".join([*kept, b"data: " + data]) + b"\n\n"


def without_noise(event: bytes) -> bytes:
    """The event with only its ``data`` and ``event`` lines, each ended by LF, or b"" if it has no data.

    ``id:`` lines are never sent on: with one seen, openai-python dispatches an empty event at the next blank line
    and fails on it (cases.md A5). Comments and ``retry:`` mean nothing to a client of this API.
    """
    if event.startswith(b"data:") and event.count(b"\n") == 2 and event.endswith(b"\n\n") and b"\r" not in event:
        return event
    kept = [line for line in _LINE.split(event) if line.startswith((b"data:", b"event:")) or line == b"data"]
    if all(line.startswith(b"event:") for line in kept):
        return b""
    return b"\n".join(kept) + b"\n\n"
