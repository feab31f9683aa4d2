"""trtllm-serve's `/v1/chat/completions`."""

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from engines.simulator.generation import Limits, generate
from engines.simulator.guided import held
from engines.simulator.markup import Markup
from engines.simulator.models import SimulatedModel
from engines.simulator.parsers.deltas import ParsedCall
from engines.simulator.parsers.qwen3 import parse
from engines.simulator.prompt import prompt_tokens, tool_schemas, turn
from engines.simulator.sampling import chat_logprobs, stops
from engines.simulator.schema import Body
from engines.simulator.script import Answer, Call
from engines.simulator.trtllm.accepted import Chat, call_id, finish_of, until_closed, usage, work
from engines.simulator.trtllm.errors import BadRequest, chat_failure, flat
from engines.simulator.trtllm.rules import checked_chat
from engines.simulator.trtllm.stream import stream
from engines.simulator.wire import Frames, Work, dumps


def plan(body: Body, model: SimulatedModel, number: int) -> Work:
    """The work for a chat request. `number` is the engine's request number, which streams show as their id."""
    checked = checked_chat(body)
    named = _named(checked, model)
    messages: Sequence[Mapping[str, Any]] = [each for each in checked["messages"] if isinstance(each, dict)]
    size = prompt_tokens(messages, checked.get("tools"))
    check_length(size, model)
    answer = _answer(model, messages, checked, named)
    limits = Limits(
        tokens=limit_of(checked, size, model),
        stops=stops(checked.get("stop")),
        keep_stop=bool(checked.get("include_stop_str_in_output")),
        ignore_end=bool(checked.get("ignore_eos")),
    )
    generated = generate(answer, model.markup or Markup.HERMES, limits)
    chat = Chat(model, checked, size, generated, named)
    made = stream(chat, number) if checked.get("stream") else _whole(chat)
    return replace(made, fails_at=answer.fails_after, failure=chat_failure(answer.error))


def _named(body: Body, model: SimulatedModel) -> str | None:
    choice = body.get("tool_choice")
    if not isinstance(choice, dict):
        return None
    name = str(choice["function"].get("name"))
    if not (model.guided and model.parser):
        message = "tool_choice with a named function requires the server to be started with a guided decoding backend"
        raise BadRequest(flat(f"{message} (set `guided_decoding_backend` to 'xgrammar' or 'llguidance')."))
    known = sorted(tool_schemas(body.get("tools")))
    if name not in known:
        message = f"tool_choice requested function '{name}' which is not present in `tools`."
        raise BadRequest(flat(f"{message} Available functions: {known}."))
    return name


def check_length(size: int, model: SimulatedModel) -> None:
    """Raises `BadRequest` with the code that newer versions give (`derived_endpoints`)."""
    if size >= model.max_length:
        message = f"The prompt has {size} tokens, which leaves no room within max_seq_len ({model.max_length})."
        raise BadRequest(flat(message, code="context_length_exceeded"))


def limit_of(body: Body, size: int, model: SimulatedModel) -> int:
    """How many tokens may be generated."""
    wanted = body.get("max_tokens", body.get("max_completion_tokens"))
    room = model.max_length - size
    return room if wanted is None else min(int(wanted), room)


def _answer(model: SimulatedModel, messages: Sequence[Mapping[str, Any]], body: Body, named: str | None) -> Answer:
    asked = turn(messages, body.get("tools"), named)
    answer = model.script(asked)
    if named is None or answer.pieces:
        return held(answer, body.get("response_format")) if model.guided else answer
    # Guided decoding makes the model write the bare arguments.
    forced = next((part for part in answer.segments if isinstance(part, Call)), Call(named, "{}"))
    return replace(answer, segments=(forced.arguments,))


def _whole(chat: Chat) -> Work:
    message, finish = _message(chat)
    body, generated = chat.body, chat.generated
    logprobs = chat_logprobs(generated.pieces, body.get("top_logprobs")) if body.get("logprobs") else None
    value = {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body["model"],
        "choices": [
            {
                "index": index,
                "message": message,
                "logprobs": logprobs,
                "finish_reason": finish,
                "stop_reason": generated.stop_reason,
                "mm_embedding_handle": None,
                "disaggregated_params": None,
                "avg_decoded_tokens_per_iter": None,
            }
            for index in range(chat.n)
        ],
        "usage": usage(chat.size, generated.tokens * chat.n),
        "prompt_token_ids": None,
        "prompt_token_ids_b64": None,
    }
    steps: Sequence[Frames] = ((),) * generated.tokens
    return work(chat, finish, body=dumps(value), steps=steps)


def _message(chat: Chat) -> tuple[dict[str, object], str]:
    parts = chat.split
    content = "".join(text for _, text in parts)
    reasoning: str | None = "".join(thought for thought, _ in parts)
    calls: list[ParsedCall] = []
    if chat.named is not None:
        calls = [ParsedCall(chat.named, until_closed(content))]
        content, reasoning = "", None
    elif chat.parses:
        content, calls = parse(content, set(tool_schemas(chat.body["tools"])))
        if chat.body.get("tool_choice") == "none":
            calls = []
    shown = [
        {"id": call_id(), "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]
    message: dict[str, object] = {
        "role": "assistant",
        "content": content,
        "reasoning_content": reasoning,
        "reasoning": None,
        "tool_calls": shown,
    }
    return message, finish_of(chat, called=bool(calls))
