"""The engines' incremental tool parsers, as simulated."""

import json
from collections.abc import Mapping
from typing import Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.simulator import tokens
from engines.simulator.markup import Markup, write
from engines.simulator.parsers import hermes, llama3, mistral, qwen3
from engines.simulator.parsers.deltas import (
    CallArguments,
    CallStart,
    Delta,
    Text,
    common_prefix,
    split_reasoning,
)
from engines.simulator.partial import Incomplete, read
from engines.simulator.script import Call

ascii_text = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | ascii_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ascii_text, inner, max_size=3),
    max_leaves=5,
)
arguments = st.dictionaries(st.text("abcdef", min_size=1, max_size=6), values, min_size=1, max_size=4)


class TakesTokens(Protocol):
    """A parser of one answer."""

    def feed(self, piece: str) -> list[Delta]: ...


def fed(parser: TakesTokens, text: str) -> list[Delta]:
    return [delta for piece in tokens.pieces(text) for delta in parser.feed(piece)]


def streamed(deltas: list[Delta], index: int) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, CallArguments) and delta.index == index)


@given(values)
def test_a_complete_text_is_read_whole(value: object) -> None:
    """Reading a JSON text gives its value, where it ends, and that it is complete; numbers may go on."""
    text = json.dumps({"value": value})
    assert read(text + " tail") == ({"value": value}, len(text), True)


@given(arguments, st.data())
def test_a_beginning_gives_a_part_of_the_value(value: Mapping[str, object], data: st.DataObject) -> None:
    """Every beginning of a text either has no value yet or has members of the whole, in order."""
    text = json.dumps(value)
    cut = data.draw(st.integers(1, len(text) - 1))
    found, _, complete = read(text[:cut])
    assert not complete
    assert list(found) == list(value)[: len(found)]
    assert all(found[name] == value[name] for name in list(found)[:-1])


@pytest.mark.parametrize("text", ["", "  ", "nonsense", "tru"])
def test_what_has_no_value_yet_is_incomplete(text: str) -> None:
    """There is nothing to give."""
    with pytest.raises(Incomplete):
        read(text)


@given(st.lists(arguments, min_size=1, max_size=3))
def test_hermes_passes_arguments_on_as_they_are_written(calls: list[Mapping[str, object]]) -> None:
    """The streamed arguments are the model's own text, call by call."""
    written = [json.dumps(call) for call in calls]
    deltas = fed(hermes.HermesStream(), write([Call("tool", text) for text in written], Markup.HERMES))
    assert [streamed(deltas, index) for index in range(len(calls))] == written
    assert [delta.index for delta in deltas if isinstance(delta, CallStart)] == list(range(len(calls)))


@given(st.lists(arguments, min_size=1, max_size=3))
def test_qwen3_streams_the_same_json(calls: list[Mapping[str, object]]) -> None:
    """Whatever it holds back and sends in bursts adds up to the arguments, unless they are empty."""
    text = write([Call("tool", json.dumps(call)) for call in calls], Markup.HERMES)
    deltas = fed(qwen3.Qwen3Stream({"tool"}), text)
    assert [json.loads(streamed(deltas, index)) for index in range(len(calls))] == calls
    assert not [delta for delta in deltas if isinstance(delta, Text)]


@given(arguments)
def test_llama3_adds_up_to_the_arguments(call: Mapping[str, object]) -> None:
    """With ASCII arguments the stream is right; the last delta brings the rest."""
    parser = llama3.Llama3Stream()
    deltas = fed(parser, write([Call("tool", json.dumps(call))], Markup.LLAMA3))
    assert json.loads(streamed(deltas, 0)) == call
    assert parser.called


def test_whole_and_streamed_answers_disagree_where_the_engines_do() -> None:
    """Prose in front of a llama3 call hides it; a `[` in prose swallows the rest of a mistral stream."""
    prose = 'Look: {"name": "f", "parameters": {"a": 1}}'
    assert llama3.parse(prose) == (prose, [])
    assert "".join(delta.text for delta in fed(llama3.Llama3Stream(), prose) if isinstance(delta, Text)) == prose
    listed = "See [1, 2] and more."
    assert mistral.parse(listed) == (listed, [])
    assert "".join(delta.text for delta in fed(mistral.MistralStream(), listed) if isinstance(delta, Text)) == "See "


def test_broken_calls_end_as_recorded() -> None:
    """vLLM gives raw text whole, and half a call streamed; trtllm-serve loses the text (`tool_cut`, `q_cut`)."""
    broken = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Par\n</tool_call>'
    assert hermes.parse(broken) == (broken, [])
    assert streamed(fed(hermes.HermesStream(), broken), 0) == '{"city": "Par'
    assert qwen3.parse(broken, {"get_weather"}) == ("", [])


def test_calls_of_unknown_tools_leak_from_qwen3() -> None:
    """The call is dropped and the rest of its markup becomes content (`tools_auto_q_unknown_stream`)."""
    text = write([Call("nope", '{"a": 1}')], Markup.HERMES)
    deltas = fed(qwen3.Qwen3Stream({"tool"}), text)
    assert all(isinstance(delta, Text) for delta in deltas)
    assert "arguments" in "".join(delta.text for delta in deltas if isinstance(delta, Text))


@given(st.text(max_size=30), st.text(max_size=30))
def test_the_common_prefix_begins_both(one: str, other: str) -> None:
    """It is a beginning of both, and the longest."""
    shared = common_prefix(one, other)
    assert one.startswith(shared)
    assert other.startswith(shared)
    following = slice(len(shared), len(shared) + 1)
    assert one[following] != other[following] or not one[following]


@given(st.lists(st.sampled_from(["a", "b", "<think>", "</think>"]), max_size=12), st.booleans())
def test_reasoning_is_split_token_by_token(pieces: list[str], inside: bool) -> None:
    """Every token goes to one side, a marker to neither."""
    parts = split_reasoning(pieces, inside=inside)
    assert len(parts) == len(pieces)
    assert not [both for both in parts if both[0] and both[1]]
