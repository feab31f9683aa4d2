"""From vLLM's other chat APIs to its own chat request, and from its chat stream to pieces of other streams.

vLLM does the same: `/v1/messages` is made out of `/v1/chat/completions`, request, answer and stream.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from engines.simulator.vllm import answers
from engines.simulator.vllm.chat import Said


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a streamed answer. `kind` is `thinking`, `text` or `call`; `name` is there when a call begins."""

    kind: str
    text: str = ""
    name: str | None = None
    call_id: str = ""


Steps: TypeAlias = Sequence[Sequence[Piece]]


def steps_of(said: Said) -> tuple[Steps, str]:
    """The pieces of each engine step, and the finish reason."""
    streamed = answers.steps(said.chat, said.generated)
    return [
        [piece for delta in step for piece in _pieces(json.loads(delta))] for step in streamed.steps
    ], streamed.finish


def _pieces(delta: Mapping[str, Any]) -> Iterator[Piece]:
    if delta.get("reasoning"):
        yield Piece("thinking", delta["reasoning"])
    if delta.get("content"):
        yield Piece("text", delta["content"])
    for call in delta.get("tool_calls") or ():
        function = call["function"]
        if "name" in function:
            yield Piece("call", "", function["name"], call["id"])
        if function.get("arguments"):
            yield Piece("call", function["arguments"])


def objects(value: object) -> list[Mapping[str, Any]]:
    """The objects in a list, which may hold anything else too."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def function_tool(name: object, description: object, schema: object) -> dict[str, Any]:
    """A tool as chat wants it."""
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def called(call_id: object, name: object, arguments: object) -> dict[str, Any]:
    """An earlier call of a tool, as a message of chat."""
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}
