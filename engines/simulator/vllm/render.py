"""vLLM's chat answers as bytes, whole and streamed."""

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from engines.simulator import tokens
from engines.simulator.generation import Generated
from engines.simulator.models import SimulatedModel
from engines.simulator.parsers.deltas import ParsedCall
from engines.simulator.sampling import chat_logprobs
from engines.simulator.script import Answer
from engines.simulator.vllm.accepted import Chat
from engines.simulator.vllm.errors import CRASHED
from engines.simulator.wire import DONE, Failure, Frames, Work, dumps

Find: TypeAlias = Callable[[object], tuple[SimulatedModel, str]]
"""From the request's `model` to the model and the name that answers carry. Raises `BadRequest`."""

FINGERPRINT = "vllm-0.32.0-51f1a7e0"

_CRASH_EVENT = (
    b'data: {"error": {"message": "EngineCore encountered an issue. See stack trace (above) for the root cause.", '
    b'"type": "InternalServerError", "param": null, "code": 500}}\n\n'
)
FAILURE = Failure(CRASHED, (_CRASH_EVENT, DONE))
"""An engine that dies: an error event, and then `[DONE]` all the same (`wire_engine_crash`)."""


@dataclass(frozen=True, slots=True)
class Head:
    """What every event and answer begins with."""

    id: str
    model: str


@dataclass(frozen=True, slots=True)
class Message:
    """A parsed answer."""

    content: str | None
    reasoning: str | None
    calls: tuple[ParsedCall, ...]
    finish: str
    reasoning_tokens: int | None


@dataclass(frozen=True, slots=True)
class Streamed:
    """Deltas of each engine step, as JSON."""

    steps: Sequence[tuple[bytes, ...]]
    finish: str
    reasoning_tokens: int | None


def call_id() -> str:
    """The id of a tool call."""
    return f"chatcmpl-tool-{uuid.uuid4().hex[:16]}"


def usage(prompt: int, generated: int, reasoning: int | None = None) -> dict[str, object]:
    """The usage object of a whole answer."""
    details = None if reasoning is None else {"reasoning_tokens": reasoning}
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + generated,
        "completion_tokens": generated,
        "prompt_tokens_details": None,
        "completion_tokens_details": details,
    }


def whole(head: Head, chat: Chat, messages: Sequence[Message], generated: Generated, answer: Answer) -> Work:
    """An answer that is not streamed."""
    total = generated.tokens * len(messages)
    value = {
        "id": f"chatcmpl-{head.id}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": head.model,
        "choices": [_choice(index, message, chat, generated) for index, message in enumerate(messages)],
        "service_tier": None,
        "system_fingerprint": FINGERPRINT,
        "usage": usage(chat.prompt_tokens, total, messages[0].reasoning_tokens),
        "prompt_logprobs": None,
        "prompt_token_ids": chat.prompt_ids,
        "prompt_text": None,
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "metrics": None,
    }
    steps: Sequence[Frames] = ((),) * generated.tokens
    return _work(chat, total, messages[0].finish, answer, body=dumps(value), steps=steps)


def _work(
    chat: Chat,
    total: int,
    finish: str,
    answer: Answer,
    *,
    body: bytes | None = None,
    steps: Sequence[Frames] = (),
    closing: Frames = (),
) -> Work:
    return Work(
        model=chat.model.name,
        prompt_tokens=chat.prompt_tokens,
        tokens=total,
        finish=finish,
        failure=FAILURE,
        body=body,
        steps=steps,
        closing=closing,
        fails_at=answer.fails_after,
    )


def _choice(index: int, message: Message, chat: Chat, generated: Generated) -> dict[str, object]:
    shown: dict[str, object] = {
        "role": "assistant",
        "content": message.content,
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
    }
    if message.calls:
        shown["tool_calls"] = [
            {"id": call_id(), "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    shown["reasoning"] = message.reasoning
    body = chat.body
    return {
        "index": index,
        "message": shown,
        "logprobs": chat_logprobs(generated.pieces, body.get("top_logprobs") or 0) if body.get("logprobs") else None,
        "finish_reason": message.finish,
        "stop_reason": generated.stop_reason,
        "token_ids": [tokens.token_id(piece) for piece in generated.pieces] if body.get("return_token_ids") else None,
        "routed_experts": None,
    }


def stream(head: Head, chat: Chat, streamed: Streamed, generated: Generated, answer: Answer) -> Work:
    """A streamed answer."""
    return _Stream(head, chat, streamed, generated).work(answer)


class _Stream:
    def __init__(self, head: Head, chat: Chat, streamed: Streamed, generated: Generated) -> None:
        self.chat, self.streamed, self.generated = chat, streamed, generated
        options = chat.body.get("stream_options") or {}
        self.usage = bool(options.get("include_usage"))
        self.continuous = self.usage and bool(options.get("continuous_usage_stats"))
        self.n = chat.n
        fixed = {"id": f"chatcmpl-{head.id}", "object": "chat.completion.chunk"}
        fixed |= {"created": int(time.time()), "model": head.model, "choices": []}  # type: ignore[dict-item]
        self.start = b"data: " + dumps(fixed)[:-2]

    def work(self, answer: Answer) -> Work:
        steps: list[Frames] = []
        count = self.generated.tokens
        merged = self.generated.finish == "length" or self.generated.stop_reason is not None
        for step, deltas in enumerate(self.streamed.steps):
            last = merged and step == len(self.streamed.steps) - 1
            frames: list[bytes] = []
            for index in range(self.n):
                frames.extend(self._events(index, step, deltas, last=last))
            steps.append(tuple(frames))
        if not merged or not steps:
            ending = tuple(self._event(index, b"{}", count, None, finish=True) for index in range(self.n))
            steps.append(ending if steps else self._roles() + ending)
        if steps and self.streamed.steps:
            steps[0] = self._roles() + steps[0]
        closing: Frames = (self._usage_event(count * self.n), DONE) if self.usage else (DONE,)
        chat, finish = self.chat, self.streamed.finish
        return _work(chat, count * self.n, finish, answer, steps=steps, closing=closing)

    def _events(self, index: int, step: int, deltas: tuple[bytes, ...], *, last: bool) -> list[bytes]:
        piece = self.generated.pieces[step]
        if last and not deltas:
            return [self._event(index, b"{}", step + 1, None, finish=True)]
        out = []
        for number, delta in enumerate(deltas):
            finish = last and number == len(deltas) - 1
            out.append(self._event(index, delta, step + 1, piece, finish=finish))
        return out

    def _roles(self) -> Frames:
        ids = dumps(self.chat.prompt_ids)
        tail = b',"logprobs":null,"finish_reason":null}]' + self._running(0)
        tail += b',"prompt_token_ids":' + ids + b',"prompt_text":null}\n\n'
        middle = b'{"index":%d,"delta":{"role":"assistant","content":""}'
        return tuple(self.start + middle % index + tail for index in range(self.n))

    def _event(self, index: int, delta: bytes, so_far: int, piece: str | None, *, finish: bool) -> bytes:
        body = self.chat.body
        logprobs = b"null"
        if body.get("logprobs") and piece is not None:
            logprobs = dumps(chat_logprobs((piece,), body.get("top_logprobs") or 0))
        ids = b"null"
        if body.get("return_token_ids") and piece is not None:
            ids = b"[%d]" % tokens.token_id(piece)
        ending = b"null"
        if finish:
            ending = dumps(self.streamed.finish) + b',"stop_reason":' + dumps(self.generated.stop_reason)
        tail = b"}\n\n"
        if finish and not self.usage:
            tail = b',"system_fingerprint":' + dumps(FINGERPRINT) + tail
        choice = b'{"index":%d,"delta":' % index + delta + b',"logprobs":' + logprobs
        choice += b',"finish_reason":' + ending + b',"token_ids":' + ids + b"}]"
        return self.start + choice + self._running(so_far) + tail

    def _running(self, so_far: int) -> bytes:
        if not self.continuous:
            return b""
        prompt = self.chat.prompt_tokens
        numbers = {"prompt_tokens": prompt, "total_tokens": prompt + so_far, "completion_tokens": so_far}
        return b',"usage":' + dumps(numbers | {"completion_tokens_details": None})

    def _usage_event(self, total: int) -> bytes:
        prompt = self.chat.prompt_tokens
        numbers: dict[str, object] = {
            "prompt_tokens": prompt,
            "total_tokens": prompt + total,
            "completion_tokens": total,
        }
        if self.streamed.reasoning_tokens is not None:
            numbers["completion_tokens_details"] = {"reasoning_tokens": self.streamed.reasoning_tokens}
        tail = {"usage": numbers, "system_fingerprint": FINGERPRINT}
        return self.start + b"]," + dumps(tail)[1:] + b"\n\n"
