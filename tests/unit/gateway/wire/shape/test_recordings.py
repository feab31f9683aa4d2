"""Every chat and completions answer that was recorded of an engine, as a client of the gateway gets it."""

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel

from engines.profile import EngineKind, Operation, ParameterRefused
from gateway.wire.shape import Extras
from tests import contract
from tests.support.json_type import Json
from tests.support.openai_bytes import compact
from tests.unit.gateway.wire.shape.shaping import MODEL, aggregated, documents, relay, stream, told, whole

RECORDINGS = Path(contract.__file__).parent / "recordings"
PATHS = {"/v1/chat/completions": Operation.CHAT, "/v1/completions": Operation.COMPLETIONS}


def recorded(*, streamed: bool) -> Iterator[object]:
    """The good answers of all engines, with the requests that brought them."""
    for kind in EngineKind:
        for line in (RECORDINGS / f"{kind.value}.jsonl").read_text().splitlines():
            case = json.loads(line)
            for at, exchange in enumerate(case.get("exchanges", ())):
                body, operation = exchange.get("body"), PATHS.get(exchange["path"])
                good = exchange["status"] == 200 and operation is not None and isinstance(body, dict)
                if good and ("json" in exchange) is not streamed and exchange.get("complete", True):
                    yield pytest.param(kind, operation, exchange, id=f"{kind.value}-{case['case']}-{at}")


def openai_like(body: Mapping[str, Json]) -> dict[str, Json]:
    """The request as a client of the gateway sends it, which asks for usage in streams."""
    asked = {name: value for name, value in body.items() if value is not None} | {"model": MODEL}
    if asked.get("stream"):
        asked["stream_options"] = {"include_usage": True}
    return asked


def chosen(answer: Mapping[str, Json]) -> list[tuple[int, Json]]:
    return [(choice["index"], choice["finish_reason"]) for choice in answer["choices"]]


@pytest.mark.parametrize(("kind", "operation", "exchange"), list(recorded(streamed=False)))
def test_a_recorded_answer_is_one_of_openai_s(
    kind: EngineKind, operation: Operation, exchange: Mapping[str, Json]
) -> None:
    body = openai_like(exchange["body"])
    try:
        made = json.loads(whole(kind, body, compact(exchange["json"]), operation=operation))
        bare = json.loads(whole(kind, body, compact(exchange["json"]), operation=operation, extras=Extras.STRIP))
    except ParameterRefused:
        pytest.skip("the gateway refuses this request")
    model: type[BaseModel] = ChatCompletion if operation is Operation.CHAT else Completion
    model.model_validate(made, strict=True)
    assert made["id"].startswith("chatcmpl-" if operation is Operation.CHAT else "cmpl-")
    assert made["model"] == MODEL
    _only_known(model.model_validate(bare, strict=True))
    for choice, before in zip(made["choices"], exchange["json"]["choices"], strict=True):
        _same_words(choice, before)
        _reason(kind, choice, before, made["usage"], body)


def _same_words(choice: Mapping[str, Json], before: Mapping[str, Json]) -> None:
    assert choice.get("logprobs") == before.get("logprobs")
    assert choice.get("text") == before.get("text")
    message, given = choice.get("message") or {}, before.get("message") or {}
    assert (message.get("content") or "") == (given.get("content") or "")
    assert message.get("tool_calls") == given.get("tool_calls")
    thought = given.get("reasoning") or given.get("reasoning_content")
    if thought:
        assert message["reasoning"] == message["reasoning_content"] == thought
    if message.get("tool_calls") and not given["content"]:
        assert message["content"] is None


def _reason(
    kind: EngineKind, choice: Mapping[str, Json], before: Mapping[str, Json], usage: Json, body: Mapping[str, Json]
) -> None:
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    at_limit = kind is EngineKind.TRITON and limit is not None and usage and usage["completion_tokens"] >= limit
    assert choice["finish_reason"] == ("length" if at_limit else before["finish_reason"])


def _only_known(answer: BaseModel) -> None:
    """No member that the SDK's models do not have, but reasoning."""
    extra = set(answer.model_extra or ()) - {"reasoning", "reasoning_content"}
    assert not extra, type(answer)
    for value in (getattr(answer, name) for name in type(answer).model_fields):
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, BaseModel):
                _only_known(inner)


def _events(exchange: Mapping[str, Json]) -> list[bytes]:
    return [one.encode() for one in exchange["events"]]


@pytest.mark.parametrize(("kind", "operation", "exchange"), list(recorded(streamed=True)))
def test_a_recorded_stream_is_one_of_openai_s(
    kind: EngineKind, operation: Operation, exchange: Mapping[str, Json]
) -> None:
    body = openai_like(exchange["body"])
    sent = _events(exchange)
    try:
        into = relay(kind, body, operation=operation)
        bare = relay(kind, body, operation=operation, extras=Extras.STRIP)
    except ParameterRefused:
        pytest.skip("the gateway refuses this request")
    out = stream(into, sent, 1)
    if into.error is not None:
        assert b'"error"' not in out
        return
    events = documents(out)
    for one in events:
        _valid(operation, one)
        assert one["model"] == MODEL
    assert len({one["id"] for one in events}) == 1
    for one in documents(stream(bare, sent, 1)):
        _only_known(_valid(operation, one))
    _frame(kind, operation, events)
    before = aggregated([json.loads(one[6:]) for one in sent if b"[DONE]" not in one])
    _same_told(before, aggregated(events), kind)


def _valid(operation: Operation, event: Mapping[str, Json]) -> BaseModel:
    if operation is Operation.CHAT:
        event = copy.deepcopy(event)
        for choice in event["choices"]:  # log probabilities are passed on as they are; trtllm-serve's leave this out
            for token in (choice.get("logprobs") or {}).get("content") or ():
                token.setdefault("top_logprobs", [])
        return ChatCompletionChunk.model_validate(event)
    # The SDK has no model of an event of this stream: its finish reason is null until the last.
    ended = [{**choice, "finish_reason": choice["finish_reason"] or "stop"} for choice in event["choices"]]
    return Completion.model_validate({**event, "choices": ended})


def _frame(kind: EngineKind, operation: Operation, events: list[dict[str, Json]]) -> None:
    """A role once and first, no delta of nothing, usage last."""
    begun: set[int] = set()
    for event in events:
        for choice in event["choices"]:
            if operation is Operation.COMPLETIONS:
                assert choice["text"] or choice["finish_reason"] or choice["logprobs"]
                continue
            role = choice["delta"].get("role")
            assert (role is None) is (choice["index"] in begun)
            begun.add(choice["index"])
            speaks = any(value not in (None, "", []) for value in choice["delta"].values())
            more = {name: value for name, value in choice.items() if name not in ("index", "delta")}
            assert speaks or any(value is not None for value in more.values())
            assert kind is EngineKind.VLLM or role or None not in choice["delta"].values()
    assert all(event["choices"] for event in events[:-1])


def _same_told(before: Mapping[str, Json], after: Mapping[str, Json], kind: EngineKind) -> None:
    assert after["usage"] == before["usage"]
    assert after["choices"].keys() == before["choices"].keys()
    for index, choice in before["choices"].items():
        now = after["choices"][index]
        thought = choice["message"].get("reasoning") or choice["message"].get("reasoning_content")
        assert (now["message"].get("content") or "") == (choice["message"].get("content") or "")
        assert now["message"].get("tool_calls") == choice["message"].get("tool_calls")
        assert now["message"].get("reasoning") == now["message"].get("reasoning_content") == (thought or None)
        assert (now["text"], now.get("logprobs")) == (choice["text"], choice.get("logprobs"))
        assert now["finish_reason"] == choice["finish_reason"] or kind is EngineKind.TRITON


PAIRS = [
    (EngineKind.VLLM, "think_basic", "think_stream"),
    (EngineKind.VLLM, "tool_auto", "tool_auto_stream"),
    (EngineKind.TRTLLM, "chat_nonstream", "chat_stream"),
    (EngineKind.TRTLLM, "chat_length", "chat_length_stream"),
    (EngineKind.TRTLLM, "reasoning_qwen3", "reasoning_qwen3_stream"),
    (EngineKind.TRTLLM, "tools_auto_q_two", "tools_auto_q_two_stream"),
    (EngineKind.TRITON, "chat_nonstream", "chat_stream_include_usage"),
    (EngineKind.TRITON, "tools_llama3_auto_l3_two", "tools_llama3_auto_l3_two_stream"),
]
"""The same question in both modes; vLLM's streams were recorded with their middle left out."""


@pytest.mark.parametrize(("kind", "calm", "streamed"), PAIRS, ids=[f"{kind}-{calm}" for kind, calm, _ in PAIRS])
def test_a_recorded_stream_tells_what_the_whole_answer_tells(kind: EngineKind, calm: str, streamed: str) -> None:
    cases = {
        case["case"]: case["exchanges"][0]
        for line in (RECORDINGS / f"{kind.value}.jsonl").read_text().splitlines()
        if (case := json.loads(line)).get("exchanges")
    }
    body = openai_like(cases[calm]["body"])
    answer = told(json.loads(whole(kind, body, compact(cases[calm]["json"]))))
    asking = openai_like(cases[streamed]["body"])
    one = aggregated(documents(stream(relay(kind, asking), _events(cases[streamed]))))["choices"][0]
    assert one["finish_reason"] == answer["choices"][0]["finish_reason"]
    assert one["message"].keys() - {"content"} == answer["choices"][0]["message"].keys() - {"content"}
    if kind is not EngineKind.VLLM:
        assert (one["message"].get("content") or "") == (answer["choices"][0]["message"].get("content") or "")
        assert _calls(one) == _calls(answer["choices"][0])


def _calls(choice: Mapping[str, Json]) -> list[Json]:
    return [
        (call["name"], json.loads(call["arguments"] or "{}"))
        for call in choice["message"].get("tool_calls", {}).values()
    ]
