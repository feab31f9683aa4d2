"""Events known by their frame become what they become when each is taken apart."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.profile import EngineKind, Operation
from gateway.wire.shape import Extras, ReasoningField
from gateway.wire.shape.template import template_of
from gateway.wire.stream import StreamRelay
from tests.support.json_type import Json
from tests.support.openai_bytes import DONE, event
from tests.unit.gateway.wire.shape.shaping import relay, stream
from tests.unit.gateway.wire.strategies import cuts, texts

BODY: dict[str, Json] = {"model": "asked", "messages": [], "stream": True}
FRAMES: dict[EngineKind, dict[str, Json]] = {
    EngineKind.VLLM: {"logprobs": None, "finish_reason": None, "token_ids": None},
    EngineKind.TRTLLM: {},
    EngineKind.TRITON: {"logprobs": None, "finish_reason": None},
}
FILLERS: dict[EngineKind, dict[str, Json]] = {
    EngineKind.VLLM: {},
    EngineKind.TRTLLM: {"content": "", "reasoning_content": ""},
    EngineKind.TRITON: {"role": None, "function_call": None},
}
tricky = texts | st.sampled_from(["\\", '"', '\\"', 'a","b":"', "\n", "\\\\", "}", '"},"logprobs":null', "data: "])


def chunk(kind: EngineKind, delta: Json, index: int = 0, model: str = "asked", **more: Json) -> dict[str, Json]:
    choice = {"index": index, "delta": FILLERS[kind] | delta, **FRAMES[kind], **more}
    answer_id = "chatcmpl-0123456789abcdef" if kind is EngineKind.VLLM else "cmpl-7"
    return {
        "id": answer_id,
        "object": "chat.completion.chunk",
        "created": 1,
        "model": model,
        "choices": [choice],
    }


@st.composite
def talk(draw: st.DrawFn) -> tuple[EngineKind, list[dict[str, Json]]]:
    """A stream of mostly text, of one kind and then of another, for one choice or two."""
    kind = draw(st.sampled_from(list(EngineKind)))
    model = draw(st.sampled_from(["asked", "org/m"]))
    choices = draw(st.integers(1, 2))
    events = [chunk(kind, {"role": "assistant", "content": ""}, at, model) for at in range(choices)]
    names = draw(st.sampled_from([("content",), ("reasoning", "content"), ("reasoning_content", "content")]))
    for name in names:
        for text in draw(st.lists(tricky, max_size=8)):
            events.append(chunk(kind, {name: text}, draw(st.integers(0, choices - 1)), model))
    events += [chunk(kind, {}, at, model, finish_reason="stop") for at in range(choices)]
    return kind, events


@given(st.data(), talk(), st.sampled_from(list(Extras)), st.sampled_from(list(ReasoningField)), st.booleans())
@settings(max_examples=300)
def test_a_known_frame_changes_nothing_but_the_time_it_takes(
    data: st.DataObject,
    said: tuple[EngineKind, list[dict[str, Json]]],
    extras: Extras,
    field: ReasoningField,
    escaped: bool,
) -> None:
    """Events with CRLF have no known frame; and they are sent on with LF."""
    kind, events = said

    def into() -> StreamRelay:
        return relay(kind, BODY, extras=extras, reasoning=field)

    spelled = [json.dumps(one, separators=(",", ":"), ensure_ascii=escaped).encode() for one in events]
    slow = stream(into(), [*(b"data: " + one + b"\r\n\r\n" for one in spelled), DONE], expected=2)
    sent = b"".join([*(b"data: " + one + b"\n\n" for one in spelled), DONE])
    assert stream(into(), data.draw(cuts(sent)), expected=2) == slow
    assert stream(into(), [b"data: " + one + b"\n\n" for one in spelled] + [DONE], expected=2) == slow


@pytest.mark.parametrize("kind", list(EngineKind))
def test_the_frame_is_learned_from_few_events(kind: EngineKind) -> None:
    into = relay(kind, BODY)
    for text in ("", "a", "b", "c"):
        role = {} if text else {"role": "assistant"}
        into.feed(event(chunk(kind, role | {"content": text})))
    assert into._template is not None  # what is learned shows in nothing but time
    assert into._template.fill(event(chunk(kind, {"content": "d"}))) is not None


PLAIN = event(chunk(EngineKind.VLLM, {"content": "text"}))


@pytest.mark.parametrize(
    "other",
    [
        chunk(EngineKind.VLLM, {"content": "a"}, finish_reason="stop"),
        chunk(EngineKind.VLLM, {"content": ""}),
        chunk(EngineKind.VLLM, {"content": 'a\\"'}),
        chunk(EngineKind.VLLM, {"content": "a", "role": "assistant"}),
        chunk(EngineKind.VLLM, {"content": "a", "reasoning": "b"}),
        chunk(EngineKind.VLLM, {"content": "a"}, logprobs={"content": "b"}),
        chunk(EngineKind.VLLM, {"tool_calls": []}),
    ],
)
def test_an_event_of_another_sort_teaches_nothing(other: Json) -> None:
    assert template_of(event(other), event(other)) is None
    assert template_of(event(other) + event(other), event(other) + event(other)) is None
    assert template_of(PLAIN.replace(b"\n", b"\r\n"), PLAIN) is None
    assert template_of(PLAIN, b"") is None


@pytest.mark.parametrize(
    "other",
    [
        PLAIN.replace(b"text", b""),
        PLAIN.replace(b"text", b'a","b":"c'),
        PLAIN.replace(b"text", b"a\n\ndata: b"),
        PLAIN.replace(b'"finish_reason":null', b'"finish_reason":"stop"'),
        PLAIN[:-1],
        PLAIN + PLAIN,
        b"",
    ],
)
def test_what_does_not_fit_is_not_filled(other: bytes) -> None:
    known = template_of(PLAIN, PLAIN.replace(b"asked", b"m"))
    assert known is not None
    assert known.fill(other) is None
    among = known.fill_all(PLAIN + other + PLAIN)
    assert (None if among is None else among[1]) == {PLAIN + PLAIN: 4, b"": 2}.get(other)


def test_several_events_are_filled_at_once() -> None:
    known = template_of(PLAIN, PLAIN.replace(b"asked", b"m"))
    assert known is not None
    assert known.fill_all(PLAIN * 3) == (PLAIN.replace(b"asked", b"m") * 3, 3)
    assert known.fill_all(PLAIN + PLAIN.replace(b"text", b"\\n")) is None
    both = template_of(PLAIN.replace(b'"content"', b'"reasoning"'), PLAIN.replace(b'"content"', b'"reasoning"'))
    assert both is not None
    assert both.fill(PLAIN) is None
    assert known.fill(PLAIN.replace(b"text", b"\\n")) is None  # an escape that may be spelled anew
    same = template_of(PLAIN, PLAIN)
    assert same is not None
    assert same.fill(quoted := PLAIN.replace(b"text", b'a \\"b\\"')) is quoted
    assert same.fill_all(PLAIN + PLAIN) == (PLAIN + PLAIN, 2)
    assert same.fill_all(PLAIN + quoted + PLAIN) is None
    assert same.fill_all(PLAIN + PLAIN.replace(b"text", b'a","b":"c') + PLAIN) is None
    ends_with_escape, begins_with_quote = PLAIN.replace(b"text", b"a\\"), PLAIN.replace(b"text", b'"b')
    assert same.fill_all(ends_with_escape + begins_with_quote) is None


def test_completions_are_known_too() -> None:
    body: dict[str, Json] = {"model": "asked", "prompt": "x", "stream": True}
    into = relay(EngineKind.TRITON, body, operation=Operation.COMPLETIONS)
    frame = {"id": "cmpl-0123456789abcdef", "object": "text_completion", "created": 1, "model": "asked", "usage": None}
    events = [
        event(frame | {"choices": [{"index": 0, "text": text, "finish_reason": None, "logprobs": None}]})
        for text in ("a", "b", "c", "北")
    ]
    out = b"".join([into.feed(one) for one in events])
    assert out == b"".join([one.replace(b',"usage":null', b"") for one in events])
    assert into._template is not None  # what is learned shows in nothing but time
