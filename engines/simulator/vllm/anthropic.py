"""vLLM's `/v1/messages` and `/v1/messages/count_tokens`."""

import json
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from engines.simulator.prompt import prompt_tokens
from engines.simulator.schema import Body, Field, Kind, Schema, check
from engines.simulator.vllm import answers, chat
from engines.simulator.vllm.chat import Said
from engines.simulator.vllm.context import check_length
from engines.simulator.vllm.errors import CRASHED, BadRequest, invalid
from engines.simulator.vllm.parts import Piece, called, function_tool, objects, steps_of
from engines.simulator.vllm.render import Find, call_id
from engines.simulator.wire import Failure, Frames, Reply, Work, dumps, reply

_MEMBERS = {
    "model": Field(Kind.TEXT, required=True),
    "messages": Field(Kind.LIST, required=True),
    "metadata": Field(Kind.OBJECT),
    "system": Field(),
    "tools": Field(
        Kind.LIST, members=Schema({"name": Field(Kind.TEXT, required=True), "input_schema": Field(required=True)})
    ),
    "tool_choice": Field(Kind.OBJECT),
    "thinking": Field(Kind.OBJECT),
}
MESSAGES = Schema(
    {
        **_MEMBERS,
        "max_tokens": Field(Kind.WHOLE, required=True),
        "stop_sequences": Field(Kind.LIST),
        "stream": Field(Kind.FLAG),
        "temperature": Field(Kind.NUMBER),
        "top_k": Field(Kind.WHOLE),
        "top_p": Field(Kind.NUMBER),
    }
)
COUNT = Schema(_MEMBERS)
_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_DELTAS = {"thinking": "thinking_delta", "text": "text_delta", "call": "input_json_delta"}
_MEMBER = {"thinking": "thinking", "text": "text", "call": "partial_json"}


class Refusal(BadRequest):
    """A refusal in Anthropic's shape, with vLLM's own types (recording `messages_unknown_model`)."""

    def __init__(self, refused: Reply) -> None:
        error = json.loads(refused.body)["error"]
        super().__init__(error["message"])
        self.reply = reply(
            refused.status, {"type": "error", "error": {"type": error["type"], "message": error["message"]}}
        )


def _event(kind: str, **members: object) -> bytes:
    return f"event: {kind}\ndata: ".encode() + dumps({"type": kind} | members) + b"\n\n"


_INTERNAL = {
    "type": "internal_error",
    "message": "1 validation error for ChatCompletionStreamResponse\nid\n  Field required",
}
FAILURE = Failure(CRASHED, (_event("error", error=_INTERNAL),))
"""vLLM cannot read the error in its own chat stream, and says so."""


def plan(body: Body, find: Find, request_id: str) -> Work:
    """The work for a message. Raises `BadRequest`."""
    converted = _checked(MESSAGES, body)
    try:
        said = chat.say(_chat(converted), find)
    except BadRequest as refused:
        raise Refusal(refused.reply) from refused
    if converted.get("stream"):
        return _stream(said, request_id)
    message = answers.message(said.chat, said.generated)
    content: list[dict[str, object]] = []
    if message.reasoning:
        content.append({"type": "thinking", "thinking": message.reasoning, "signature": _signature()})
    if message.content:
        content.append({"type": "text", "text": message.content})
    content.extend(
        {"type": "tool_use", "id": call_id(), "name": call.name, "input": json.loads(call.arguments)}
        for call in message.calls
    )
    value = _head(said, request_id, content)
    value |= {"stop_reason": _STOP_REASONS[message.finish], "usage": _usage(said, said.generated.tokens)}
    return _work(said, message.finish, body=dumps(value), steps=((),) * said.generated.tokens)


def count_tokens(body: Body, find: Find) -> Reply:
    """How many tokens a message has. Raises `BadRequest`."""
    converted = _chat(_checked(COUNT, body) | {"max_tokens": None})
    try:
        model, _ = find(converted["model"])
        count = prompt_tokens(converted["messages"], converted.get("tools"))
        check_length(count, 0, model.max_length)
    except BadRequest as refused:
        raise Refusal(refused.reply) from refused
    return reply(200, {"input_tokens": count, "context_management": {"original_input_tokens": count}})


def _checked(schema: Schema, body: Body) -> Body:
    converted, issues = check(schema, body)
    if issues:
        raise invalid(issues)
    return converted


def _chat(body: Body) -> Body:
    """The same as a chat request."""
    wanted: Body = {"model": body["model"], "messages": list(_messages(body)), "max_tokens": body["max_tokens"]}
    for name, there in (
        ("stop_sequences", "stop"),
        *((name, name) for name in ("temperature", "top_p", "top_k", "stream")),
    ):
        if body.get(name) is not None:
            wanted[there] = body[name]
    if body.get("tools"):
        tools = [
            function_tool(tool["name"], tool.get("description"), tool["input_schema"])
            for tool in objects(body["tools"])
        ]
        choice = body.get("tool_choice") or {"type": "auto"}
        named = {"type": "function", "function": {"name": choice.get("name")}}
        wanted |= {"tools": tools, "tool_choice": _CHOICES.get(str(choice.get("type")), named)}
    return wanted


def _messages(body: Body) -> Iterator[dict[str, Any]]:
    if body.get("system"):
        yield {"role": "system", "content": _text(body["system"])}
    for message in objects(body["messages"]):
        role, content = message.get("role"), message.get("content")
        if not isinstance(content, list):
            yield {"role": role, "content": content}
            continue
        for block in objects(content):
            match block.get("type"):
                case "tool_use":
                    yield called(block.get("id"), block.get("name"), json.dumps(block.get("input")))
                case "tool_result":
                    result = _text(block.get("content"))
                    yield {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": result}
        if text := _text(content):
            yield {"role": role, "content": text}


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in objects(content) if block.get("type") == "text")


def _head(said: Said, request_id: str, content: Sequence[object]) -> dict[str, object]:
    return {
        "id": f"chatcmpl-{request_id}",
        "type": "message",
        "role": "assistant",
        "content": content,
        "model": said.name,
    }


def _usage(said: Said, generated: int) -> dict[str, int]:
    return {"input_tokens": said.chat.prompt_tokens, "output_tokens": generated}


def _signature() -> str:
    return uuid.uuid4().hex


def _stream(said: Said, request_id: str) -> Work:
    steps, finish = steps_of(said)
    start = _head(said, request_id, ()) | {"stop_reason": None, "stop_sequence": None, "usage": _usage(said, 0)}
    blocks = _Blocks()
    frames = [tuple(frame for piece in step for frame in blocks.add(piece)) for step in steps] or [()]
    frames[0] = (_event("message_start", message=start), *frames[0])
    delta = {"stop_reason": _STOP_REASONS[finish], "stop_sequence": None}
    ended = _event("message_delta", delta=delta, usage=_usage(said, said.generated.tokens))
    return _work(said, finish, steps=frames, closing=(*blocks.close(), ended, _event("message_stop")))


class _Blocks:
    """The content blocks of a stream: one after the other, each opened by its first piece."""

    def __init__(self) -> None:
        self.kind: str | None = None
        self.index = -1

    def add(self, piece: Piece) -> Iterator[bytes]:
        if piece.kind != self.kind or piece.name is not None:
            yield from self.close()
            self.kind = piece.kind
            self.index += 1
            yield _event("content_block_start", content_block=_opened(piece), index=self.index)
        if piece.text:
            delta = {"type": _DELTAS[piece.kind], _MEMBER[piece.kind]: piece.text}
            yield _event("content_block_delta", delta=delta, index=self.index)

    def close(self) -> Iterator[bytes]:
        if self.kind is None:
            return
        if self.kind == "thinking":
            signed = {"type": "signature_delta", "signature": _signature()}
            yield _event("content_block_delta", delta=signed, index=self.index)
        self.kind = None
        yield _event("content_block_stop", index=self.index)


def _opened(piece: Piece) -> dict[str, object]:
    if piece.kind == "call":
        return {"type": "tool_use", "id": piece.call_id, "name": piece.name, "input": {}}
    return {"type": piece.kind, piece.kind: ""}


def _work(
    said: Said, finish: str, *, body: bytes | None = None, steps: Sequence[Frames] = (), closing: Frames = ()
) -> Work:
    return Work(
        model=said.chat.model.name,
        prompt_tokens=said.chat.prompt_tokens,
        tokens=said.generated.tokens,
        finish=finish,
        failure=FAILURE,
        body=body,
        steps=steps,
        closing=closing,
        fails_at=said.answer.fails_after,
    )
