"""What holds for every stream: packets do not matter, shaping twice changes no more, a clean stream is left alone."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.profile import EngineKind, Operation
from gateway.wire.shape import Extras, ReasoningField
from gateway.wire.sse import DONE, EventCutter
from tests.support.json_type import Json
from tests.support.openai_bytes import compact, event
from tests.unit.gateway.wire.shape.shaping import MODEL, aggregated, documents, relay, stream, told, whole
from tests.unit.gateway.wire.strategies import cuts, texts

ID = "chatcmpl-0123456789abcdef"
kinds = st.sampled_from(list(EngineKind))
fields = st.sampled_from(list(ReasoningField))
extras = st.sampled_from(list(Extras))
words = texts.filter(bool)
calls = st.fixed_dictionaries(
    {"index": st.integers(0, 1), "function": st.fixed_dictionaries({"arguments": words})},
    optional={"id": words, "type": st.just("function")},
)
odd_deltas = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from([None, "assistant"]),
        "content": texts | st.none(),
        "reasoning": texts | st.none(),
        "reasoning_content": texts | st.none(),
        "tool_calls": st.lists(calls, max_size=2) | st.none(),
        "function_call": st.none(),
    },
)
usages = st.fixed_dictionaries(
    {name: st.integers(0, 9) for name in ("prompt_tokens", "completion_tokens", "total_tokens")},
    optional={"prompt_tokens_details": st.none()},
)
logprobs = st.none() | st.fixed_dictionaries({"content": st.lists(st.floats(-9, 0), max_size=2)})


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Json]:
    body: dict[str, Json] = {"model": MODEL, "messages": [], "stream": True}
    if draw(st.booleans()):
        body["stream_options"] = {"include_usage": True}
    return body | draw(st.fixed_dictionaries({}, optional={"max_tokens": st.integers(1, 9)}))


def chunk(choices: Json, **more: Json) -> dict[str, Json]:
    return {
        "id": ID,
        "object": "chat.completion.chunk",
        "created": 1,
        "model": MODEL,
        "choices": choices,
        **more,
    }


def choice(delta: Json, finish: str | None = None, **more: Json) -> dict[str, Json]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish, **more}


@st.composite
def odd_streams(draw: st.DrawFn) -> list[bytes]:
    """The events of a whole stream with all that engines are known for, and more."""
    events = [chunk([choice({"role": "assistant", "content": draw(st.sampled_from(["", None]))})])]
    for delta in draw(st.lists(odd_deltas, max_size=6)):
        more: dict[str, Json] = draw(
            st.fixed_dictionaries({}, optional={"token_ids": st.none() | st.lists(st.integers(0, 9))})
        )
        one = chunk([choice(delta, logprobs=draw(logprobs), **more)])
        events += [one] * draw(st.integers(1, 3))
    events.append(chunk([choice(draw(odd_deltas), draw(st.sampled_from(["stop", "length", "tool_calls"])))]))
    if draw(st.booleans()):
        events = [one | {"usage": None} for one in events]
    if draw(st.booleans()):
        events.append(chunk([], usage=draw(usages)))
    spaced = draw(st.booleans())
    return [event(one) if not spaced else b"data: " + json.dumps(one).encode() + b"\n\n" for one in events]


@given(st.data(), kinds, bodies(), odd_streams(), extras, fields)
@settings(max_examples=200)
def test_packets_do_not_matter(
    data: st.DataObject,
    kind: EngineKind,
    body: dict[str, Json],
    events: list[bytes],
    strip: Extras,
    field: ReasoningField,
) -> None:
    sent = b"".join([*events, DONE])
    one_by_one = stream(relay(kind, body, extras=strip, reasoning=field), [*events, DONE])
    into = relay(kind, body, extras=strip, reasoning=field)
    assert stream(into, data.draw(cuts(sent))) == one_by_one
    assert stream(relay(kind, body, extras=strip, reasoning=field), [sent]) == one_by_one


@given(kinds, bodies(), odd_streams(), extras, fields)
def test_shaping_what_is_shaped_changes_nothing(
    kind: EngineKind, body: dict[str, Json], events: list[bytes], strip: Extras, field: ReasoningField
) -> None:
    once = stream(relay(kind, body, extras=strip, reasoning=field), [*events, DONE])
    again = stream(relay(kind, body, extras=strip, reasoning=field), EventCutter().feed(once))
    assert documents(again) == documents(once)


@given(kinds, bodies(), odd_streams(), fields)
def test_no_word_is_lost(kind: EngineKind, body: dict[str, Json], events: list[bytes], field: ReasoningField) -> None:
    before = aggregated([json.loads(one[6:]) for one in events])["choices"][0]
    after = aggregated(documents(stream(relay(kind, body, reasoning=field), [*events, DONE])))["choices"][0]
    for name in ("content", "tool_calls"):
        assert (after["message"].get(name) or None) == (before["message"].get(name) or None)
    assert after.get("logprobs") == before.get("logprobs")
    assert after["message"].get("role") == "assistant" or kind is EngineKind.VLLM


# ---- a stream as OpenAI's own API sends it

clean_first = st.sampled_from(
    [
        {"role": "assistant", "content": "", "refusal": None},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": None, "refusal": None},
    ]
)
clean_words = st.text(alphabet="abc 北😀.,", min_size=1, max_size=8)
clean_deltas = clean_words.map(lambda word: {"content": word}) | clean_words.map(
    lambda word: {"tool_calls": [{"index": 0, "function": {"arguments": word}}]}
)


@st.composite
def clean_streams(draw: st.DrawFn, *, usage: bool) -> list[bytes]:
    envelope = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "service_tier": st.just("default"),
                "system_fingerprint": st.just("fp_1"),
                "obfuscation": st.just("xyz"),
            },
        )
    )
    more: dict[str, Json] = {"usage": None} if usage else {}
    said = [draw(clean_first), *draw(st.lists(clean_deltas, max_size=6))]
    events = [chunk([choice(delta)], **envelope, **more) for delta in said]
    events.append(chunk([choice({}, draw(st.sampled_from(["stop", "length", "tool_calls"])))], **envelope, **more))
    if usage:
        counts = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        events.append(chunk([], **envelope, usage=counts))
    return [event(one) for one in events]


@given(st.data(), kinds, st.booleans(), extras)
def test_a_clean_stream_passes_byte_for_byte(data: st.DataObject, kind: EngineKind, usage: bool, strip: Extras) -> None:
    body: dict[str, Json] = {"model": MODEL, "messages": [], "stream": True, "max_tokens": 9}
    if usage:
        body["stream_options"] = {"include_usage": True}
    sent = b"".join([*data.draw(clean_streams(usage=usage)), DONE])
    assert stream(relay(kind, body, extras=strip), data.draw(cuts(sent))) == sent


@given(kinds, clean_words, st.sampled_from(["stop", "length", "tool_calls"]))
def test_a_clean_answer_passes_byte_for_byte(kind: EngineKind, text: str, reason: str) -> None:
    message: dict[str, Json] = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
    said = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    answer = {"id": ID, "object": "chat.completion", "created": 1, "model": MODEL, "choices": [said], "usage": usage}
    body = compact(answer)
    assert whole(kind, {"model": MODEL, "messages": [], "max_tokens": 9}, body) == body


@pytest.mark.parametrize("kind", list(EngineKind))
@given(
    thoughts=st.lists(words, max_size=3),
    said=st.lists(words, min_size=1, max_size=3),
    used=st.integers(0, 9),
    field=fields,
)
def test_a_stream_tells_what_the_whole_answer_tells(
    kind: EngineKind, thoughts: list[str], said: list[str], used: int, field: ReasoningField
) -> None:
    """The same answer as each engine says it in both modes, with the limit below, at and above what was used."""
    body: dict[str, Json] = {"model": MODEL, "messages": [], "max_tokens": 5}
    reason = "length" if used >= 5 and kind is not EngineKind.TRITON else "stop"
    name = "reasoning" if kind is EngineKind.VLLM else "reasoning_content"
    usage = {"prompt_tokens": 1, "completion_tokens": used, "total_tokens": used + 1}
    streamed = [chunk([choice({"role": "assistant", "content": ""})])]
    streamed += [chunk([choice({name: one})]) for one in thoughts]
    streamed += [chunk([choice({"content": one})]) for one in said]
    streamed += [chunk([choice({}, reason)]), chunk([], usage=usage)]
    message: dict[str, Json] = {"role": "assistant", "content": "".join(said), name: "".join(thoughts) or None}
    answer: dict[str, Json] = {
        "id": ID,
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": usage,
    }
    asking = body | {"stream": True, "stream_options": {"include_usage": True}}
    events = documents(stream(relay(kind, asking, reasoning=field), [*map(event, streamed), DONE]))
    made = whole(kind, body, compact(answer), reasoning=field)
    assert aggregated(events) == told(json.loads(made))
    assert json.loads(made)["choices"][0]["finish_reason"] == ("length" if used >= 5 else "stop")


def test_completions_are_shaped_alike() -> None:
    events = [
        chunk([{"index": 0, "text": text, "logprobs": None, "finish_reason": reason}]) | {"object": "text_completion"}
        for text, reason in (("", None), ("a", None), ("", None), ("b", "stop"))
    ]
    body: dict[str, Json] = {"model": MODEL, "prompt": "x", "stream": True}
    for kind in EngineKind:
        out = stream(relay(kind, body, operation=Operation.COMPLETIONS), [*map(event, events), DONE])
        assert [one["choices"][0]["text"] for one in documents(out)] == ["a", "b"]
