"""An application with tools, on the real OpenAI SDK: what its stream accumulators make of an answer."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from openai import AsyncOpenAI

from tests.support.json_type import Json


def tool(name: str, properties: Json = None, **more: Json) -> Json:
    """A function tool; all its arguments are required."""
    given = properties or {}
    schema = {"type": "object", "properties": given, "required": list(given), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "parameters": schema, "strict": True, **more}}


WEATHER = tool("get_weather", {"city": {"type": "string"}}, description="Get the current weather of a city.")
TIME = tool("get_time", description="Get the current time.")
TOOLS = [WEATHER, TIME]
ASKS: Json = [{"role": "user", "content": "What is the weather in Paris?"}]


@dataclass(slots=True)
class Said:
    """What an application has of an answer."""

    content: str | None = None
    reasoning: str | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    finish: str | None = None

    @property
    def arguments(self) -> list[tuple[str, Json]]:
        return [(name, json.loads(text)) for name, text in self.calls]

    @property
    def assistant(self) -> Json:
        """The message for the history."""
        calls = [
            {"id": one, "type": "function", "function": {"name": name, "arguments": arguments}}
            for one, (name, arguments) in zip(self.ids, self.calls, strict=True)
        ]
        return {"role": "assistant", "content": self.content, **({"tool_calls": calls} if calls else {})}


def said_in(message: Json, finish: str | None) -> Said:
    calls = message.tool_calls or []
    assert all(call.type == "function" for call in calls)
    ids = [call.id for call in calls]
    assert len(set(ids)) == len(ids)
    assert all(ids)
    reasoning = getattr(message, "reasoning", None) or None
    assert reasoning == (getattr(message, "reasoning_content", None) or None)
    pairs = [(call.function.name, call.function.arguments) for call in calls]
    return Said(message.content or None, reasoning, pairs, ids, finish)


async def whole(sdk: AsyncOpenAI, messages: Json = ASKS, tools: Sequence[Json] = TOOLS, **more: Json) -> Said:
    """An answer that is not streamed."""
    offered: Json = {"tools": list(tools)} if tools else {}
    answer = await sdk.chat.completions.create(model="m", messages=messages, **offered, **more)
    (choice,) = answer.choices
    return said_in(choice.message, choice.finish_reason)


async def accumulated(sdk: AsyncOpenAI, messages: Json = ASKS, tools: Sequence[Json] = TOOLS, **more: Json) -> Said:
    """A stream, through the SDK's own accumulator."""
    offered: Json = {"tools": list(tools)} if tools else {}
    async with sdk.chat.completions.stream(model="m", messages=messages, **offered, **more) as stream:
        async for _ in stream:
            pass
        (choice,) = (await stream.get_final_completion()).choices
    return said_in(choice.message, choice.finish_reason)


async def streamed(sdk: AsyncOpenAI, messages: Json = ASKS, tools: Sequence[Json] = TOOLS, **more: Json) -> Said:
    """A stream put together by hand, as most applications do, after checks of what OpenAI's streams promise."""
    offered: Json = {"tools": list(tools)} if tools else {}
    said = Said()
    async for chunk in await sdk.chat.completions.create(model="m", messages=messages, stream=True, **offered, **more):
        for choice in chunk.choices:
            assert said.finish is None, "something after the finish reason"
            delta = choice.delta
            reasoning = getattr(delta, "reasoning", None)
            assert reasoning == getattr(delta, "reasoning_content", None)
            said.reasoning = (said.reasoning or "") + reasoning if reasoning else said.reasoning
            said.content = (said.content or "") + delta.content if delta.content else said.content
            for call in delta.tool_calls or ():
                _take(said, call)
            said.finish = choice.finish_reason
    return said


def _take(said: Said, call: Json) -> None:
    if call.index == len(said.calls):
        assert call.type == "function"
        assert call.id
        assert call.id not in said.ids
        assert call.function.name
        assert call.function.arguments == ""
        said.ids.append(call.id)
        said.calls.append((call.function.name, ""))
        return
    assert call.index == len(said.calls) - 1, "a call that is not the last one goes on"
    assert (call.id, call.type, call.function.name) == (None, None, None)
    assert call.function.arguments
    name, arguments = said.calls[-1]
    said.calls[-1] = (name, arguments + call.function.arguments)


READERS = {"whole": whole, "accumulated": accumulated, "streamed": streamed}
"""The ways in which an application may read an answer."""
