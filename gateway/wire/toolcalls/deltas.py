"""What the machine says about a text, in order. A call's deltas are never mixed with another call's."""

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the content."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More of the reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call begins; `index` counts from 0 without gaps."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    """More of the JSON text of a call's arguments."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class CallEnd:
    """A call ends. If it is not `complete`, it was cut off or broken, and its arguments are not whole."""

    index: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of the answer, with OpenAI's finish reason."""

    reason: str


Delta: TypeAlias = TextDelta | ReasoningDelta | CallStart | CallArguments | CallEnd | Finish


@dataclass(frozen=True, slots=True)
class Call:
    """A call as parsed.

    Args:
        id: the model's own if it wrote a clean one, else ours.
        name: the function's name.
        arguments: JSON text of an object; as far as it was generated if the call is not `complete`.
        complete: whether the model wrote it to its end.
    """

    id: str
    name: str
    arguments: str
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Parsed:
    """A whole answer.

    Args:
        content: the visible text; None if there is none beside calls or reasoning.
        reasoning: the reasoning text; None if there is none.
        calls: in order.
        finish_reason: OpenAI's.
        repairs: how often each leniency was needed.
    """

    content: str | None
    reasoning: str | None
    calls: tuple[Call, ...]
    finish_reason: str
    repairs: dict[str, int] = field(default_factory=dict)
