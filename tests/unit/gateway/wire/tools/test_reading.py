"""Answers to requests with tools, as the stage gives them on: recorded ones, and habits of engines."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from engines.profile import EngineKind, Operation
from engines.registry import profile
from gateway.wire.answer import AnswerNames
from gateway.wire.shape import Shape
from gateway.wire.shape.whole import shape_answer
from gateway.wire.stream import StreamRelay
from gateway.wire.tools import Facts, Parse, Reading, ReasoningRule, plan, prepare
from tests import contract
from tests.support.json_type import Json
from tests.support.openai_bytes import DONE, compact, completion, delta, event
from tests.unit.gateway.wire.shape.shaping import NOW, OWN, documents
from tests.unit.gateway.wire.tools.asking import NAMED, TOOLS, asked, facts_of

RECORDINGS = Path(contract.__file__).parent / "recordings"
MODEL = "asked"
CHAT = Operation.CHAT
VLLM, TRTLLM, TRITON = EngineKind.VLLM, EngineKind.TRTLLM, EngineKind.TRITON


class Through:
    """One request's way: its plan, and its answers through the chain of its engine."""

    def __init__(self, facts: Facts, rule: ReasoningRule | None = None, **request: Json) -> None:
        tools, choice = request.pop("tools", None), request.pop("tool_choice", None)
        self.ask, self.members = asked(tools or TOOLS, choice, **request)
        tooled = prepare(plan(facts, self.ask), facts, self.ask, self.members)
        assert tooled.reading is not None
        self.reading: Reading = tooled.reading
        self.shape = Shape(CHAT, profile(facts.kind).answers)
        self.rule = rule or ReasoningRule()
        self.leaks: list[str] = []

    def stream(self, events: Sequence[bytes]) -> bytes:
        stage = self.reading.stage(self.rule, 1, self.leaks.append)
        chain = self.shape.chain(self.members, self.members, stage)
        relay = StreamRelay(AnswerNames(CHAT, MODEL), OWN, chain, lambda: NOW)
        out = b"".join(relay.feed(one) for one in events)
        return out if relay.done else out + (relay.end(1) or b"")

    def whole(self, answer: Json) -> Json:
        stage = self.reading.stage(self.rule, 1, self.leaks.append)
        chain = self.shape.chain(self.members, self.members, stage)
        return json.loads(shape_answer(compact(answer), AnswerNames(CHAT, MODEL), OWN, chain, lambda: NOW))


def said(out: bytes) -> tuple[str, str, list[list[str]], str | None]:
    """Content, reasoning, calls (id, name, arguments) and finish reason, after checks of what OpenAI promises."""
    content, reasoning, finish = "", "", None
    calls: list[list[str]] = []
    for document in documents(out):
        for choice in document["choices"]:
            assert finish is None
            part = choice["delta"]
            content += part.get("content") or ""
            assert part.get("reasoning") == part.get("reasoning_content")
            reasoning += part.get("reasoning") or ""
            for call in part.get("tool_calls") or ():
                if call["index"] == len(calls):
                    assert call["function"].keys() == {"name", "arguments"}
                    assert call["function"]["arguments"] == ""
                    assert call["type"] == "function"
                    calls.append([call["id"], call["function"]["name"], ""])
                else:
                    assert call["index"] == len(calls) - 1
                    assert call.keys() == {"index", "function"}
                    assert call["function"].keys() == {"arguments"}
                    calls[-1][2] += call["function"]["arguments"]
            finish = choice.get("finish_reason")
    assert len({one[0] for one in calls}) == len(calls)
    return content, reasoning, calls, finish


def call(index: int, **members: Json) -> Json:
    return {"tool_calls": [{"index": index, **members}]}


def events_of(*deltas: Json, finish: str = "tool_calls") -> list[bytes]:
    made = [delta(), *(delta() for _ in deltas), delta(finish=finish)]
    for one, says in zip(made, ({"role": "assistant", "content": ""}, *deltas, {}), strict=True):
        one["choices"][0]["delta"] = says
    return [*(event(one | {"model": MODEL}) for one in made), DONE]


CLEAN = events_of(
    {"content": "Let me see. "},
    call(0, id="call_1", type="function", function={"name": "get_weather", "arguments": ""}),
    call(0, function={"arguments": '{"city": '}),
    call(0, function={"arguments": '"Paris"}'}),
    call(1, id="call_2", type="function", function={"name": "get_time", "arguments": ""}),
    call(1, function={"arguments": "{}"}),
)


@pytest.mark.parametrize("parse", [Parse.AUTO, Parse.ENGINE, Parse.OFF])
def test_a_clean_stream_passes_byte_for_byte(parse: Parse) -> None:
    through = Through(facts_of(VLLM, parser="hermes", parse=parse), stream_options={"include_usage": True})

    assert through.stream(CLEAN) == b"".join(CLEAN)
    assert through.leaks == []


def test_a_clean_answer_passes_byte_for_byte() -> None:
    through = Through(facts_of(VLLM, parser="hermes"))
    answer = completion("Hi.", model=MODEL)
    stage = through.reading.stage(through.rule, 1, through.leaks.append)
    chain = through.shape.chain(through.members, through.members, stage)
    body = compact(answer)

    assert shape_answer(body, AnswerNames(CHAT, MODEL), OWN, chain, lambda: NOW) is body


def test_what_goes_with_the_whole_event_comes_with_its_last_part() -> None:
    through = Through(facts_of(VLLM, parser="none", form="hermes"), stream_options={"include_usage": True})
    text = 'Hi.<tool_call>{"name": "get_time", "arguments": {}}</tool_call>'
    first, second = delta(text), delta(finish="stop")
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    parts = documents(through.stream([event(first | {"usage": usage}), event(second | {"usage": usage}), DONE]))

    assert len(parts) > 3
    assert sum("usage" in part for part in parts) == 2
    assert "usage" in parts[-1]


def test_triton_names_a_forced_tool_in_every_delta_and_gives_no_id() -> None:
    """Recording `tools_llama3_named_stream`; the SDK would make `get_weatherget_weather` of it."""
    pieces = ['{"ci', 'ty": "Par', 'is"}', "\n"]
    events = events_of(
        *({"tool_calls": [{"index": 0, "function": {"name": "get_weather", "arguments": one}}]} for one in pieces),
        finish="stop",
    )
    content, _, calls, finish = said(Through(facts_of(TRITON), tool_choice=NAMED).stream(events))

    ((call_id, *rest),) = calls
    assert (content, rest, finish) == ("", ["get_weather", '{"city": "Paris"}'], "stop")
    assert call_id.startswith("call_")


def test_trtllm_repeats_types_and_sends_empty_deltas() -> None:
    """`tools_auto_q_one_stream`: a delta of nothing for every token, and no arguments for a call that has none."""
    nothing = {"content": "", "reasoning_content": ""}
    events = events_of(
        nothing,
        nothing | call(0, id="chatcmpl-tool-1", type="function", function={"name": "get_weather", "arguments": ""}),
        nothing | call(0, type="function", function={"arguments": '{"city": "'}),
        nothing,
        nothing | call(0, type="function", function={"arguments": 'Paris"}'}),
        nothing | call(1, id="chatcmpl-tool-2", type="function", function={"name": "get_time", "arguments": ""}),
        nothing,
    )
    content, reasoning, calls, finish = said(Through(facts_of(TRTLLM, parser="qwen3")).stream(events))

    assert (content, reasoning, finish) == ("", "", "tool_calls")
    assert [one[1:] for one in calls] == [["get_weather", '{"city": "Paris"}'], ["get_time", "{}"]]
    assert [one[0] for one in calls] == ["chatcmpl-tool-1", "chatcmpl-tool-2"]


def test_trtllm_sends_a_call_of_minimax_again_and_again() -> None:
    """The whole arguments with every parameter, the text before it too, and the call once more at the end."""
    before = {"content": "Let me see."}
    events = events_of(
        before,
        before | call(0, id="a", type="function", function={"name": "get_weather", "arguments": ""}),
        before | call(0, type="function", function={"arguments": '{"city": "Paris"}'}),
        before | call(0, type="function", function={"arguments": '{"city": "Paris", "days": 2}'}),
        call(1, id="b", type="function", function={"name": "get_weather", "arguments": ""}),
    )
    content, _, calls, _ = said(Through(facts_of(TRTLLM, parser="minimax_m2")).stream(events))

    assert content == "Let me see."
    assert [one[1:] for one in calls] == [["get_weather", '{"city": "Paris", "days": 2}']]


def test_the_truth_about_the_end() -> None:
    """`length` wins; a named tool stops."""
    head = call(0, id="x", type="function", function={"name": "get_weather", "arguments": ""})
    cut = events_of(head, call(0, function={"arguments": '{"city": "Par'}), finish="length")
    assert said(Through(facts_of(VLLM, parser="hermes")).stream(cut))[3] == "length"
    named = events_of(head, call(0, function={"arguments": '{"city": "Paris"}'}), finish="tool_calls")
    assert said(Through(facts_of(TRTLLM, parser="qwen3"), tool_choice=NAMED).stream(named))[3] == "stop"


def test_one_tool_that_stood_for_all_is_not_seen() -> None:
    through = Through(facts_of(TRITON), tool_choice="required")
    arguments = '{"name": "get_weather", "parameters": {"city": "Paris"}}'
    pieces = [arguments[start : start + 5] for start in range(0, len(arguments), 5)]
    events = events_of(
        *({"tool_calls": [{"index": 0, "function": {"name": "call_tool", "arguments": one}}]} for one in pieces),
        finish="stop",
    )
    content, _, calls, finish = said(through.stream(events))
    assert (content, [one[1:] for one in calls]) == ("", [["get_weather", '{"city": "Paris"}']])
    assert finish == "tool_calls"

    answer = completion("")
    function = {"name": "call_tool", "arguments": arguments}
    answer["choices"][0]["message"]["tool_calls"] = [{"id": "x", "type": "function", "function": function}]
    (choice,) = through.whole(answer)["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": '{"city": "Paris"}'}


def test_a_prompt_that_opens_the_reasoning() -> None:
    """Unless the engine splits it off by itself."""
    rule = ReasoningRule(opened=True)
    through = Through(facts_of(VLLM, parser="none", form="hermes"), rule)
    text = 'Hm.</think><tool_call>{"name": "get_time", "arguments": {}}</tool_call>'
    content, reasoning, calls, _ = said(through.stream(events_of({"content": text}, finish="stop")))
    assert (content, reasoning, [one[1:] for one in calls]) == ("", "Hm.", [["get_time", "{}"]])

    content, reasoning, _, _ = said(through.stream(events_of({"reasoning": "Hm."}, {"content": "Hi."}, finish="stop")))
    assert (content, reasoning) == ("Hi.", "Hm.")


# ---- recordings


def recorded(*, streamed: bool) -> Iterator[object]:
    """The recorded answers to requests with tools."""
    for kind in EngineKind:
        for line in (RECORDINGS / f"{kind.value}.jsonl").read_text().splitlines():
            case = json.loads(line)
            for at, exchange in enumerate(case.get("exchanges", ())):
                body = exchange.get("body")
                asks = isinstance(body, dict) and body.get("tools") and exchange["path"] == "/v1/chat/completions"
                good = exchange["status"] == 200 and exchange.get("complete", True)
                if kind is TRITON and asks and body.get("tool_choice") == "required":
                    continue  # the gateway never asks it so
                if asks and good and ("json" in exchange) is not streamed:
                    yield pytest.param(kind, exchange, id=f"{kind.value}-{case['case']}-{at}")


def way_of(kind: EngineKind, body: Mapping[str, Json]) -> Through:
    kept = {name: body[name] for name in ("tools", "tool_choice", "parallel_tool_calls") if body.get(name) is not None}
    return Through(facts_of(kind, parser="hermes" if kind is VLLM else None, parse=Parse.ENGINE), **kept)


def names_in(calls: Sequence[Mapping[str, Json]]) -> list[tuple[str, str]]:
    return [(one["function"]["name"], one["function"]["arguments"]) for one in calls]


@pytest.mark.parametrize(("kind", "exchange"), list(recorded(streamed=False)))
def test_recorded_answers(kind: EngineKind, exchange: Mapping[str, Json]) -> None:
    """Names and arguments stay; the finish reason is OpenAI's."""
    answer = way_of(kind, exchange["body"]).whole(exchange["json"])
    for choice, before in zip(answer["choices"], exchange["json"]["choices"], strict=True):
        calls = choice["message"].get("tool_calls") or []
        assert names_in(calls) == names_in(before["message"].get("tool_calls") or [])
        ids = [one["id"] for one in calls]
        assert len(set(ids)) == len(ids)
        named = isinstance(exchange["body"].get("tool_choice"), dict)
        if before["finish_reason"] != "length":
            assert choice["finish_reason"] == ("tool_calls" if calls and not named else "stop")


@pytest.mark.parametrize(("kind", "exchange"), list(recorded(streamed=True)))
def test_recorded_streams(kind: EngineKind, exchange: Mapping[str, Json]) -> None:
    """Each call has its head once and some arguments. (What those are cannot be told: alike events were left out.)"""
    sent = [one.encode() for one in exchange["events"]]
    if any(b'"error"' in one for one in sent):
        return
    _, _, calls, finish = said(way_of(kind, exchange["body"]).stream(sent))
    assert finish is not None
    assert all(name and (finish == "length" or arguments) for _, name, arguments in calls)
