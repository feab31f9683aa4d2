"""Streams and answers through the shape of an engine kind, and what a client that follows a stream has at its end."""

import json
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from engines.profile import EngineKind, Members, Operation
from engines.registry import profile
from gateway.wire.answer import AnswerNames
from gateway.wire.shape import Extras, ReasoningField, Shape
from gateway.wire.shape.whole import shape_answer
from gateway.wire.sse import EventCutter, event_data
from gateway.wire.stream import StreamRelay
from tests.support.json_type import Json

OWN = b"0" * 24
MODEL = "asked"
NOW = 1_800_000_000


def members(body: Mapping[str, Json]) -> Members:
    return {name: msgspec.Raw(json.dumps(value).encode()) for name, value in body.items()}


def relay(
    kind: EngineKind,
    body: Mapping[str, Json],
    *,
    operation: Operation = Operation.CHAT,
    extras: Extras = Extras.KEEP,
    reasoning: ReasoningField = ReasoningField.BOTH,
) -> StreamRelay:
    """A relay for the answer to a request, as the gateway makes one."""
    asked = members(body)
    sent = profile(kind).prepare(operation, asked).members or asked
    shape = Shape(operation, profile(kind).answers, extras, reasoning)
    return StreamRelay(AnswerNames(operation, MODEL), OWN, shape.chain(asked, sent), lambda: NOW)


def stream(into: StreamRelay, parts: Iterable[bytes], expected: int = 1) -> bytes:
    """What the client gets of a stream that ends properly."""
    out = b"".join([into.feed(part) for part in parts])
    return out if into.done else out + (into.end(expected) or b"")


def whole(
    kind: EngineKind,
    body: Mapping[str, Json],
    answer: bytes,
    *,
    operation: Operation = Operation.CHAT,
    extras: Extras = Extras.KEEP,
    reasoning: ReasoningField = ReasoningField.BOTH,
) -> bytes:
    """A whole answer as the client gets it."""
    asked = members(body)
    sent = profile(kind).prepare(operation, asked).members or asked
    chain = Shape(operation, profile(kind).answers, extras, reasoning).chain(asked, sent)
    return shape_answer(answer, AnswerNames(operation, MODEL), OWN, chain, lambda: NOW)


def documents(out: bytes) -> list[dict[str, Json]]:
    """The events of a stream that ends with ``[DONE]``, once."""
    found = [event_data(one) for one in EventCutter().feed(out)]
    assert found[-1] == b"[DONE]"
    return [json.loads(data or b"") for data in found[:-1]]


def aggregated(events: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """The answer that a stream tells piece by piece."""
    choices: dict[int, dict[str, Json]] = {}
    usage = None
    for event in events:
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            said = choices.setdefault(choice["index"], {"message": {}, "text": "", "finish_reason": None})
            said["finish_reason"] = choice.get("finish_reason") or said["finish_reason"]
            said["text"] += choice.get("text") or ""
            if choice.get("logprobs"):
                said.setdefault("logprobs", []).append(choice["logprobs"])
            _add(said["message"], choice.get("delta") or {})
    return {"choices": choices, "usage": usage}


def _add(message: dict[str, Json], delta: Mapping[str, Json]) -> None:
    for name, value in delta.items():
        if name == "tool_calls":
            for entry in value or ():
                call = message.setdefault("tool_calls", {}).setdefault(entry["index"], {"name": "", "arguments": ""})
                function = entry.get("function") or {}
                call["name"] = call["name"] or function.get("name") or ""
                call["arguments"] += function.get("arguments") or ""
        elif isinstance(value, str):
            message[name] = message.get(name, "") + value


def told(answer: Mapping[str, Json]) -> dict[str, Json]:
    """A whole answer in the form of `aggregated`."""
    choices = {}
    for choice in answer["choices"]:
        message = dict(choice.get("message") or {})
        calls = message.pop("tool_calls", None) or ()
        said: dict[str, Json] = {
            name: value for name, value in message.items() if isinstance(value, str) and (value or name == "content")
        }
        if calls:
            said["tool_calls"] = {at: dict(call["function"]) for at, call in enumerate(calls)}
        choices[choice["index"]] = {
            "message": said,
            "text": choice.get("text") or "",
            "finish_reason": choice["finish_reason"],
        }
        if choice.get("logprobs"):
            choices[choice["index"]]["logprobs"] = choice["logprobs"]
    return {"choices": choices, "usage": answer.get("usage")}
