"""Whole chat answers in which nothing can have to change, told by a few searches.

Most answers are so. What is found here need not be taken apart by the stages, which would come to the same end.
"""

from collections.abc import Sequence
from typing import Final

from gateway.wire.answer import AnswerNames, has_good_head

_CONTENT: Final = b'"content":'
_CALLS: Final = b'"tool_calls":[{'
_OBJECT: Final = b'"object":"chat.completion",'
_CREATED: Final = b'"created":'
_REASONING: Final = b'"reasoning'
_NULLS: Final = (b'"reasoning":null', b'"reasoning_content":null')


class Plain:
    """Knows plain answers to calls without tools. ``openers``: what fences reasoning in the content of this model."""

    __slots__ = ("_openers",)

    def __init__(self, openers: Sequence[str]) -> None:
        self._openers = tuple(opener.encode() for opener in openers)

    def knows(self, body: bytes, names: AnswerNames) -> bool:
        """Whether the answer may go as it is. False means only that it must be looked at."""
        if not has_good_head(body, names):
            return False
        if _CALLS in body or _CONTENT not in body or _OBJECT not in body or _CREATED not in body:
            return False
        thoughts = body.count(_REASONING)
        if thoughts and thoughts != body.count(_NULLS[0]) + body.count(_NULLS[1]):
            return False
        for opener in self._openers:  # noqa: SIM110 - any() over a generator takes twice as long
            if opener in body:
                return False
        return True
