"""The event that only adds text: nearly all of a stream, and every one like the last but for the text.

Once one has gone through everything that is done to events, those with the same bytes around their text need no look.
"""

from collections.abc import Mapping
from typing import Final

from engines.profile import Operation

_MARKS: Final[Mapping[Operation, bytes]] = {
    Operation.CHAT: b'"content":"',
    Operation.COMPLETIONS: b'"text":"',
}
_ROLE: Final = b'"role"'


class Template:
    """The bytes before and after the text: as the engine writes them, and as the client gets them."""

    __slots__ = ("_before", "_behind", "_end", "_new_before", "_new_behind", "_same", "_start")

    def __init__(self, before: bytes, behind: bytes, new_before: bytes, new_behind: bytes) -> None:
        self._before = before
        self._behind = behind
        self._new_before = new_before
        self._new_behind = new_behind
        self._start = len(before)
        self._end = len(behind)
        self._same = before == new_before and behind == new_behind

    def fill(self, event: bytes) -> bytes | None:
        """What an event becomes; None if it is not one, and one only, that fits.

        A quote in the text is escaped, so that the first quote is the end of the text, and the text is all there is.
        """
        if not (event.startswith(self._before) and event.endswith(self._behind)):
            return None
        start = self._start
        end = len(event) - self._end
        if end <= start or event.find(b'"', start) != end or event.find(b"\n", start, end) >= 0:
            return None
        if self._same:
            return event
        if event.find(b"\\", start, end) >= 0:  # escapes may be spelled anew
            return None
        return self._new_before + event[start:end] + self._new_behind


def template_of(event: bytes, new: bytes, operation: Operation) -> Template | None:
    """What one event and what it became say about others; None if it is not of the common sort."""
    mark = _MARKS.get(operation)
    if mark is None or event.count(mark) != 1 or new.count(mark) != 1 or _ROLE in new:
        return None
    if not event.startswith(b"data: ") or event.count(b"\n") != 2 or new.count(b"\n") != 2 or b"\r" in event:
        return None
    start = event.find(mark) + len(mark)
    end = event.find(b'"', start)
    text = event[start:end]
    new_start = new.find(mark) + len(mark)
    if not text or b"\\" in text or not new.startswith(text + b'"', new_start):
        return None
    return Template(event[:start], event[end:], new[:new_start], new[new_start + len(text) :])
