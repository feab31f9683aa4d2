"""Writes an answer in a model family's own markup, as the model behind the engine would generate it."""

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import assert_never

from engines.simulator.script import Call, Segment, Thought


class Markup(StrEnum):
    """How a model writes tool calls."""

    HERMES = "hermes"
    LLAMA3 = "llama3"
    MISTRAL = "mistral"


def write(segments: Sequence[Segment], markup: Markup) -> str:
    """The text that the model generates for these segments."""
    out: list[str] = []
    calls: list[str] = []
    for part in segments:
        match part:
            case str():
                out.append(part)
            case Thought():
                out.append(f"<think>\n{part.text}\n</think>\n\n")
            case Call():
                calls.append(_call(part, markup))
            case _:
                assert_never(part)
    return "".join(out) + _joined(calls, markup)


def _call(call: Call, markup: Markup) -> str:
    name = json.dumps(call.name)
    match markup:
        case Markup.HERMES:
            closing = "}" if _whole(call.arguments) else ""
            return f'<tool_call>\n{{"name": {name}, "arguments": {call.arguments}{closing}\n</tool_call>'
        case Markup.LLAMA3:
            return f'{{"name": {name}, "parameters": {call.arguments}}}'
        case Markup.MISTRAL:
            return f'{{"name": {name}, "arguments": {call.arguments}}}'
        case _:
            assert_never(markup)


def _whole(arguments: str) -> bool:
    try:
        json.loads(arguments)
    except ValueError:
        return False
    return True


def _joined(calls: Sequence[str], markup: Markup) -> str:
    if not calls:
        return ""
    match markup:
        case Markup.HERMES:
            return "\n".join(calls)
        case Markup.LLAMA3:
            return "; ".join(calls)
        case Markup.MISTRAL:
            return f"[TOOL_CALLS] [{', '.join(calls)}]"
        case _:
            assert_never(markup)
