"""vLLM's `/v1/responses`."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engines.simulator.prompt import text_of
from engines.simulator.schema import Body, Field, Kind, Schema, check
from engines.simulator.vllm import answers, chat
from engines.simulator.vllm.chat import Said
from engines.simulator.vllm.errors import CRASHED, BadRequest, invalid
from engines.simulator.vllm.parts import called, function_tool, objects, steps_of
from engines.simulator.vllm.render import Find, call_id
from engines.simulator.vllm.response_items import Items, call, message, new_id, reasoning
from engines.simulator.wire import Failure, Frames, Work, dumps

SCHEMA = Schema(
    {
        "model": Field(Kind.TEXT),
        "input": Field(required=True),
        "instructions": Field(Kind.TEXT),
        "include": Field(Kind.LIST),
        "max_output_tokens": Field(Kind.WHOLE),
        "metadata": Field(Kind.OBJECT),
        "parallel_tool_calls": Field(Kind.FLAG),
        "previous_response_id": Field(Kind.TEXT),
        "store": Field(Kind.FLAG),
        "stream": Field(Kind.FLAG),
        "temperature": Field(Kind.NUMBER),
        "tools": Field(Kind.LIST),
        "top_p": Field(Kind.NUMBER),
    }
)
FAILURE = Failure(CRASHED, cut=True)
"""An engine that dies raises in the middle of the stream, and the connection drops."""

_PER_TURN = {"tool_output_tokens": 0, "output_tokens_per_turn": [], "tool_output_tokens_per_turn": []}


def unknown_response(response_id: str, status: int = 404) -> BadRequest:
    """No such answer: without VLLM_ENABLE_RESPONSES_API_STORE none is kept (recording `responses_previous_id`)."""
    message = f"Response with id '{response_id}' not found."
    return BadRequest(message, "response_id", status, "invalid_request_error")


def plan(body: Body, find: Find, request_id: str) -> Work:
    """The work for a response. Raises `BadRequest`."""
    checked, issues = check(SCHEMA, body)
    if issues:
        raise invalid(issues)
    if (previous := checked.get("previous_response_id")) is not None:
        raise unknown_response(previous)
    said = chat.say(_chat(checked), find)
    head = _Head(checked, said, f"resp_{request_id}")
    if checked.get("stream"):
        return _stream(head, said)
    whole = answers.message(said.chat, said.generated)
    items: list[object] = []
    if whole.reasoning:
        items.append(reasoning(new_id("rs"), whole.reasoning, "completed"))
    if whole.content:
        items.append(message(new_id("msg"), whole.content))
    items.extend(call(new_id("fc"), call_id(), made.name, made.arguments, "completed") for made in whole.calls)
    value = head.response(items, whole.finish)
    return _work(said, whole.finish, body=dumps(value), steps=((),) * said.generated.tokens)


def _chat(body: Body) -> Body:
    """The same as a chat request."""
    wanted: Body = {"model": body.get("model"), "messages": list(_messages(body))}
    wanted["max_tokens"] = body.get("max_output_tokens")
    wanted |= {name: body[name] for name in ("temperature", "top_p", "parallel_tool_calls") if name in body}
    tools = [tool for tool in objects(body.get("tools")) if tool.get("type") == "function"]
    if tools:
        choice = body.get("tool_choice") or "auto"
        if isinstance(choice, dict):
            choice = {"type": "function", "function": {"name": choice.get("name")}}
        wanted["tools"] = [
            function_tool(tool.get("name"), tool.get("description"), tool.get("parameters")) for tool in tools
        ]
        wanted["tool_choice"] = choice
    return wanted


def _messages(body: Body) -> Iterator[dict[str, Any]]:
    if body.get("instructions"):
        yield {"role": "system", "content": body["instructions"]}
    given = body["input"]
    for item in objects([{"role": "user", "content": given}] if isinstance(given, str) else given):
        match item.get("type", "message"):
            case "message":
                yield {"role": item.get("role"), "content": text_of(item.get("content"))}
            case "function_call":
                yield called(item.get("call_id"), item.get("name"), item.get("arguments"))
            case "function_call_output":
                yield {"role": "tool", "tool_call_id": item.get("call_id"), "content": text_of(item.get("output"))}


class _Head:
    """What the response object repeats of the request."""

    def __init__(self, body: Body, said: Said, response_id: str) -> None:
        self.body, self.said, self.id = body, said, response_id
        self.created = int(time.time())

    def response(self, output: Sequence[object], finish: str | None) -> dict[str, object]:
        """The response object; without a finish reason, one under way."""
        body, tools = self.body, objects(self.body.get("tools"))
        cut = finish == "length"
        status = "in_progress" if finish is None else "incomplete" if cut else "completed"
        return {
            "id": self.id,
            "created_at": self.created,
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "instructions": body.get("instructions"),
            "metadata": body.get("metadata"),
            "model": self.said.name,
            "object": "response",
            "output": output,
            "parallel_tool_calls": body.get("parallel_tool_calls", True),
            "temperature": body.get("temperature", 1.0),
            "tool_choice": body.get("tool_choice") or ("auto" if tools else "none"),
            "tools": [_tool(tool) for tool in tools],
            "top_p": body.get("top_p", 1.0),
            "background": False,
            "max_output_tokens": body.get("max_output_tokens"),
            "max_tool_calls": None,
            "previous_response_id": None,
            "prompt": None,
            "reasoning": body.get("reasoning"),
            "service_tier": "auto",
            "status": status,
            "text": body.get("text"),
            "top_logprobs": None,
            "truncation": "disabled",
            "usage": None if finish is None else self._usage(),
            "user": None,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "input_messages": None,
            "output_messages": None,
        }

    def _usage(self) -> dict[str, object]:
        prompt, generated = self.said.chat.prompt_tokens, self.said.generated.tokens
        cached = {
            "cached_tokens": 0,
            "cache_write_tokens": 0,
            "input_tokens_per_turn": [],
            "cached_tokens_per_turn": [],
        }
        return {
            "input_tokens": prompt,
            "input_tokens_details": cached,
            "output_tokens": generated,
            "output_tokens_details": {"reasoning_tokens": 0, **_PER_TURN},
            "total_tokens": prompt + generated,
        }


def _tool(tool: Mapping[str, Any]) -> dict[str, object]:
    """A tool as the response repeats it."""
    if tool.get("type") != "function":
        return dict(tool)
    return {
        "name": tool.get("name"),
        "parameters": tool.get("parameters"),
        "strict": tool.get("strict"),
        "type": "function",
        "allowed_callers": None,
        "async": None,
        "defer_loading": None,
        "description": tool.get("description"),
        "output_schema": None,
    }


def _stream(head: _Head, said: Said) -> Work:
    steps, finish = steps_of(said)
    items = Items()
    begun = head.response((), None)
    opening = (items.event("response.created", response=begun), items.event("response.in_progress", response=begun))
    frames = [tuple(frame for piece in step for frame in items.add(piece)) for step in steps]
    closing = tuple(items.close())
    # Also for an answer that was cut short, whose status says so.
    completed = items.event("response.completed", response=head.response(items.done, finish))
    return _work(said, finish, steps=frames, opening=opening, closing=(*closing, completed))


def _work(
    said: Said,
    finish: str,
    *,
    body: bytes | None = None,
    steps: Sequence[Frames] = (),
    opening: Frames = (),
    closing: Frames = (),
) -> Work:
    return Work(
        model=said.chat.model.name,
        prompt_tokens=said.chat.prompt_tokens,
        tokens=said.generated.tokens,
        finish=finish,
        failure=FAILURE,
        body=body,
        steps=steps,
        opening=opening,
        closing=closing,
        fails_at=said.answer.fails_after,
    )
