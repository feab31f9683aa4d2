"""Each oddity of an engine's answers, made what OpenAI's clients expect; whole and streamed."""

import json
from collections.abc import Mapping, Sequence

import pytest

from engines.profile import EngineKind, Operation
from gateway.wire.shape import Extras, ReasoningField
from tests.support.json_type import Json
from tests.support.openai_bytes import DONE, compact, event
from tests.unit.gateway.wire.shape.shaping import MODEL, NOW, documents, relay, stream, whole

ID = "chatcmpl-0123456789abcdef"
BODY: dict[str, Json] = {"model": "asked", "messages": [{"role": "user", "content": "hello"}], "stream": True}
ASKING = BODY | {"stream_options": {"include_usage": True}}
USAGE = {"prompt_tokens": 2, "total_tokens": 5, "completion_tokens": 3}
ENGINES = list(EngineKind)


def chunk(delta: Json = None, finish: str | None = None, **more: Json) -> dict[str, Json]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    return {
        "id": ID,
        "object": "chat.completion.chunk",
        "created": 1,
        "model": MODEL,
        "choices": choices,
        **more,
    }


def shaped(
    kind: EngineKind,
    chunks: Sequence[Json],
    body: Mapping[str, Json] = BODY,
    operation: Operation = Operation.CHAT,
    extras: Extras = Extras.KEEP,
    reasoning: ReasoningField = ReasoningField.BOTH,
) -> list[dict[str, Json]]:
    into = relay(kind, body, operation=operation, extras=extras, reasoning=reasoning)
    return documents(stream(into, [*map(event, chunks), DONE]))


def deltas(events: Sequence[Mapping[str, Json]]) -> list[Json]:
    return [choice["delta"] for one in events for choice in one["choices"]]


def reasons(events: Sequence[Mapping[str, Json]]) -> list[Json]:
    return [choice["finish_reason"] for one in events for choice in one["choices"]]


def answer(message: Json, finish: str = "stop", **more: Json) -> dict[str, Json]:
    return {
        "id": ID,
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": USAGE,
        **more,
    }


def message(made: bytes) -> dict[str, Json]:
    said: dict[str, Json] = json.loads(made)["choices"][0]["message"]
    return said


# ---- finish reasons


@pytest.mark.parametrize("said", ["stop", "tool_calls"])
@pytest.mark.parametrize("limit", [{"max_tokens": 3}, {"max_completion_tokens": 3, "max_tokens": 9}])
def test_triton_streams_end_with_length_when_the_limit_is_reached(limit: dict[str, Json], said: str) -> None:
    chunks = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "a"}),
        chunk({"content": "b"}, said),
        chunk(usage=USAGE),
    ]
    events = shaped(EngineKind.TRITON, chunks, ASKING | limit)

    assert reasons(events) == [None, None, "length"]
    assert [one["choices"] for one in events][-1] == []
    assert events[-1]["usage"] == USAGE


def test_triton_streams_that_end_before_their_limit_keep_their_reason() -> None:
    chunks = [chunk({"role": "assistant", "content": ""}), chunk({"content": "b"}, "stop"), chunk(usage=USAGE)]
    assert reasons(shaped(EngineKind.TRITON, chunks, BODY | {"max_tokens": 4})) == [None, "stop"]


def test_a_finish_reason_without_usage_is_sent_at_the_end() -> None:
    chunks = [chunk({"role": "assistant", "content": ""}), chunk({"content": "b"}, "stop")]
    assert reasons(shaped(EngineKind.TRITON, chunks, BODY | {"max_tokens": 1})) == [None, "stop"]


def test_a_held_finish_reason_is_sent_when_the_engine_forgets_its_done() -> None:
    into = relay(EngineKind.TRITON, BODY)
    parts = [event(chunk({"role": "assistant", "content": ""})), event(chunk({"content": "b"}, "stop"))]
    assert reasons(documents(stream(into, parts))) == [None, "stop"]


def test_nothing_held_follows_an_error() -> None:
    into = relay(EngineKind.TRITON, BODY)
    out = into.feed(event(chunk({"role": "assistant", "content": "a"})))
    out += into.feed(event(chunk({}, "stop"))) + into.feed(event({"error": {"message": "no"}})) + into.feed(DONE)
    assert b'finish_reason":"stop' not in out
    assert into.error is not None
    assert not into.done


@pytest.mark.parametrize(("limit", "reason"), [(3, "length"), (4, "stop")])
def test_triton_answers_say_length_too(limit: int, reason: str) -> None:
    made = whole(EngineKind.TRITON, BODY | {"max_tokens": limit}, compact(answer({"content": "abc"})))
    assert json.loads(made)["choices"][0]["finish_reason"] == reason


@pytest.mark.parametrize("kind", [EngineKind.VLLM, EngineKind.TRTLLM])
def test_engines_that_say_length_are_believed(kind: EngineKind) -> None:
    body = compact(answer({"role": "assistant", "content": "abc"}))
    assert whole(kind, BODY | {"max_tokens": 3}, body) is body


def test_triton_completions_say_length() -> None:
    said = [{"finish_reason": "stop", "index": 0, "logprobs": None, "text": "."}]
    chunks = [chunk() | {"object": "text_completion", "choices": said}, chunk(usage=USAGE)]
    body = {"model": "asked", "prompt": "p", "max_tokens": 3, "stream": True}
    events = shaped(EngineKind.TRITON, chunks, body, Operation.COMPLETIONS)
    assert reasons(events) == ["length"]
    assert all("usage" not in one for one in events)


# ---- usage


@pytest.mark.parametrize("kind", ENGINES)
def test_usage_that_nobody_asked_for_is_not_sent(kind: EngineKind) -> None:
    chunks = [
        chunk({"role": "assistant", "content": ""}, usage=None),
        chunk({"content": "a"}, usage=USAGE),
        chunk({}, "stop", usage=None),
        chunk(usage=USAGE),
    ]
    events = shaped(kind, chunks)
    assert [set(one) & {"usage"} for one in events] == [set()] * 3
    assert reasons(events) == [None, None, "stop"]


@pytest.mark.parametrize("kind", ENGINES)
def test_usage_that_was_asked_for_stays_as_it_is_in_every_event(kind: EngineKind) -> None:
    chunks = [
        chunk({"role": "assistant", "content": ""}, usage=None),
        chunk({"content": "a"}, usage=USAGE),
        chunk({"content": "b"}, "stop", usage=USAGE),
        chunk(usage=USAGE),
    ]
    body = BODY | {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
    assert [one["usage"] for one in shaped(kind, chunks, body)] == [None, USAGE, USAGE, USAGE]


def test_usage_that_is_not_sent_is_known_all_the_same() -> None:
    into = relay(EngineKind.VLLM, BODY)
    stream(into, [event(chunk({"content": "a"}, "stop")), event(chunk(usage=USAGE)), DONE])
    assert into.usage is not None
    assert (into.usage.prompt_tokens, into.usage.completion_tokens) == (2, 3)


# ---- deltas


@pytest.mark.parametrize("kind", [EngineKind.TRTLLM, EngineKind.TRITON])
def test_the_role_is_said_once_for_each_choice_and_first(kind: EngineKind) -> None:
    def two(delta: Json) -> dict[str, Json]:
        return chunk() | {"choices": [{"index": at, "delta": delta, "finish_reason": None} for at in (0, 1)]}

    chunks = [two({"content": "a"}), two({"role": "assistant", "content": "b"}), two({"role": None, "content": "c"})]
    ending = chunk() | {"choices": [{"index": at, "delta": {}, "finish_reason": "stop"} for at in (0, 1)]}
    said = deltas(shaped(kind, [*chunks, ending]))
    assert said[:6] == [{"role": "assistant", "content": "a"}] * 2 + [{"content": "b"}] * 2 + [{"content": "c"}] * 2


def test_members_that_say_nothing_leave_the_deltas_of_engines_that_fill_them() -> None:
    triton = [
        chunk({"content": "", "function_call": None, "role": "assistant"}),
        chunk({"content": "Hi", "function_call": None, "role": None}),
        chunk({"content": "", "function_call": None, "role": None}, "stop"),
    ]
    assert deltas(shaped(EngineKind.TRITON, triton)) == [triton[0]["choices"][0]["delta"], {"content": "Hi"}, {}]
    trtllm = [
        chunk({"role": "assistant"}),
        chunk({"content": "Hi", "reasoning_content": ""}),
        chunk({"content": "!", "reasoning_content": ""}, "stop"),
    ]
    assert deltas(shaped(EngineKind.TRTLLM, trtllm)) == [{"role": "assistant"}, {"content": "Hi"}, {"content": "!"}]


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize(
    "empty",
    [{"content": ""}, {}, {"content": None, "reasoning": None}, {"tool_calls": []}, {"content": "", "reasoning": ""}],
)
def test_an_event_that_carries_nothing_is_not_sent(kind: EngineKind, empty: Json) -> None:
    chunks = [chunk({"role": "assistant", "content": ""}), *[chunk(empty)] * 3, chunk({"content": "a"}, "stop")]
    assert deltas(shaped(kind, chunks)) == [{"role": "assistant", "content": ""}, {"content": "a"}]


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize(
    "more",
    [{"logprobs": {"content": [{"token": "", "logprob": -3.57e-06, "bytes": []}]}}, {"token_ids": [7]}, {"x": 0}],
)
def test_an_event_with_an_empty_delta_and_something_else_is_sent(kind: EngineKind, more: dict[str, Json]) -> None:
    spoken = chunk({"content": ""})
    spoken["choices"][0] |= more
    events = shaped(kind, [chunk({"role": "assistant", "content": ""}), spoken, chunk({"content": "a"}, "stop")])
    (name,) = more
    assert [one["choices"][0].get(name) for one in events][1] == more[name]


def test_an_event_with_a_member_of_its_own_is_sent() -> None:
    events = shaped(EngineKind.VLLM, [chunk({"role": "assistant", "content": ""}, prompt_token_ids=[1]), chunk(kv={})])
    assert [one.get("kv") for one in events] == [None, {}]


@pytest.mark.parametrize("kind", ENGINES)
def test_log_probabilities_stay_byte_for_byte(kind: EngineKind) -> None:
    odd = b'"logprobs":{"content":[{"token":"\\u00e9","logprob":-3.57e-06,"bytes":[195,169],"top_logprobs":[]}]}'
    spoken = event(chunk({"content": "a", "role": None, "reasoning": "b"})).replace(b'"logprobs":null', odd)
    into = relay(kind, BODY)
    out = stream(into, [event(chunk({"role": "assistant", "content": ""})), spoken, event(chunk({}, "stop")), DONE])
    assert out.count(odd) == 1


# ---- reasoning

FIELDS = [
    (ReasoningField.BOTH, {"reasoning": "why", "reasoning_content": "why"}),
    (ReasoningField.REASONING, {"reasoning": "why"}),
    (ReasoningField.REASONING_CONTENT, {"reasoning_content": "why"}),
]
SPELLINGS = [
    {"reasoning": "why"},
    {"reasoning_content": "why"},
    {"reasoning": "why", "reasoning_content": "why"},
    {"reasoning": "why", "reasoning_content": ""},
    {"reasoning": None, "reasoning_content": "why"},
]


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize(("wanted", "expected"), FIELDS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_reasoning_is_given_in_the_configured_member(
    kind: EngineKind, spelling: Json, wanted: ReasoningField, expected: Json
) -> None:
    chunks = [chunk({"role": "assistant", "content": ""}), chunk(spelling), chunk({"content": "a"}, "stop")]
    assert deltas(shaped(kind, chunks, reasoning=wanted))[1:] == [expected, {"content": "a"}]
    body = compact(answer({"role": "assistant", "content": "a"} | spelling))
    said = message(whole(kind, BODY, body, reasoning=wanted))
    assert {name: value for name, value in said.items() if value} == {"role": "assistant", "content": "a"} | expected


@pytest.mark.parametrize("nothing", [{"reasoning": None}, {"reasoning_content": "", "reasoning": None}])
def test_members_for_reasoning_without_reasoning_stay(nothing: Json) -> None:
    body = compact(answer({"role": "assistant", "content": "reasoning"} | nothing))
    assert whole(EngineKind.VLLM, BODY, body, reasoning=ReasoningField.REASONING) is body


# ---- content, extras, envelope


@pytest.mark.parametrize("kind", ENGINES)
def test_an_empty_content_beside_calls_is_null(kind: EngineKind) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    made = whole(kind, BODY, compact(answer({"role": "assistant", "content": "", "tool_calls": [call]})))
    assert message(made)["content"] is None
    assert message(whole(kind, BODY, compact(answer({"role": "assistant"}))))["content"] is None
    for message_as_it_is in (
        {"content": ""},
        {"content": "", "tool_calls": []},
        {"content": "x", "tool_calls": [call]},
    ):
        body = compact(answer({"role": "assistant"} | message_as_it_is))
        assert message(whole(kind, BODY, body)) == {"role": "assistant"} | message_as_it_is


VLLM_MESSAGE = {
    "role": "assistant",
    "content": "a",
    "refusal": None,
    "annotations": None,
    "audio": None,
    "function_call": None,
    "reasoning": None,
}
VLLM_EXTRAS: dict[str, Json] = {
    "service_tier": None,
    "prompt_logprobs": None,
    "kv_transfer_params": None,
    "metrics": {"x": 1},
}


def test_extras_stay_by_default_and_can_be_stripped() -> None:
    given = answer(VLLM_MESSAGE, system_fingerprint="fp", **VLLM_EXTRAS)
    given["choices"][0] |= {"stop_reason": None, "token_ids": [1]}
    given["usage"] = USAGE | {
        "prompt_tokens_details": None,
        "completion_tokens_details": {"reasoning_tokens": 2, "x": 1},
    }
    body = compact(given)

    assert whole(EngineKind.VLLM, BODY, body) is body
    made = json.loads(whole(EngineKind.VLLM, BODY, body, extras=Extras.STRIP))
    expected = answer({"role": "assistant", "content": "a", "refusal": None}, system_fingerprint="fp")
    expected["usage"] = USAGE | {"completion_tokens_details": {"reasoning_tokens": 2}}
    assert made == expected


def test_stripped_streams_have_openai_s_members_only() -> None:
    first = chunk({"role": "assistant", "content": ""}, prompt_token_ids=None, prompt_text=None)
    think = chunk({"reasoning": "why", "reasoning_content": ""})
    spoken = chunk({"content": "a"}, usage=None)
    spoken["choices"][0] |= {"token_ids": None, "stop_reason": 7}
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "", "x": 1}, "y": 2}
    chunks = [
        first,
        think,
        spoken,
        chunk({"content": None, "tool_calls": [call]}),
        chunk({}, "stop"),
        chunk(usage=USAGE),
    ]
    events = shaped(EngineKind.VLLM, chunks, ASKING, extras=Extras.STRIP, reasoning=ReasoningField.REASONING)

    bare = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    assert events == [
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning": "why"}),
        chunk({"content": "a"}, usage=None),
        chunk({"content": None, "tool_calls": [bare]}),
        chunk({}, "stop"),
        chunk(usage=USAGE),
    ]


def test_an_event_of_extras_alone_is_not_sent_where_they_are_stripped() -> None:
    spoken = chunk({})
    spoken["choices"][0]["token_ids"] = [7]
    chunks = [chunk({"role": "assistant", "content": ""}), spoken, chunk({"content": "a"}, "stop")]
    assert len(shaped(EngineKind.VLLM, chunks)) == 3
    assert len(shaped(EngineKind.VLLM, chunks, extras=Extras.STRIP)) == 2


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("lost", [{"object"}, {"created"}, {"object", "created"}])
def test_object_and_created_are_always_there(kind: EngineKind, lost: set[str]) -> None:
    chunks = [chunk({"role": "assistant", "content": ""}), chunk({"content": "a"}), chunk({"content": "b"}, "stop")]
    events = shaped(kind, [{k: v for k, v in one.items() if k not in lost} for one in chunks])
    assert {one["object"] for one in events} == {"chat.completion.chunk"}
    assert {one["created"] for one in events} == {NOW if "created" in lost else 1}
    given = {k: v for k, v in answer({"role": "assistant", "content": "a"}).items() if k not in lost}
    made = json.loads(whole(kind, BODY, compact(given)))
    assert (made["object"], made["created"]) == ("chat.completion", NOW if "created" in lost else 1)


def test_a_wrong_object_is_put_right() -> None:
    made = whole(EngineKind.TRTLLM, BODY, compact(answer({"content": "a"}) | {"object": "text_completion"}))
    assert json.loads(made)["object"] == "chat.completion"
    with pytest.raises(ValueError, match="not a JSON object"):
        whole(EngineKind.TRTLLM, BODY, b"[1]")


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("odd", [b'{"choices":7}', b'{"choices":[7]}', b'{"choices":[{"index":[],"delta":[1]}]}', b"7"])
def test_an_event_of_another_form_is_nobodys_loss(kind: EngineKind, odd: bytes) -> None:
    into = relay(kind, BODY)
    parts = [event(chunk({"role": "assistant", "content": "a"})), b"data: " + odd + b"\n\n", event(chunk({}, "stop"))]
    assert len(documents(stream(into, [*parts, DONE]))) == 3
