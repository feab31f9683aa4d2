"""Triton's `/v1/chat/completions`."""

import json
import secrets
import string
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engines.simulator.generation import Generated, Limits, generate
from engines.simulator.markup import Markup
from engines.simulator.models import SimulatedModel, Task
from engines.simulator.parsers import llama3, mistral
from engines.simulator.parsers.deltas import CallArguments, CallStart, Delta, ParsedCall, Text
from engines.simulator.prompt import called_functions, prompt_tokens, tool_schemas, turn
from engines.simulator.sampling import chat_logprobs, quoted, stops
from engines.simulator.schema import Body
from engines.simulator.script import Answer, Call
from engines.simulator.triton.errors import BadRequest, failure
from engines.simulator.triton.rules import check_common
from engines.simulator.wire import DONE, Frames, Work, dumps

_ROLE = b'{"content":"","function_call":null,"role":"assistant"}'


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat request after all checks, with its answer."""

    model: SimulatedModel
    name: str
    body: Body
    size: int
    generated: Generated
    forced: str | None
    """The tool of a named or required choice; only the first tool can be required."""
    parses: bool

    @property
    def markup(self) -> Markup:
        """How the model writes calls, which is what the parser was chosen for."""
        return self.model.markup or Markup.LLAMA3


def plan(body: Body, model: SimulatedModel, name: str) -> Work:
    """The work for a validated chat request. Raises `BadRequest`."""
    _check(body, model)
    messages: Sequence[Mapping[str, Any]] = body["messages"]
    forced = _forced(body)
    tools = body.get("tools")
    size = prompt_tokens(messages, tools)
    answer = _answer(model, messages, tools, forced)
    made = generate(answer, model.markup or Markup.LLAMA3, limits(body, model, size))
    if model.backend != "vllm":
        # The TRT-LLM converter ends with an empty piece.
        made = replace(made, pieces=(*made.pieces, ""))
    parses = bool(tools) and body.get("tool_choice") in (None, "auto")
    chat = Chat(model, name, body, size, made, forced, parses)
    work = _stream(chat) if body.get("stream") else _whole(chat)
    return failing(work, answer, model, size)


def failing(work: Work, answer: Answer, model: SimulatedModel, size: int) -> Work:
    """The work with what happens if the engine behind the frontend refuses or fails."""
    if model.task is Task.EMBEDDING:
        message = f"Model {model.name} does not support 'generate' request"
        return replace(work, fails_at=0, failure=failure(model.name, message, model.backend))
    if size >= model.max_length:
        message = f"The decoder prompt (length {size}) is longer than the maximum model length of {model.max_length}."
        return replace(work, fails_at=0, failure=failure(model.name, message, model.backend))
    return replace(work, fails_at=answer.fails_after, failure=failure(model.name, answer.error, model.backend))


def limits(body: Body, model: SimulatedModel, size: int) -> Limits:
    """What ends the generation: 16 tokens unless the request says otherwise."""
    wanted = body.get("max_completion_tokens")
    if wanted is None:
        wanted = body.get("max_tokens")
    if wanted is None:
        wanted = model.default_tokens
    return Limits(
        tokens=max(1, min(int(wanted), model.max_length - size)),
        stops=stops(body.get("stop")),
        ignore_end=bool(body.get("ignore_eos")),
    )


def _check(body: Body, model: SimulatedModel) -> None:
    check_common(body)
    if body.get("top_logprobs") is not None and not body.get("logprobs"):
        raise BadRequest("`top_logprobs` can only be used when `logprobs` is True")
    if body.get("logprobs") and model.backend != "vllm":
        raise BadRequest("logprobs are currently available only for the vLLM backend")
    for message in body["messages"]:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            kind = part.get("type") if isinstance(part, dict) else None
            if kind != "text":
                raise BadRequest(f"only text message is supported, but got {kind}")
        for function in called_functions(message):
            try:
                json.loads(str(function.get("arguments")))
            except ValueError as error:
                raise BadRequest(str(error), 500) from error
    _check_tools(body, model)


def _check_tools(body: Body, model: SimulatedModel) -> None:
    tools, choice = body.get("tools"), body.get("tool_choice")
    if choice == "required" or isinstance(choice, dict):
        shown = "required" if choice == "required" else "named"
        if not tools:
            raise BadRequest(f'"{shown}" tool choice requires CreateChatCompletionRequest.tools to be provided')
        name = _forced(body)
        if name not in tool_schemas(tools):
            raise BadRequest(f"Tool '{name}' has not been passed in `tools`.")
        if next(tool["function"].get("parameters") for tool in tools if tool["function"]["name"] == name) is None:
            raise BadRequest("'NoneType' object has no attribute 'model_dump_json'", 500)
    elif tools and not model.parser:
        if choice is None:
            raise BadRequest("having tools in the request requires --tool-call-parser to be set")
        if choice == "auto":
            raise BadRequest('"auto" tool choice requires --tool-call-parser to be set')


def _forced(body: Body) -> str | None:
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        return str(choice["function"]["name"])
    return str(body["tools"][0]["function"]["name"]) if choice == "required" and body.get("tools") else None


def _answer(model: SimulatedModel, messages: Sequence[Mapping[str, Any]], tools: object, forced: str | None) -> Answer:
    answer = model.script(turn(messages, tools, forced))
    if forced is None or answer.pieces:
        return answer
    # Guided decoding makes the model write the bare arguments.
    call = next((part for part in answer.segments if isinstance(part, Call)), Call(forced, "{}"))
    return replace(answer, segments=(call.arguments,))


def usage(size: int, generated: int) -> dict[str, object]:
    """The usage object, of three numbers only."""
    return {"prompt_tokens": size, "total_tokens": size + generated, "completion_tokens": generated}


def _call_id(markup: Markup) -> str:
    if markup is Markup.MISTRAL:
        return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(9))
    return f"cmpl-{uuid.uuid1()}"


def _whole(chat: Chat) -> Work:
    response_id = f"cmpl-{uuid.uuid1()}"
    text = chat.generated.text
    calls: list[ParsedCall] = []
    if chat.forced is not None:
        text, calls = "", [ParsedCall(chat.forced, text)]
    elif chat.parses:
        text, calls = (mistral if chat.markup is Markup.MISTRAL else llama3).parse(text)
    shown = [
        {
            "id": response_id if chat.forced is not None else _call_id(chat.markup),
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in calls
    ]
    # The limit is never told: a cut answer also says `stop` (`chat_finish_length_nonstream`).
    finish = "tool_calls" if calls and chat.forced is None else "stop"
    pieces = [piece for piece in chat.generated.pieces if piece]
    logprobs = chat_logprobs(pieces, chat.body.get("top_logprobs") or 0) if chat.body.get("logprobs") else None
    message = {"content": text, "tool_calls": shown or None, "role": "assistant", "function_call": None}
    value = {
        "id": response_id,
        "choices": [{"finish_reason": finish, "index": 0, "message": message, "logprobs": logprobs}],
        "created": int(time.time()),
        "model": chat.name,
        "system_fingerprint": None,
        "object": "chat.completion",
        "usage": usage(chat.size, chat.generated.tokens),
    }
    steps: Sequence[Frames] = ((),) * len(chat.generated.pieces)
    return _work(chat, finish, body=dumps(value), steps=steps)


def _work(
    chat: Chat,
    finish: str,
    *,
    body: bytes | None = None,
    steps: Sequence[Frames] = (),
    opening: Frames = (),
    closing: Frames = (),
) -> Work:
    return Work(
        model=chat.model.name,
        prompt_tokens=chat.size,
        tokens=chat.generated.tokens,
        finish=finish,
        failure=failure(chat.model.name, "", chat.model.backend),
        body=body,
        steps=steps,
        opening=opening,
        closing=closing,
    )


class _Writer:
    """Renders events; every one carries `"usage": null`."""

    def __init__(self, chat: Chat) -> None:
        self.start = b'data: {"id":' + dumps(f"cmpl-{uuid.uuid1()}") + b',"choices":['
        rest = {
            "created": int(time.time()),
            "model": chat.name,
            "system_fingerprint": None,
            "object": "chat.completion.chunk",
        }
        self._rest = b"]," + dumps(rest)[1:-1] + b',"usage":'
        self.end = self._rest + b"null}\n\n"

    def event(self, delta: bytes, finish: str | None, logprobs: bytes = b"null") -> bytes:
        """One event."""
        ending = b',"finish_reason":' + dumps(finish) + b',"index":0}'
        return self.start + b'{"delta":' + delta + b',"logprobs":' + logprobs + ending + self.end

    def usage(self, numbers: Mapping[str, object]) -> bytes:
        """The last event before `[DONE]`."""
        return self.start + self._rest + dumps(numbers) + b"}\n\n"


def _stream(chat: Chat) -> Work:
    writer = _Writer(chat)
    deltas, finish = _deltas(chat)
    steps: list[Frames] = []
    for step, delta in enumerate(deltas):
        last = step == len(deltas) - 1
        piece = chat.generated.pieces[step]
        logprobs = b"null"
        if chat.body.get("logprobs"):
            logprobs = dumps(chat_logprobs((piece,), chat.body.get("top_logprobs", 2)))
        shown = b'{"content":""}' if delta is None and last else delta
        steps.append((writer.event(shown, finish if last else None, logprobs),) if shown is not None else ())
    options = chat.body.get("stream_options") or {}
    closing: Frames = (DONE,)
    if options.get("include_usage"):
        closing = (writer.usage(usage(chat.size, chat.generated.tokens)), DONE)
    # The role comes before the engine has begun (`chat_engine_error_stream_start`).
    return _work(chat, finish, steps=steps, opening=(writer.event(_ROLE, None),), closing=closing)


def _deltas(chat: Chat) -> tuple[list[bytes | None], str]:
    """The delta of each token, None where the parser holds it back, and the finish reason."""
    pieces = chat.generated.pieces
    if chat.forced is not None:
        head = b'{"tool_calls":[{"index":0,"function":{"name":' + dumps(chat.forced) + b',"arguments":'
        return [head + quoted(piece) + b"}}]}" for piece in pieces], "stop"
    if not chat.parses:
        tail = b',"function_call":null,"role":null}'
        return [b'{"content":' + quoted(piece) + tail for piece in pieces], "stop"
    parser = mistral.MistralStream() if chat.markup is Markup.MISTRAL else llama3.Llama3Stream()
    out: list[bytes | None] = []
    for step, piece in enumerate(pieces):
        found = parser.feed(piece)
        if step == len(pieces) - 1:
            found = [parser.last(delta) if isinstance(delta, CallArguments) else delta for delta in found]
        out.append(_delta(found[-1], chat.markup) if found else None)
    return out, "tool_calls" if parser.called else "stop"


def _delta(delta: Delta, markup: Markup) -> bytes:
    if isinstance(delta, Text):
        return b'{"content":' + quoted(delta.text) + b"}"
    call: dict[str, object] = {"index": delta.index}
    if isinstance(delta, CallStart):
        call |= {"id": _call_id(markup), "type": "function", "function": {"name": delta.name}}
    else:
        call |= {"function": {"arguments": delta.text}}
    return b'{"tool_calls":[' + dumps(call) + b"]}"
