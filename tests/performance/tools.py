"""What an event of a stream costs when the request has tools: counted by the tests, timed by hand.

    python -m tests.performance.tools

prints microseconds and calls per event, whoever finds the calls. The first row, a stream without tools, is what the
others are to be compared with: the machine decides the microseconds of all of them.
"""

import gc
import sys
import time
from collections.abc import Mapping
from typing import Final

from tests.performance.rig import Rig
from tests.performance.scenarios import HEAD, MODEL, Step, chat, event
from tests.performance.work import STEPS, calls, without_collector
from tests.support.json_type import Json

TOOL: Final[Json] = {
    "type": "function",
    "function": {"name": "write", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}},
}
_WARM_UP: Final = 300
_ROUNDS: Final = 30
_STEPS: Final = 300

OPENINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "hermes": ('<tool_call>\n{"name": "write", "arguments": {"text": "', "Once"),
    "qwen3_xml": ("<tool_call>\n<function=write>\n<parameter=text>\n", "Once"),
    "harmony": ('<|channel|>commentary to=functions.write <|constrain|>json<|message|>{"text": "', "Once"),
    "kimi_k2": ('<|tool_call_begin|>functions.write:0<|tool_call_argument_begin|>{"text": "', "Once"),
    "gemma4": ('<|tool_call>call:write{text:<|"|>', "Once"),
}
"""How a call begins whose arguments the next events bring."""


def _stream(first: list[Json], packet: Json, *, tools: bool, form: str = "auto", parser: str | None = None) -> Step:
    of_engine = {} if parser is None else {"parser": parser}
    made = Rig(
        {
            "engines": {"engine": {"kind": "vllm", "urls": ["http://10.0.0.1:8000"], **of_engine}},
            "models": {MODEL: {"engine": "engine", "tools": {"format": form}}},
        }
    )
    made.connect_engines()
    client = made.client()
    client.data_received(chat(MODEL, stream=True, tools=[TOOL]) if tools else chat(MODEL, stream=True))
    engine = made.asked()
    engine.data_received(HEAD + event(MODEL, {"role": "assistant", "content": ""}))
    for delta in first:
        engine.data_received(event(MODEL, delta))
    data = event(MODEL, packet)
    return lambda: engine.data_received(data)


def _contents(*texts: str) -> list[Json]:
    return [{"content": text} for text in texts]


def _call(**entry: Json) -> Json:
    return {"tool_calls": [{"index": 0, **entry}]}


def steps() -> dict[str, Step]:
    """A step for each way in which an event may be read; the first is without tools."""
    word: Json = {"content": " upon a time"}
    head = _call(id="chatcmpl-tool-0123456789", type="function", function={"name": "write", "arguments": ""})
    began = [head, *(_call(function={"arguments": text}) for text in ('{"text": "', "Once"))]
    made = {
        "without tools": _stream(_contents("a", "b"), word, tools=False),
        "text, read here": _stream(_contents("a", "b"), word, tools=True, form="hermes", parser="none"),
        "reasoning, read here": _stream(_contents("<think>", "b"), word, tools=True, form="hermes", parser="none"),
        "text, engine parses": _stream(_contents("a", "b"), word, tools=True, parser="hermes"),
        "arguments, engine parses": _stream(
            began, _call(function={"arguments": " upon a time"}), tools=True, parser="hermes"
        ),
    }
    for form, texts in OPENINGS.items():
        made[f"arguments, {form}"] = _stream(_contents(*texts), word, tools=True, form=form, parser="none")
    return made


def counted(step: Step) -> float:
    """Calls per step, of Python functions and of C functions."""
    for _ in range(_WARM_UP):
        step()
    with without_collector():
        python, c = calls(step)
    return (python.total() + c.total()) / STEPS


def timed(step: Step) -> float:
    """Microseconds per step: the least of many rounds."""
    for _ in range(_WARM_UP):
        step()
    best = float("inf")
    gc.disable()
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        for _ in range(_STEPS):
            step()
        best = min(best, (time.perf_counter() - began) / _STEPS)
    gc.enable()
    return best * 1e6


def main() -> None:
    for name, step in steps().items():
        sys.stdout.write(f"{name:28}{timed(step):8.2f} µs{counted(step):8.0f} calls\n")


if __name__ == "__main__":
    main()
