"""A chat request that trtllm-serve has accepted, and what whole and streamed answers have in common."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from engines.simulator.generation import Generated
from engines.simulator.models import SimulatedModel
from engines.simulator.parsers.deltas import split_reasoning
from engines.simulator.partial import Incomplete, read
from engines.simulator.schema import Body
from engines.simulator.trtllm.errors import chat_failure
from engines.simulator.wire import Frames, Work


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat request after all checks, with its answer."""

    model: SimulatedModel
    body: Body
    size: int
    generated: Generated
    named: str | None

    @property
    def n(self) -> int:
        """Number of choices."""
        return int(self.body.get("n") or 1)

    @property
    def parses(self) -> bool:
        """Whether the tool parser runs; it does for `none` too, and throws the calls away."""
        return self.model.parser and bool(self.body.get("tools")) and self.named is None

    @property
    def split(self) -> list[tuple[str, str]]:
        """Tokens as (reasoning, content)."""
        if self.model.reasoning is None or self.named is not None:
            return [("", piece) for piece in self.generated.pieces]
        return split_reasoning(self.generated.pieces, inside=self.model.reasoning == "deepseek-r1")


def usage(size: int, generated: int) -> dict[str, object]:
    """The usage object."""
    return {
        "prompt_tokens": size,
        "total_tokens": size + generated,
        "completion_tokens": generated,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def work(
    chat: Chat, finish: str, *, body: bytes | None = None, steps: Sequence[Frames] = (), closing: Frames = ()
) -> Work:
    """The work of a rendered answer."""
    return Work(
        model=chat.model.name,
        prompt_tokens=chat.size,
        tokens=chat.generated.tokens * chat.n,
        finish=finish,
        failure=chat_failure(""),
        body=body,
        steps=steps,
        closing=closing,
    )


def finish_of(chat: Chat, *, called: bool) -> str:
    """The finish reason; calls count only when the engine said stop."""
    return "tool_calls" if called and chat.generated.finish == "stop" else chat.generated.finish


def call_id() -> str:
    """The id of a tool call."""
    return f"chatcmpl-tool-{uuid.uuid4().hex}"


def until_closed(text: str) -> str:
    """The JSON object at the beginning; the model may write on behind it (`tools_named_overrun`)."""
    try:
        _, end, _ = read(text)
    except Incomplete:
        return text
    return text[:end]
