"""What the model sees of a request: the last message's text, the tools, the size of the prompt."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from engines.simulator import tokens
from engines.simulator.script import Answer, Call, Thought, Turn

_PER_MESSAGE = 4
"""Tokens that a chat template adds around each message."""


def text_of(content: object) -> str:
    """The text of a message's content; parts are joined by newlines."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = (part.get("text", "") if isinstance(part, dict) else part for part in content)
        return "\n".join(text for text in texts if isinstance(text, str))
    return ""


def called_functions(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The functions of an earlier answer's tool calls, as far as they are objects."""
    calls = message.get("tool_calls")
    found = (call.get("function") for call in calls if isinstance(call, dict)) if isinstance(calls, list) else ()
    return [function for function in found if isinstance(function, dict)]


def tool_schemas(tools: object) -> dict[str, Mapping[str, object]]:
    """Name to parameters schema of the request's tools."""
    found: dict[str, Mapping[str, object]] = {}
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            parameters = function.get("parameters")
            found[function["name"]] = parameters if isinstance(parameters, dict) else {}
    return found


def turn(messages: Sequence[Mapping[str, Any]], tools: object, forced: str | None = None) -> Turn:
    """What the script is asked."""
    last = messages[-1] if messages else {}
    asked = next((text_of(each.get("content")) for each in reversed(messages) if each.get("role") == "user"), "")
    if last.get("role") == "tool":
        return Turn(asked, tool_schemas(tools), text_of(last.get("content")), asked, forced)
    text = text_of(last.get("content")) if last.get("role") != "function" else asked
    return Turn(text, tool_schemas(tools), None, asked, forced)


def prompt_tokens(messages: Sequence[Mapping[str, Any]], tools: object = None) -> int:
    """Tokens of a chat prompt."""
    total = sum(_PER_MESSAGE + tokens.count(text_of(message.get("content"))) for message in messages)
    return total + sum(8 + tokens.count(name) for name in tool_schemas(tools))


def first_call(answer: Answer) -> Call | None:
    """The first tool call of an answer."""
    return next((part for part in answer.segments if isinstance(part, Call)), None)


def one_call(answer: Answer) -> Answer:
    """The answer with its first call only, as a grammar makes it that allows no second one."""
    first = first_call(answer)
    kept = tuple(part for part in answer.segments if not isinstance(part, Call) or part is first)
    return replace(answer, segments=kept)


def only_calls(answer: Answer) -> Answer:
    """The answer with its reasoning and its first call, as a grammar makes it that asks for a call."""
    first = first_call(answer)
    kept = tuple(part for part in answer.segments if isinstance(part, Thought) or part is first)
    return replace(answer, segments=kept)
