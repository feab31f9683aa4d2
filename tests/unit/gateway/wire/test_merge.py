"""Answers to the parts of a split call are one answer."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.merge import MergedStream, merge_answers, merge_usage

JsonObject = dict[str, Any]


def usage(prompt: int, completion: int, **more: object) -> JsonObject:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **more}


def chunk(text: str, finish: str | None = None, **more: object) -> bytes:
    value = {"id": f"chatcmpl-{text}", "created": 1, "model": "m", "choices": [
        {"index": 0, "delta": {"content": text}, "finish_reason": finish, "logprobs": 1.50}
    ]} | more  # fmt: skip
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def usage_chunk(numbers: JsonObject) -> bytes:
    return b"data: " + json.dumps({"id": "chatcmpl-u", "choices": [], "usage": numbers}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def events(data: bytes) -> list[JsonObject]:
    assert data.endswith(b"\n\n") or not data
    return [json.loads(event.removeprefix(b"data: ")) for event in data.split(b"\n\n") if event and event != DONE[:-2]]


def test_copies_of_a_prompt_count_once() -> None:
    """OpenAI counts the prompt once whatever ``n`` is, and every completion."""
    assert merge_usage([usage(5, 2), usage(5, 3)], copies=2) == usage(5, 5)
    assert merge_usage([usage(5, 2), usage(7, 3)], copies=1) == usage(12, 5)
    assert merge_usage([usage(5, 1), usage(5, 1), usage(7, 1), usage(7, 1)], copies=2) == usage(12, 4)


def test_details_are_added_up() -> None:
    details = [{"completion_tokens_details": {"reasoning_tokens": n}, "prompt_tokens_details": None} for n in (2, 3)]
    merged = merge_usage([usage(1, 2, **details[0]), usage(1, 3, **details[1])], copies=2)

    assert merged == usage(1, 5, completion_tokens_details={"reasoning_tokens": 5}, prompt_tokens_details=None)


def test_no_usage_is_none() -> None:
    assert merge_usage([None, None], copies=1) is None
    assert merge_usage([None, usage(2, 1)], copies=2) == usage(2, 1)


def test_embeddings_have_no_completions() -> None:
    one = {"prompt_tokens": 3, "total_tokens": 3}

    assert merge_usage([one, one], copies=1) == {"prompt_tokens": 6, "total_tokens": 6}


def test_whole_answers() -> None:
    """Choices are numbered through; what nobody names keeps its bytes."""
    bodies = [
        b'{"id":"chatcmpl-1","choices":[{"index":0,"x":1.50,"message":{"content":"a"}}],"usage":null,"seed":1e2}',
        b'{"id":"chatcmpl-2","choices":[{"index":0,"message":{"content":"b"}}],"usage":{"prompt_tokens":1}}',
    ]
    merged = merge_answers(bodies, "choices", copies=2)

    assert merged == (
        b'{"id":"chatcmpl-1","choices":[{"index":0,"x":1.50,"message":{"content":"a"}},'
        b'{"index":1,"message":{"content":"b"}}],"usage":{"prompt_tokens":1},"seed":1e2}'
    )


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"choices":5}', b'{"choices":[5]}', b'{"choices":[],"usage":5}'])
def test_what_is_no_answer_is_told(body: bytes) -> None:
    with pytest.raises(ValueError, match="part of the call"):
        merge_answers([body], "choices", copies=1)


def test_a_stream_of_two() -> None:
    """Interleaved as they come: one id, numbers by part, one usage, one end."""
    merged = MergedStream(2, copies=2)
    out = merged.feed(1, chunk("b"))
    out += merged.feed(0, chunk("a", "stop"))
    out += merged.feed(0, usage_chunk(usage(4, 1)) + DONE)
    out += merged.feed(1, chunk("c", "length"))
    out += merged.feed(1, usage_chunk(usage(4, 2)))
    assert b"usage" not in out
    assert DONE not in out
    out += merged.feed(1, DONE)

    assert merged.done
    assert out.endswith(DONE)
    assert out.count(b"[DONE]") == 1
    *said, last = events(out)
    assert [(event["id"], event["created"]) for event in said] == [("chatcmpl-b", 1)] * 3
    choices = [event["choices"] for event in said]
    assert [(c[0]["index"], c[0]["delta"]["content"], c[0]["finish_reason"]) for c in choices] == [
        (1, "b", None),
        (0, "a", "stop"),
        (1, "c", "length"),
    ]
    assert b'"logprobs":1.5' in out
    assert (last["choices"], last["usage"], last["id"]) == ([], usage(4, 3), "chatcmpl-b")


def test_a_stream_without_usage() -> None:
    merged = MergedStream(2, copies=1)

    assert merged.feed(0, DONE) == b""
    assert merged.close(0) == b""
    assert merged.close(1) == DONE
    assert merged.close(1) == b""


def test_usage_in_every_event_is_that_of_all() -> None:
    """``continuous_usage_stats``: each event tells what has been said so far."""
    merged = MergedStream(2, copies=2)
    merged.feed(0, chunk("a", usage=usage(4, 1)))
    (event,) = events(merged.feed(1, chunk("b", usage=usage(4, 1))))

    assert event["usage"] == usage(4, 2)


def test_null_usage_stays() -> None:
    (event,) = events(MergedStream(2, copies=2).feed(1, chunk("b", usage=None)))

    assert event["usage"] is None


def test_what_nobody_knows_passes() -> None:
    odd = b'data: {"odd":1}\n\n'

    assert MergedStream(2, copies=1).feed(1, odd) == odd
    assert MergedStream(2, copies=1).feed(1, b": beat\n\n") == b""


@given(st.lists(st.tuples(st.integers(0, 2), st.text(max_size=3)), max_size=12), st.data())
def test_every_part_is_heard_in_its_order(said: list[tuple[int, str]], data: st.DataObject) -> None:
    """Whatever the packets' borders, each choice's text is what its part said, and the end comes once, last."""
    streams = [b"".join(chunk(text) for at, text in said if at == part) + DONE for part in range(3)]
    merged, out = MergedStream(3, copies=3), b""
    cuts = [
        [0, *sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=4))), len(stream)] for stream in streams
    ]
    turns = data.draw(st.permutations([part for part in range(3) for _ in pairwise(cuts[part])]))
    pieces = [[stream[a:b] for a, b in pairwise(cut)] for stream, cut in zip(streams, cuts, strict=True)]
    for part in turns:
        out += merged.feed(part, pieces[part].pop(0))

    assert merged.done
    assert out.endswith(DONE)
    texts: dict[int, list[str]] = {0: [], 1: [], 2: []}
    for event in events(out):
        (choice,) = event["choices"]
        texts[choice["index"]].append(choice["delta"]["content"])
    assert texts == {part: [text for at, text in said if at == part] for part in range(3)}
