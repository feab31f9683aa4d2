"""vLLM's own parsers, recorded on one sample each, against ours and our normaliser."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.wire.toolcalls import parse
from gateway.wire.toolcalls.normalise import Normaliser
from gateway.wire.toolcalls.quirks import quirks_for

SAMPLES: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "vllm_samples.json").read_text(encoding="utf-8")
)["parsers"]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
        },
    }
]
LOST_BY_ITS_STREAM = {"functiongemma", "jamba", "phi4_mini_json"}
"""What these parsers streamed cannot be put right: parts of it were never sent."""
LOSES_TEXT = {"minicpm5"}
"""These dropped the text before the call."""


@pytest.mark.parametrize("parser", SAMPLES)
def test_the_raw_text_gives_the_calls_that_vllm_finds_in_the_whole(parser: str) -> None:
    """Every engine's parser name is a format, and its sample gives the same calls, in any pieces."""
    sample = SAMPLES[parser]
    for text in (sample["text"], list(sample["text"])):
        parsed = parse(text, format=parser, tools=TOOLS)
        assert [[call.name, call.arguments] for call in parsed.calls] == sample["calls"]
        if parser not in LOSES_TEXT:
            assert (parsed.content or "").strip() == (sample["content"] or "").strip()


@pytest.mark.parametrize("parser", [name for name in SAMPLES if name not in LOST_BY_ITS_STREAM])
def test_the_normalised_stream_gives_them_too(parser: str) -> None:
    """vLLM's streamed deltas, put right, are the calls that its whole-text parser finds."""
    normaliser = Normaliser(quirks=quirks_for("vllm", "0.32.0", parser))
    calls: dict[int, list[str]] = {}
    reason = None
    for choice in [*_choices(SAMPLES[parser]["deltas"]), {"index": 0, "delta": {}, "finish_reason": "stop"}]:
        for out in normaliser.feed(choice):
            reason = out.get("finish_reason") or reason
            for entry in out["delta"].get("tool_calls") or ():
                if "id" in entry:
                    calls[entry["index"]] = [entry["function"]["name"], ""]
                calls[entry["index"]][1] += entry["function"]["arguments"]
    assert list(calls) == list(range(len(calls)))
    assert list(calls.values()) == SAMPLES[parser]["calls"]
    assert reason == "tool_calls"


def _choices(deltas: list[list[Any]]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for kind, *rest in deltas:
        if kind == "c":
            made.append({"index": 0, "delta": {"content": rest[0]}, "finish_reason": None})
            continue
        index, call_id, name, arguments = rest
        entry: dict[str, Any] = {"index": index, "function": {}}
        if name:
            entry |= {"id": call_id, "type": "function"}
            entry["function"]["name"] = name
        if arguments is not None:
            entry["function"]["arguments"] = arguments
        made.append({"index": 0, "delta": {"content": None, "tool_calls": [entry]}, "finish_reason": None})
    return made
