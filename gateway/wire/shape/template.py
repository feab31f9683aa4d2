"""The event that only adds text: nearly all of a stream, and every one like the last but for the text.

Once one has gone through everything that is done to events, those with the same bytes around their text need no look.
"""

from typing import Final, Protocol

_MARKS: Final = (b'"content":"', b'"text":"', b'"reasoning":"', b'"reasoning_content":"')
READ_MARKS: Final = (*_MARKS, b'"arguments":"')
"""What stands before text that a stage reads."""
_NEAR: Final = 12
"""As many bytes before the text as a name and its quotes have; a longer needle is slow to look for."""

_END: Final = b"\n\n"
_NEVER: Final = (b'"finish_reason":"', b'"usage":{', b"\r")


class Frame(Protocol):
    """What is known about events by the bytes around their text."""

    def fill(self, event: bytes) -> bytes | None:
        """What an event becomes; None if it is not one, and one only, that is known."""

    def fill_all(self, events: bytes) -> tuple[bytes, int] | None:
        """What several whole events become that are all known, and how many they are; else None."""

    def fill_front(self, events: bytes, last: int) -> tuple[bytes, int, int] | None:
        """As `fill_all`, for whole events of which up to ``last`` at their end are not known; and where those begin."""


class Template:
    """The bytes before and behind the text as the engine writes them, and those between which the client gets it."""

    __slots__ = ("_before", "_behind", "_empty", "_end", "_parts", "_quotes", "_same", "_start")

    def __init__(self, before: bytes, behind: bytes, parts: tuple[bytes, ...]) -> None:
        self._before = before
        self._behind = behind
        self._parts = parts
        self._start = len(before)
        self._end = -len(behind)
        self._same = parts == (before, behind)
        self._empty = before[-_NEAR:] + behind[:1]
        self._quotes = before.count(b'"') + behind.count(b'"')

    def fill(self, event: bytes) -> bytes | None:
        """What an event becomes; None if it is not one, and one only, that fits.

        Every quote in the text is escaped, so that the first other quote is its end, and the text is all there is. (A
        backslash before a quote may itself be escaped; but then no JSON has only such quotes up to the end.)
        """
        # Searching by `in` costs twice as much as by `find`: CPython first tries to take what is sought for a number.
        start, end = self._start, self._end
        text = event[start:end]
        if not text or event[:start] != self._before or event[end:] != self._behind or text.find(b"\n") >= 0:
            return None
        if text.find(b'"') >= 0:
            return event if self._same and text.count(b'"') == text.count(b'\\"') else None
        if self._same:
            return event
        return None if text.find(b"\\") >= 0 else text.join(self._parts)  # escapes may be spelled anew

    def fill_all(self, events: bytes) -> tuple[bytes, int] | None:
        """What several whole events become that all fit, and how many they are; None if not all of them fit.

        One that fits has the quotes around its text and no others, so that the sums prove each. (Taking the events
        apart costs more: looking for something as long as a frame begins with a look at all of that, each time.)
        """
        if len(events) < 2 * (self._start - self._end):
            return None  # one at most, which `fill` has seen
        number = events.count(self._before)
        if not (
            number
            and events.count(b"\n") == 2 * number
            and events.count(self._behind) == number
            and events.count(b'"') == self._quotes * number
            and self._empty not in events
            and events.startswith(self._before)
        ):
            return None
        if self._same:
            return events, number
        if b"\\" in events:  # escapes may be spelled anew
            return None
        if len(self._parts) == 2:
            before, behind = self._parts
            return events.replace(self._before, before).replace(self._behind, behind), number
        filled = [self.fill(event + _END) for event in events.split(_END)[:-1]]
        return b"".join([event for event in filled if event is not None]), number

    def fill_front(self, events: bytes, last: int) -> tuple[bytes, int, int] | None:
        """As `fill_all`, for whole events of which up to ``last`` at their end do not fit; and where those begin."""
        at = len(events)
        for _ in range(last):
            at = events.rfind(_END, 0, at - 2) + 2
            if at < 2:
                return None
            if events.startswith(self._behind, at + self._end):
                several = self.fill_all(events[:at])
                return None if several is None else (*several, at)
        return None


def template_of(event: bytes, new: bytes) -> Template | None:
    """What one event and what it became say about others; None if it is not of the common sort."""
    if (frame := frame_of(event)) is None:
        return None
    before, behind = frame
    parts = parts_of(new, event[len(before) : len(event) - len(behind)], _MARKS)
    return None if parts is None else Template(before, behind, parts)


def frame_of(event: bytes, marks: tuple[bytes, ...] = _MARKS) -> tuple[bytes, bytes] | None:
    """The bytes around the text of an event that adds nothing else; None if it is not of that sort."""
    if not event.startswith(b"data: ") or event.count(b"\n") != 2:
        return None
    hole = _hole(event, marks)
    if hole is None or any(sign in event for sign in _NEVER):
        return None
    start, end = hole
    return None if b"\\" in event[start:end] else (event[:start], event[end:])


def parts_of(new: bytes, text: bytes, marks: tuple[bytes, ...]) -> tuple[bytes, ...] | None:
    """The bytes around a text in the one event that the client gets; None where they do not speak for others."""
    if new.count(b"\n") != 2 or b'"role"' in new:
        return None
    parts = []
    at = 0
    for place in _places(new, text, marks):
        parts.append(new[at:place])
        at = place + len(text)
    return (*parts, new[at:]) if parts else None


def _hole(event: bytes, marks: tuple[bytes, ...]) -> tuple[int, int] | None:
    """Where the only text of an event begins and ends."""
    hole = None
    for mark in marks:
        at = event.find(mark)
        if at < 0:
            continue
        start = at + len(mark)
        end = event.find(b'"', start)
        if event.find(mark, start) >= 0 or (end > start and hole is not None):
            return None
        if end > start:
            hole = (start, end)
    return hole


def _places(new: bytes, text: bytes, marks: tuple[bytes, ...]) -> list[int]:
    """Where the text begins in what the client gets, once or under both names of reasoning."""
    found = [(new.find(mark + text + b'"'), len(mark)) for mark in marks]
    return sorted(at + length for at, length in found if at >= 0)
