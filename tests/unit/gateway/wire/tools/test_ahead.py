"""Text that is read without its event becomes what it becomes with it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.profile import EngineKind, Operation
from engines.registry import profile
from gateway.wire.answer import AnswerNames
from gateway.wire.shape import Extras, ReasoningField, Shape
from gateway.wire.shape.frames import Frames
from gateway.wire.stream import StreamRelay
from gateway.wire.tools import Parse, ReasoningRule, plan, prepare
from tests.support.json_type import Json
from tests.support.openai_bytes import DONE
from tests.unit.gateway.wire.shape.shaping import NOW, OWN
from tests.unit.gateway.wire.strategies import cuts
from tests.unit.gateway.wire.toolcalls.renderers import FAMILIES, Calls
from tests.unit.gateway.wire.tools.asking import TOOLS, asked, facts_of

FILLERS: dict[EngineKind, Json] = {
    EngineKind.VLLM: {},
    EngineKind.TRTLLM: {"role": "assistant", "reasoning_content": "", "tool_calls": []},
    EngineKind.TRITON: {"role": None, "function_call": None, "tool_calls": None},
}
CALLS: Calls = [
    ("get_weather", {"city": 'Paris "<|x|>" \\ \n </tool_call> 北京 😀', "days": 3}),
    ("get_time", {}),
    ("get_weather", {"city": "a </parameter> b"}),
]
TEXTS = (
    "Plain words, nothing else. 1 < 2 and {x} [y].",
    'A <tool_call> in prose, and a `</think>`.\nMore \\ words "here".',
    "<think>Some thoughts\nof <mine>.</think>\n\nAn answer.",
)


def relay(
    kind: EngineKind,
    form: str,
    extras: Extras = Extras.KEEP,
    field: ReasoningField = ReasoningField.BOTH,
    parse: Parse = Parse.GATEWAY,
    **request: Json,
) -> StreamRelay:
    ask, members = asked(TOOLS, None, **request)
    facts = facts_of(kind, form=form, parse=parse)
    reading = prepare(plan(facts, ask), facts, ask, members).reading
    assert reading is not None
    stage = reading.stage(ReasoningRule(field=field), 1, lambda _: None, "seed")
    shape = Shape(Operation.CHAT, profile(kind).answers, extras, field)
    return StreamRelay(AnswerNames(Operation.CHAT, "asked"), OWN, shape.chain(members, members, stage), lambda: NOW)


def chunk(
    kind: EngineKind, delta: Json, finish: str | None = None, index: int = 0, *, own: bool = True, escaped: bool = False
) -> bytes:
    """`own`: with names that the client must not see; `escaped`: with escapes that are not needed."""
    choice = {"index": index, "delta": FILLERS[kind] | delta, "logprobs": None, "finish_reason": finish}
    names = ("cmpl-7", "org/m") if own else ("chatcmpl-0123456789abcdef", "asked")
    body = {"id": names[0], "object": "chat.completion.chunk", "created": 1, "model": names[1], "choices": [choice]}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=escaped).encode()


def documents(out: bytes) -> list[Json]:
    return [json.loads(line[6:]) for line in out.split(b"\n\n") if line.startswith(b"data: {")]


def fed(into: StreamRelay, packets: list[bytes]) -> bytes:
    out = b"".join([into.feed(packet) for packet in packets])
    return out if into.done else out + (into.end(1) or b"")


@st.composite
def answers(draw: st.DrawFn) -> tuple[str, str]:
    """A format, and what a model may write in it, whole or cut off."""
    form = draw(st.sampled_from(["hermes", "qwen3_xml", "harmony", "gemma4", "kimi_k2", "llama3_json", "mistral_v11"]))
    calls = FAMILIES[form].render(CALLS[: draw(st.integers(1, 3))]) if draw(st.booleans()) else ""
    text = draw(st.sampled_from(["", *TEXTS])) + calls + draw(st.sampled_from(["", " Bye."]))
    return form, text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


@given(
    st.data(),
    answers(),
    st.sampled_from(list(EngineKind)),
    st.sampled_from(list(Extras)),
    st.sampled_from(list(ReasoningField)),
    st.booleans(),
)
@settings(max_examples=250, deadline=None)
def test_what_is_read_ahead_changes_nothing(
    data: st.DataObject,
    answer: tuple[str, str],
    kind: EngineKind,
    extras: Extras,
    field: ReasoningField,
    parallel: bool,
) -> None:
    """Byte for byte, however the stream is cut; events with CRLF are always taken apart."""
    form, text = answer
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1))
    pieces: list[str] = []
    at = 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
    events = [chunk(kind, {"role": "assistant", "content": ""}), *(chunk(kind, {"content": one}) for one in pieces)]
    events.append(chunk(kind, {}, data.draw(st.sampled_from(["stop", "length"]))))

    def into() -> StreamRelay:
        return relay(kind, form, extras, field, parallel_tool_calls=parallel)

    slow = fed(into(), [b"data: " + one + b"\r\n\r\n" for one in events] + [DONE])
    assert fed(into(), [b"data: " + one + b"\n\n" for one in events] + [DONE]) == slow
    sent = b"".join([*(b"data: " + one + b"\n\n" for one in events), DONE])
    assert fed(into(), data.draw(cuts(sent))) == slow


entries = st.fixed_dictionaries(
    {
        "index": st.integers(0, 1),
        "function": st.fixed_dictionaries({"arguments": st.sampled_from(["{}", "", '{"a": "'])}),
    },
    optional={"type": st.just("function")},
)
inner = st.sampled_from(["a", " b", "\\\\n", "é", "北", "😀", "/", '\\"', '"}', "", "}", "x, y", '", "b": "'])


@st.composite
def engine_calls(draw: st.DrawFn) -> list[Json]:
    """Deltas of an engine that parses calls, one call after the other, mostly."""
    deltas: list[Json] = [
        {"content": text} for text in draw(st.lists(st.sampled_from(["Let ", "é", "me/\n"]), max_size=4))
    ]
    for at in range(draw(st.integers(1, 3))):
        named: Json = {"name": "get_weather", "arguments": draw(st.sampled_from(["", '{"a": "']))}
        deltas.append({"tool_calls": [{"index": at, "id": f"call-{at}-abcdef", "type": "function", "function": named}]})
        of_type = draw(st.sampled_from([{}, {"type": "function"}]))
        for text in ('{"city": "', *draw(st.lists(inner, max_size=8))):
            deltas.append({"tool_calls": [{"index": at, **of_type, "function": {"arguments": text}}]})
        if draw(st.booleans()):
            deltas.append({"tool_calls": [draw(entries)]})
    return deltas


@given(st.data(), engine_calls(), st.sampled_from(list(EngineKind)), st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=250, deadline=None)
def test_arguments_of_an_engine_are_read_ahead(
    data: st.DataObject, deltas: list[Json], kind: EngineKind, own: bool, escaped: bool, parallel: bool
) -> None:
    """Nothing changes but the spelling of escapes, and that only where the event changes anyway."""
    events = [chunk(kind, {"role": "assistant", "content": ""}, own=own)]
    events += [chunk(kind, delta, own=own, escaped=escaped) for delta in deltas]
    events.append(chunk(kind, {}, "tool_calls", own=own))

    def into() -> StreamRelay:
        return relay(kind, "hermes", parse=Parse.ENGINE, parallel_tool_calls=parallel)

    slow = fed(into(), [b"data: " + one + b"\r\n\r\n" for one in events] + [DONE])
    fast = fed(into(), [b"data: " + one + b"\n\n" for one in events] + [DONE])
    assert documents(fast) == documents(slow)
    assert escaped or fast == slow
    sent = b"".join([*(b"data: " + one + b"\n\n" for one in events), DONE])
    anyhow = fed(into(), data.draw(cuts(sent)))
    assert documents(anyhow) == documents(fast)
    assert escaped or anyhow == fast


def test_clean_arguments_pass_as_they_are_spelled() -> None:
    """Byte for byte, though their text was read."""
    kind = EngineKind.VLLM
    into = relay(kind, "hermes", parse=Parse.ENGINE)
    function = {"name": "get_weather", "arguments": ""}
    call = {"index": 0, "id": "call-abcdef", "type": "function", "function": function}
    texts = ('{"city": "', "a", "é", "\\n", "/", '"}')
    events = [
        chunk(kind, {"role": "assistant", "content": ""}, own=False),
        chunk(kind, {"tool_calls": [call]}, own=False),
    ]
    events += [
        chunk(kind, {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}, own=False, escaped=True)
        for text in texts
    ]
    events.append(chunk(kind, {}, "tool_calls", own=False))
    packets = [*(b"data: " + one + b"\n\n" for one in events), DONE]
    assert fed(into, packets) == b"".join(packets)
    assert isinstance(into._template, Frames)  # what is learned shows in nothing but time


@pytest.mark.parametrize("kind", list(EngineKind))
def test_two_events_teach_the_frame(kind: EngineKind) -> None:
    """Of content, and of the arguments of each call."""
    into = relay(kind, "hermes")

    def send(text: str) -> bytes:
        return into.feed(b"data: " + chunk(kind, {"content": text}) + b"\n\n")

    into.feed(b"data: " + chunk(kind, {"role": "assistant", "content": ""}) + b"\n\n")
    for text in ("a", "b", '<tool_call>{"name": "get_time", "arguments": {"a": "', "c"):
        send(text)
    frames = into._template  # what is learned shows in nothing but time
    assert isinstance(frames, Frames)
    assert frames._made.keys() == {"content", 0}


def test_several_choices_are_not_read_ahead() -> None:
    """Their events have frames of their own, one after the other."""
    kind = EngineKind.VLLM
    into = relay(kind, "hermes")
    events = [chunk(kind, {"content": text}, index=at) for text in ("a", "b <t", "ool", "d") for at in (0, 1)]
    events += [chunk(kind, {}, "stop", index=at) for at in (0, 1)]
    out = fed(into, [b"data: " + one + b"\n\n" for one in events] + [DONE])
    choices = [one["choices"][0] for one in documents(out)]
    for at in (0, 1):
        said = [one["delta"].get("content") or "" for one in choices if one["index"] == at]
        assert "".join(said) == "ab <toold"
