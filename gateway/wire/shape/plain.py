"""Whole chat answers in which nothing can have to change, told by a few searches.

Most answers are so. What is found here need not be taken apart by the stages, which would come to the same end.

An engine writes the members around the text in the same way again and again. So what stood around a text in an answer
that was found plain is remembered: the next one like it is told by comparing, and only its text is searched.
"""

from collections.abc import Sequence
from typing import Final

from gateway.wire.answer import ID_LENGTH, AnswerNames, Usage, find_usage, has_good_head, read_usage

_CONTENT: Final = b'"content":'
_CALLS: Final = b'"tool_calls":[{'
_OBJECT: Final = b'"object":"chat.completion",'
_CREATED: Final = b'"created":'
_REASONING: Final = b'"reasoning'
_NULLS: Final = (b'"reasoning":null', b'"reasoning_content":null')

_AFTER_ID: Final = b'","object":"chat.completion","created":'
_AFTER_ID_LENGTH: Final = len(_AFTER_ID)
_TO_MODEL: Final = _AFTER_ID_LENGTH + 10
"""Bytes from the end of the id to the end of ``created``: Unix seconds have ten digits until the year 2286."""

_LONGEST_ID: Final = 64
_USAGE: Final = b'"usage":{'
_TO_COUNTS: Final = len(_USAGE)
_UNSEEN: Final = b"\0"
"""Stands around no text."""

_BACKSLASH: Final = b"\\"[0]

SURROUNDINGS: Final = 16
"""How many are remembered: one for each finish reason, and some more."""

_LONGEST_SURROUNDINGS: Final = 2048


class Plain:
    """Knows plain answers to calls without tools. ``openers``: what fences reasoning in the content of this model."""

    __slots__ = ("_firsts", "_last", "_openers", "_seen")

    def __init__(self, openers: Sequence[str]) -> None:
        self._openers = tuple(opener.encode() for opener in openers)
        self._firsts = tuple({opener[:1] for opener in self._openers})
        self._seen: set[tuple[bytes, bytes]] = set()
        self._last = (_UNSEEN, b"")

    def usage(self, body: bytes, names: AnswerNames) -> Usage | None:
        """What a plain answer has used: it may go as it is. None means only that the answer must be looked at."""
        start = names.id_starts
        quote = body.find(b'"', start, start + _LONGEST_ID)
        opens = quote + _TO_MODEL
        text = opens + names.opening_length
        if (
            quote < start + ID_LENGTH
            or body[opens:text] != names.opening
            or body[quote : quote + _AFTER_ID_LENGTH] != _AFTER_ID
            or body[:start] != names.prefix_bytes
        ):
            return self._looked_through(body, names)
        end = body.find(b'"', text)
        if body[end - 1] == _BACKSLASH:
            return self._looked_through(body, names)
        for first in self._firsts:
            if body.find(first, text, end) >= 0:
                return self._looked_through(body, names)
        middle, rest = self._last
        at, close = end + len(middle), len(body) - len(rest)
        if body[end:at] != middle or body[close:] != rest:
            at = body.rfind(_USAGE, end) + _TO_COUNTS
            close = body.find(b"}", at) + 1
            if at < end:
                return self._looked_through(body, names)
            middle, rest = body[end:at], body[close:]
            if (middle, rest) not in self._seen:
                return self._learn(body, names, middle, rest)
            self._last = middle, rest
        usage = read_usage(body[at - 1 : close])
        # With an object inside, the text up to the first brace is no JSON.
        return usage if usage is not None else self._looked_through(body, names)

    def _learn(self, body: bytes, names: AnswerNames, middle: bytes, rest: bytes) -> Usage | None:
        """Remembers what stands around the text of an answer, up to its counts and after them, if it is plain."""
        usage = self._looked_through(body, names)
        if usage is not None and len(self._seen) < SURROUNDINGS and len(middle) + len(rest) <= _LONGEST_SURROUNDINGS:
            self._seen.add((middle, rest))
        return usage

    def _looked_through(self, body: bytes, names: AnswerNames) -> Usage | None:
        if not has_good_head(body, names):
            return None
        if _CALLS in body or _CONTENT not in body or _OBJECT not in body or _CREATED not in body:
            return None
        thoughts = body.count(_REASONING)
        if thoughts and thoughts != body.count(_NULLS[0]) + body.count(_NULLS[1]):
            return None
        for opener in self._openers:
            if opener in body:
                return None
        return find_usage(body)
