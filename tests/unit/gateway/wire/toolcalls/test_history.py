"""Ids in the message history, per family."""

import re
from typing import Any

from gateway.wire.toolcalls.history import rewrite_ids
from gateway.wire.toolcalls.spec import IdStyle


def call(call_id: str, name: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def conversation() -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call("call_a", "f"), call("call_b", "g")]},
        {"role": "tool", "tool_call_id": "call_b", "content": "2"},
        {"role": "tool", "tool_call_id": "call_a", "content": "1"},
        {"role": "assistant", "content": None, "tool_calls": [call("call_a", "f")]},
        {"role": "tool", "tool_call_id": "call_a", "content": "3"},
    ]


def ids(messages: Any) -> list[str]:  # noqa: ANN401 - what comes back
    found = []
    for message in messages:
        found += [one["id"] for one in message.get("tool_calls", ())]
        found += [message["tool_call_id"]] if "tool_call_id" in message else []
    return found


def test_kimi_carries_the_name_and_counts_over_the_conversation() -> None:
    """Results follow their calls, also where two turns used one id."""
    assert ids(rewrite_ids(conversation(), IdStyle.KIMI)) == [
        "functions.f:0",
        "functions.g:1",
        "functions.g:1",
        "functions.f:0",
        "functions.f:2",
        "functions.f:2",
    ]


def test_mistral_gets_nine_letters_or_digits() -> None:
    """The same history always gives the same ones, and each call its own."""
    once, twice = (ids(rewrite_ids(conversation(), IdStyle.MISTRAL)) for _ in range(2))
    assert once == twice
    assert all(re.fullmatch("[A-Za-z0-9]{9}", one) for one in once)
    assert once[0] == once[3] != once[1] == once[2]
    assert once[4] == once[5]
    assert len(set(once)) == 3


def test_what_is_right_is_the_same_object() -> None:
    """Twice rewritten is once rewritten, and other families keep everything."""
    messages = conversation()
    assert rewrite_ids(messages, IdStyle.ANY) is messages
    for style in (IdStyle.KIMI, IdStyle.MISTRAL):
        made = rewrite_ids(messages, style)
        assert made[0] is messages[0]
        assert rewrite_ids(made, style) is made
        assert messages == conversation()


def test_results_without_an_id_go_to_the_first_call_that_waits() -> None:
    """And so do those whose id no call has."""
    messages = [
        *conversation()[:2],
        {"role": "tool", "content": "1"},
        {"role": "tool", "tool_call_id": "lost", "content": "2"},
        {"role": "tool", "tool_call_id": "more", "content": "3"},
    ]
    assert ids(rewrite_ids(messages, IdStyle.KIMI))[2:] == ["functions.f:0", "functions.g:1", "more"]


def test_odd_histories_do_not_crash() -> None:
    """Validation is elsewhere."""
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "tool_calls": None},
        {"role": "assistant", "tool_calls": ["x", {"function": None}, {}]},
        {"role": "tool", "tool_call_id": None},
        {"role": "assistant", "tool_calls": "x"},
        {},
    ]
    assert len(rewrite_ids(messages, IdStyle.KIMI)) == len(messages)


def test_a_mistral_id_that_collides_gets_another() -> None:
    """Two calls with one good id in different turns."""
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "tool_calls": [call("abcdefghi", "f")]},
        {"role": "tool", "tool_call_id": "abcdefghi", "content": "1"},
        {"role": "assistant", "tool_calls": [call("abcdefghi", "f")]},
        {"role": "tool", "tool_call_id": "abcdefghi", "content": "2"},
    ]
    made = ids(rewrite_ids(messages, IdStyle.MISTRAL))
    assert made[:2] == ["abcdefghi"] * 2
    assert made[2] == made[3] != "abcdefghi"
