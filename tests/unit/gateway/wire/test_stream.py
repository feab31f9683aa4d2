"""A stream's output depends on its bytes, never on its packets, and ends in exactly one way."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engines.profile import Operation
from gateway.wire.answer import AnswerNames, Usage
from gateway.wire.sse import DONE, EventCutter, event_data
from gateway.wire.stream import StreamRelay
from tests.support.json_type import Json
from tests.support.openai_bytes import delta, deltas, event
from tests.unit.gateway.wire.strategies import cuts, line_ends, spelled, texts, values

OWN = b"0" * 24
GOOD_ID = "chatcmpl-" + "a" * 32


def relay(asked: str = "m") -> StreamRelay:
    return StreamRelay(AnswerNames(Operation.CHAT, asked), OWN)


def run(parts: Sequence[bytes], *, asked: str = "m", expected: int = 1) -> tuple[bytes, StreamRelay]:
    """The client's bytes for a stream that ends properly; nothing is added when it was not whole."""
    into = relay(asked)
    out = b"".join(into.feed(part) for part in parts)
    if not into.done:
        out += into.end(expected) or b""
    return out, into


def documents(stream: bytes) -> list[Json]:
    cutter = EventCutter()
    found = [event_data(one) for one in [*cutter.feed(stream), cutter.rest()]]
    return [json.loads(data) for data in found if data and data.strip() != b"[DONE]"]


deltas_of_any_kind = st.fixed_dictionaries(
    {},
    optional={
        "role": st.just("assistant"),
        "content": texts | st.none(),
        "reasoning": texts,
        "tool_calls": st.lists(
            st.fixed_dictionaries({"index": st.integers(0, 3)}, optional={"id": texts, "function": values}), max_size=2
        ),
        "refusal": st.none(),
    },
)


@st.composite
def chunks(draw: st.DrawFn, *, model: str, answer_id: str, spaced: bool) -> bytes:
    document: dict[str, Json] = {"id": answer_id, "object": "chat.completion.chunk", "created": 1, "model": model}
    document["choices"] = [
        {
            "index": draw(st.integers(0, 2)),
            "delta": draw(deltas_of_any_kind),
            "logprobs": draw(values),
            "finish_reason": finish,
        }
        for finish in draw(st.lists(st.sampled_from([None, None, None, "stop", "length"]), max_size=2))
    ]
    if draw(st.booleans()):
        document["usage"] = draw(
            st.none()
            | st.fixed_dictionaries(
                {
                    "prompt_tokens": st.integers(0, 9),
                    "completion_tokens": st.integers(0, 9),
                    "total_tokens": st.integers(0, 9),
                }
            )
        )
    document |= draw(st.dictionaries(st.sampled_from(["service_tier", "x_extra", "kv"]), values, max_size=2))
    data = spelled(document, spaced=spaced)
    end = draw(line_ends)
    before = draw(st.sampled_from([b"", b"", b"", b": ping" + end, b"id: 7" + end, b": ping" + end + end]))
    colon = draw(st.sampled_from([b"data: ", b"data: ", b"data:"]))
    return before + colon + data + end + end


@st.composite
def streams(draw: st.DrawFn, endings: Sequence[bytes] = (b"", DONE, b"data:[DONE]\r\n\r\n", DONE + DONE)) -> bytes:
    """A stream of one engine: names are the same in every event."""
    model = draw(st.sampled_from(["m", "org/m", "é\n北", ""]))
    answer_id = draw(st.sampled_from([GOOD_ID, "7", "chatcmpl-3", 'x"y']))
    events = draw(st.lists(chunks(model=model, answer_id=answer_id, spaced=draw(st.booleans())), max_size=5))
    return b"".join(events) + draw(st.sampled_from(endings))


@settings(max_examples=60)
@given(st.data(), streams())
def test_packets_make_no_difference(data: st.DataObject, stream: bytes) -> None:
    whole, one = run([stream])
    split, other = run(data.draw(cuts(stream)))

    assert split == whole
    assert (other.done, other.events, other.finished, other.usage) == (one.done, one.events, one.finished, one.usage)


@settings(max_examples=40)
@given(streams())
def test_event_by_event_is_like_all_at_once(stream: bytes) -> None:
    cutter = EventCutter()
    parts = [*cutter.feed(stream), cutter.rest()]

    assert run([part for part in parts if part])[0] == run([stream])[0]


def test_every_single_split_position_of_a_stream() -> None:
    events = [event(delta("", role="assistant")), event(delta("北😀")), b": ping\r\n\r\n", event(delta(finish="stop"))]
    stream = b"".join([*events, DONE])
    expected = b"".join([*(one for one in deltas("北😀", model="m")), DONE])
    for at in range(1, len(stream)):
        assert run([stream[:at], stream[at:]])[0] == expected, at


@settings(max_examples=60)
@given(st.data(), streams())
def test_the_client_gets_what_the_engine_said_but_for_the_names(data: st.DataObject, stream: bytes) -> None:
    out, _ = run(data.draw(cuts(stream)), expected=0)
    said, got = documents(stream), documents(out)
    for document in (*said, *got):
        document.pop("id")
    assert got == [document | {"model": "m"} for document in said]


@settings(max_examples=60)
@given(st.data(), streams())
def test_names_are_right_in_every_event(data: st.DataObject, stream: bytes) -> None:
    out, _ = run(data.draw(cuts(stream)), expected=0)
    ids = {document["id"] for document in documents(out)}

    assert {document["model"] for document in documents(out)} <= {"m"}
    assert len(ids) <= 1
    assert all(one.startswith("chatcmpl-") and len(one) >= 25 for one in ids)


@settings(max_examples=60)
@given(st.data(), streams())
def test_done_comes_once_and_last(data: st.DataObject, stream: bytes) -> None:
    out, into = run(data.draw(cuts(stream)))

    assert out.endswith(DONE) is into.done
    assert b"\n\ndata: [DONE]\n\n" not in out.removesuffix(DONE)
    assert not out.startswith(DONE)


@given(st.data(), streams(endings=(b"",)), st.booleans())
def test_an_error_event_is_kept_and_ends_the_stream(data: st.DataObject, stream: bytes, done: bool) -> None:
    error = b'{"error":{"message":"secret shard-17","code":500}}'
    parts = data.draw(cuts(stream + b"data: " + error + b"\n\n" + (DONE if done else event(delta("late")))))
    into = relay()
    out = b"".join(into.feed(part) for part in parts)

    assert into.error == error
    assert not into.done
    assert into.end(0) is None
    assert b"shard-17" not in out
    assert b'"delta":{"content":"late"}' not in out
    assert not out.endswith(DONE)


@given(st.data(), st.binary(max_size=80))
def test_no_bytes_make_it_fail(data: st.DataObject, stream: bytes) -> None:
    run(data.draw(cuts(b"data: " + stream + b"\n\n")))


@given(st.data(), values)
def test_no_json_makes_it_fail(data: st.DataObject, document: Json) -> None:
    run(data.draw(cuts(b"data: " + spelled(document) + b"\n\n")))


@pytest.mark.parametrize(
    "odd",
    [
        b"data: {",
        b"data: null",
        b"data: []",
        b"data: 5",
        b'data: {"choices":5}',
        b'data: {"choices":[5]}',
        b'data: {"choices":[{"delta":5}]}',
        b'data: {"id":5,"model":7,"choices":[]}',
        b"data: \xff\xfe",
        b'data: {"id":"\\ud800","model":"\\ud800","choices":[]}',
        b'data: {"id":"\xff","model":"\xff","choices":[]}',
        b'data: {"choices":[{"delta":{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}]}",
        b"data: " + b"[" * 100_000,
    ],
    ids=lambda odd: repr(odd[:40]),
)
def test_odd_events_pass_and_the_stream_goes_on(odd: bytes) -> None:
    events = deltas("a")
    out, _ = run([*events[:2], odd + b"\n\n", *events[2:], DONE])

    assert out.endswith(event(delta(finish="stop", model="m")) + DONE)


@pytest.mark.parametrize(
    "error",
    [
        b'{"error":{"message":"x"}}',
        b'{"error":"x"}',
        b'{"object":"error","message":"x","code":500}',
        b'{"error":{"message":"x"},"choices":5,"id":7}',
        b'{ "error" : {"message":"x"} }',
    ],
    ids=repr,
)
@pytest.mark.parametrize("before", [0, 1, 3])
def test_errors_of_any_shape_are_kept(error: bytes, before: int) -> None:
    into = relay()
    for part in deltas("a", "b")[:before]:
        into.feed(part)

    assert into.feed(b"data: " + error + b"\n\n") == b""
    assert into.error == error
    assert into.feed(event(delta("late", model="m"))) == b""
    assert into.feed(DONE) == b""
    assert not into.done


def test_a_null_error_is_none() -> None:
    events = [event(delta(text, model="m", error=None)) for text in "ab"]
    out, into = run([*events, event(delta(finish="stop", model="m", error=None)), DONE])

    assert into.done
    assert out.startswith(events[0] + events[1])


def test_an_odd_event_still_has_the_right_names() -> None:
    out, _ = run([*deltas("a"), event({"id": 7, "model": "org/m", "choices": [{"delta": 5}]}), DONE])

    assert {document["model"] for document in documents(out)} == {"m"}
    assert b"org/m" not in out


def test_a_packet_that_needs_no_change_is_the_same_object() -> None:
    into = relay()
    events = deltas("a", "b", "c", model="m", finish=None)
    into.feed(events[0])
    into.feed(events[1])

    assert into.feed(events[2]) is events[2]
    both = events[2] + events[3]
    assert into.feed(both) is both


def test_a_lone_role_is_held_until_more_is_said() -> None:
    into = relay()
    role, text, *_ = deltas("a", model="m")

    assert into.feed(role) == b""
    assert not into.committed
    assert into.feed(text) == role + text
    assert into.committed


def test_an_event_with_substance_is_not_held() -> None:
    first = event(delta("a", role="assistant", model="m"))

    assert relay().feed(first) == first


@example(b": ping\n\n")
@example(b"id: 1\n\n")
@example(b"retry: 5\r\n\r\n")
@given(st.sampled_from([b"", b"\n", b"\n\n", b": \n\n", b"data:\n\n", DONE, DONE + DONE]))
def test_a_stream_that_says_nothing_gives_nothing(stream: bytes) -> None:
    into = relay()

    assert into.feed(stream) == b""
    assert not into.committed
    assert not into.done
    assert into.end(1) is None


def test_missing_done_is_added_when_every_choice_has_finished() -> None:
    events = [event(delta("a", model="m")), event(delta(finish="stop", model="m"))]
    out, into = run(events)

    assert out == b"".join(events) + DONE
    assert into.done


@pytest.mark.parametrize("packed", [True, False])
def test_missing_done_is_not_added_when_a_choice_has_not_finished(packed: bool) -> None:
    events = [event(delta(text, index=index, model="m")) for text in "ab" for index in (0, 1)]
    events.append(event(delta(finish="stop", model="m")))
    into = relay()
    for part in [b"".join(events)] if packed else events:
        into.feed(part)

    assert into.end(2) is None
    assert not into.done


def test_a_last_event_without_blank_line_counts() -> None:
    events = deltas("a", model="m")
    out, into = run([*events[:-1], events[-1].rstrip(b"\n")])

    assert out == b"".join(events) + DONE
    assert into.done


def test_what_follows_done_is_dropped() -> None:
    events = deltas("a", model="m")
    late = [event(delta("late", model="m")), b"garbage", event(delta("later", model="m"))]

    assert run([*events, DONE, *late])[0] == b"".join(events) + DONE
    assert run([*events, DONE + late[0], *late[1:]])[0] == b"".join(events) + DONE


def test_the_last_usage_counts() -> None:
    first = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
    last = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    for said in ({}, {"usage": None}):
        more: dict[str, Json] = dict(said)
        events = [event(delta("a", model="m", usage=first)), event(delta("b", model="m", usage=last))]
        events.append(event(delta(finish="stop", model="m", **more)))
        for parts in ([b"".join(events)], events):
            assert run(parts)[1].usage == Usage(3, 2)


def test_an_event_without_end_overflows() -> None:
    into = relay()
    part = b"data: " + b"x" * 6_000_000
    into.feed(part)
    into.feed(part)
    with pytest.raises(OverflowError):
        into.feed(part)
