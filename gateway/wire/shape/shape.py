"""What is done to the answers of one engine under one model's settings: which stages, in which order."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from engines.answers import Answers
from engines.profile import Members, Operation
from gateway.wire.shape.chain import Chain
from gateway.wire.shape.content import NoContent
from gateway.wire.shape.deltas import HollowDeltas, Silence
from gateway.wire.shape.extras import Strip
from gateway.wire.shape.fields import CHAT, CHAT_CHUNK, COMPLETION
from gateway.wire.shape.reasoning import Reasoning, ReasoningField
from gateway.wire.shape.stage import Stage
from gateway.wire.shape.usage import HiddenLength, UnaskedUsage, limit_of, wants_usage


class Extras(StrEnum):
    """A model's `extras`: members and nulls of an answer that OpenAI does not have."""

    KEEP = "keep"
    STRIP = "strip"


_STRIP: Final[Mapping[Operation, Strip]] = {
    Operation.CHAT: Strip(CHAT_CHUNK, CHAT),
    Operation.COMPLETIONS: Strip(COMPLETION, COMPLETION),
}
_SILENCE: Final = Silence()
_NO_CONTENT: Final = NoContent()
_UNASKED: Final = UnaskedUsage()


class Shape:
    """Makes the chains for the answers to one model's calls of one operation at one engine."""

    __slots__ = ("_answers", "_asked", "_hollow", "_quiet", "_shared")

    def __init__(
        self,
        operation: Operation,
        answers: Answers,
        extras: Extras = Extras.KEEP,
        reasoning: ReasoningField = ReasoningField.BOTH,
    ) -> None:
        chat = operation is Operation.CHAT
        self._answers = answers
        self._hollow = chat and answers.hollow_deltas
        first: tuple[Stage, ...] = (Reasoning(reasoning), _NO_CONTENT) if chat else ()
        last: tuple[Stage, ...] = (_STRIP[operation], _SILENCE) if extras is Extras.STRIP else (_SILENCE,)
        self._asked = (*first, *last)
        self._quiet = (*first, _UNASKED, *last)
        self._shared: tuple[Chain, Chain] | None = None
        if not self._hollow and not answers.hides_length:  # nothing has a state: every stream has the same chain
            self._shared = (Chain(self._quiet), Chain(self._asked))

    def chain(self, asked: Members, sent: Members, reading: Stage | None = None) -> Chain:
        """The chain for one answer to a call: ``asked`` is what its client sent, ``sent`` what the engine got.

        ``reading`` is a stage of this answer that reads its text.
        """
        usage = wants_usage(asked)
        if self._shared is not None:
            return self._shared[usage] if reading is None else self._shared[usage].after(reading)
        own: list[Stage] = []
        if self._hollow:
            own.append(HollowDeltas())
        if self._answers.hides_length and (limit := limit_of(sent, self._answers.limits)) is not None:
            own.append(HiddenLength(limit))
        if reading is not None:
            own.append(reading)
        return Chain((*own, *(self._asked if usage else self._quiet)))
