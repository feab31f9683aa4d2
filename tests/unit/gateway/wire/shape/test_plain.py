"""A plain answer is one that the stages would leave as it is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.profile import EngineKind, Operation
from gateway.wire.answer import AnswerNames, Usage, find_usage
from gateway.wire.shape.plain import SURROUNDINGS, Plain
from tests.support.json_type import Json
from tests.unit.gateway.wire.shape.shaping import whole
from tests.unit.gateway.wire.strategies import texts

NAMES = AnswerNames(Operation.CHAT, "asked")
OPENERS = ("<think>", "</think>", "[THINK]")
tricky = texts | st.sampled_from(
    ["<think>a</think>b", " <think>", "[THINK]", '"', "\\", '\\"', '","tool_calls":[{', '"usage":{', "", "a < b"]
)


def answer(content: Json, *, choices: int = 1, usage: Json = None, **more: Json) -> bytes:
    message: dict[str, Json] = {"role": "assistant", "content": content, **more}
    body: dict[str, Json] = {
        "id": "chatcmpl-0123456789abcdef",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "asked",
        "choices": [{"index": at, "message": message, "finish_reason": "stop"} for at in range(choices)],
        "usage": usage or {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    }
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


extra = st.sampled_from(
    [
        {},
        {"reasoning": None},
        {"reasoning": "thought"},
        {"reasoning_content": "thought"},
        {"tool_calls": []},
        {"tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"refusal": None, "reasoning": None},
    ]
)
details: dict[str, Json] = {"prompt_tokens": 3, "completion_tokens": 4, "details": {"cached_tokens": 1}}
odd = st.sampled_from([None, {"prompt_tokens": 1, "completion_tokens": 2}, details])


@given(st.lists(st.tuples(tricky | st.none(), extra, odd, st.integers(1, 2)), min_size=1, max_size=8))
def test_what_is_plain_needs_nothing(said: list[tuple[str | None, dict[str, Json], Json, int]]) -> None:
    """Whatever was seen before it: what is remembered never vouches for another answer."""
    plain = Plain(OPENERS)
    for content, more, usage, choices in said:
        body = answer(content, choices=choices, usage=usage, **more)
        found = plain.usage(body, NAMES)
        if found is not None:
            assert found == find_usage(body)
            assert whole(EngineKind.VLLM, {"model": "asked", "messages": []}, body) == body
            assert not any(opener in (content or "") for opener in OPENERS)


def test_the_second_answer_of_its_kind_is_only_compared() -> None:
    plain = Plain(OPENERS)
    for text in ("one", "two"):
        assert plain.usage(answer(text, reasoning=None), NAMES) == Usage(3, 4)
    assert len(plain._seen) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"id":"chatcmpl-', b'"id":"other-'),
        (b"0123456789abcdef", b"3"),
        (b'"model":"asked"', b'"model":"vendor/other"'),
        (b"1700000000", b"170000000"),
        (b'"content":"text"', b'"content":"<think>a</think>text"'),
        (b'"content":"text"', b'"content":null,"tool_calls":[{"id":"a"}]'),
        (b'"content":"text"', b'"content":"text","reasoning":"thought"'),
        (b'"total_tokens":7}', b'"total_tokens":7},"reasoning":"late"'),
    ],
)
def test_an_answer_like_a_known_one_in_all_but_one_thing(before: bytes, after: bytes) -> None:
    """A shorter time of creation is odd, but nothing has to change."""
    plain = Plain(OPENERS)
    known = answer("text")
    assert plain.usage(known, NAMES) == Usage(3, 4)
    assert before in known
    expected = Usage(3, 4) if before == b"1700000000" else None
    assert plain.usage(known.replace(before, after), NAMES) == expected


def test_only_so_much_is_remembered() -> None:
    plain = Plain(OPENERS)
    for number in range(3 * SURROUNDINGS):
        more: dict[str, Json] = {f"field{number}": None}
        assert plain.usage(answer("text", **more), NAMES) == Usage(3, 4)
    assert len(plain._seen) == SURROUNDINGS
