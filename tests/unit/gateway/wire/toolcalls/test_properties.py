"""The properties that every format must have (tool-calls.md section 4)."""

import codecs
import json
import re
from typing import Any, assert_never

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.wire.toolcalls import (
    CallArguments,
    CallEnd,
    CallStart,
    Delta,
    Finish,
    ReasoningDelta,
    Stream,
    TextDelta,
    collect,
    format_named,
    reasoning_named,
)
from gateway.wire.toolcalls.spec import COMMON_TURN_ENDS

from .renderers import FAMILIES, js
from .strategies import ALL, SURROGATES, TOOLS, answers, calls, decoded, mangled, pieces, read, seen

quick = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
few = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", ALL)
def test_what_was_rendered_is_what_is_read(name: str) -> None:
    """Round trip: names, arguments with their types, and visible text come back; JSON formats byte for byte."""

    @quick
    @given(answers(name))
    def check(answer: tuple[str, str, list[tuple[str, dict[str, Any]]]]) -> None:
        text, said, made = answer
        content, reasoning, found, reason = read(text, name)
        assert [(n, decoded(a)) for n, a, _ in found] == made, text
        assert all(whole for *_, whole in found)
        assert (content or "", reasoning, reason) == (said, None, "tool_calls")
        if FAMILIES[name].exact:
            assert [a for _, a, _ in found] == [js(a) for _, a in made]

    check()


@pytest.mark.parametrize("name", ALL)
def test_pieces_do_not_matter(name: str) -> None:
    """Chunk invariance: one character at a time, one byte at a time, or any split gives what the whole text gives."""

    @quick
    @given(st.one_of(answers(name).map(lambda answer: answer[0]), mangled(name)), st.data())
    def check(text: str, data: st.DataObject) -> None:
        whole = read(text, name)
        assert read(list(text), name) == whole
        assert read(data.draw(st.composite(pieces)(text)), name) == whole
        if "\ud83c" not in text and "\udf27" not in text:
            decoder = codecs.getincrementaldecoder("utf-8")()
            assert read([decoder.decode(bytes([byte])) for byte in text.encode()], name) == whole

    check()


def _merged(deltas: list[Delta]) -> list[tuple[Any, ...]]:
    """Deltas with neighbouring pieces joined and ids left out."""
    made: list[tuple[Any, ...]] = []
    for delta in deltas:
        match delta:
            case TextDelta(text) | ReasoningDelta(text):
                one: tuple[Any, ...] = (type(delta).__name__, "", text)
            case CallArguments(index, text):
                one = ("arguments", index, text)
            case CallStart(index, _, name):
                one = ("start", index, name)
            case CallEnd(index, complete):
                one = ("end", index, complete)
            case Finish(reason):
                one = ("finish", "", reason)
            case _:
                assert_never(delta)
        if made and made[-1][:2] == one[:2] and one[0] not in ("start", "end", "finish"):
            made[-1] = (*one[:2], made[-1][2] + one[2])
        else:
            made.append(one)
    return made


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_taken_back(name: str) -> None:
    """What was said about a beginning of the text is a beginning of what is said about the whole."""

    @few
    @given(mangled(name))
    def check(text: str) -> None:
        stream = Stream(name, tools=TOOLS)
        so_far: list[Delta] = []
        states = []
        for char in text:
            so_far.extend(stream.feed(char))
            states.append(_merged(so_far))
        whole = _merged(so_far + stream.finish("stop"))
        for state in states:
            if state:
                last = state[-1]
                assert whole[: len(state) - 1] == state[:-1]
                assert whole[len(state) - 1][:2] == last[:2]
                assert str(whole[len(state) - 1][2]).startswith(str(last[2]))

    check()


@pytest.mark.parametrize("name", ALL)
def test_complete_calls_are_objects_and_cut_ones_are_open(name: str) -> None:
    """For every cut, whole calls are the first of the full text's, at most one is open, and none was closed by us."""

    @few
    @given(answers(name, 2), st.data())
    def check(answer: tuple[str, str, list[tuple[str, dict[str, Any]]]], data: st.DataObject) -> None:
        text = answer[0]
        full = read(text, name)[2]
        cuts = data.draw(st.lists(st.integers(0, len(text)), min_size=6, max_size=6))
        for cut in cuts:
            _, _, found, reason = read(text[:cut], name, finish_reason="length")
            whole = [call for call in found if call[2]]
            assert whole == full[: len(whole)], text[:cut]
            assert len(found) - len(whole) <= 1
            assert reason == "length"
            for _, arguments, complete in found:
                if not complete:
                    assert found[-1][1] == arguments
                    with pytest.raises(ValueError):  # noqa: PT011 - any will do
                        json.loads(arguments)

    check()


@pytest.mark.parametrize("name", ALL)
def test_whole_calls_of_any_text_are_objects(name: str) -> None:
    """Fuzz: no crash, nothing that UTF-8 cannot carry, and whatever is called whole is a JSON object."""

    @quick
    @given(
        mangled(name),
        st.sampled_from(("stop", "length", None)),
        st.sampled_from((None, "required", "none", {"type": "function", "function": {"name": "get_time"}})),
        st.booleans(),
        st.sampled_from(([], None, TOOLS)),
    )
    def check(
        text: str, reason: str | None, choice: object, thinking: bool, tools: list[dict[str, Any]] | None
    ) -> None:
        result = read(text, name, finish_reason=reason, tool_choice=choice, starts_in_reasoning=thinking, tools=tools)
        json.dumps(result, ensure_ascii=False).encode()
        for call, arguments, whole in result[2]:
            assert call
            if whole:
                decoded(arguments)
        if choice == "none" or tools == []:
            assert not result[2]

    check()


@pytest.mark.parametrize("name", ALL)
def test_text_without_calls_is_kept(name: str) -> None:
    """Text conservation: arbitrary prose comes out as it went in."""

    @few
    @given(
        st.text(st.characters(exclude_categories=SURROGATES), max_size=60).filter(
            lambda text: "<" not in text and "[e~[" not in text
        )
    )
    def check(text: str) -> None:
        content, reasoning, found, reason = read(text, name)
        assert (content, reasoning, found, reason) == (text, None, [], "stop")

    check()


@pytest.mark.parametrize("name", ALL)
def test_mangled_text_is_kept(name: str) -> None:
    """Text conservation: where no call is recognised, markup comes out as it went in; empty special sections go."""
    wire = format_named(name)
    family = reasoning_named(wire.reasoning)
    fences = [word for pair in (*family.pairs, *family.leads) for word in pair]
    dropped = [*COMMON_TURN_ENDS, *wire.turn_ends, *wire.transparent, *fences, "\ud83c", "\udf27"]
    dropped += ["<|start|>", "<|channel|>", "<|message|>"] if name == "harmony" else []

    pairs = [(a, b) for grammar in wire.grammars for a in grammar.opens for b in grammar.closes] if wire.special else []
    empty = re.compile("|".join(rf"{re.escape(a)}\s*{re.escape(b)}" for a, b in pairs) or r"(?!)")

    @quick
    @given(mangled(name).filter(lambda text: not any(word in text for word in dropped)))
    def check(text: str) -> None:
        content, _, found, _ = read(text, name)
        if not found and not empty.search(text):
            assert content == text

    check()


@pytest.mark.parametrize("name", ALL)
def test_the_protocol_of_deltas_holds(name: str) -> None:
    """Indices are dense, each call starts and ends once, nothing of a call comes outside of it, finish comes last."""

    @few
    @given(st.one_of(answers(name).map(lambda answer: answer[0]), mangled(name)))
    def check(text: str) -> None:
        stream = Stream(name, tools=TOOLS)
        deltas = [delta for char in text for delta in stream.feed(char)] + stream.finish("stop")
        open_call: int | None = None
        begun = 0
        ids = []
        for delta in deltas:
            match delta:
                case CallStart(index, call_id, _):
                    assert open_call is None
                    assert index == begun
                    begun, open_call = begun + 1, index
                    ids.append(call_id)
                case CallArguments(index, more):
                    assert index == open_call
                    assert more
                case CallEnd(index, _):
                    assert index == open_call
                    open_call = None
                case TextDelta(more) | ReasoningDelta(more):
                    assert open_call is None
                    assert more
                case Finish():
                    assert delta is deltas[-1]
        assert isinstance(deltas[-1], Finish)
        assert len(set(ids)) == len(ids)

    check()


@pytest.mark.parametrize("name", ALL)
def test_streams_are_independent(name: str) -> None:
    """Two answers read in turns give what each gives alone."""

    @few
    @given(calls(name, 2), mangled(name))
    def check(made: list[tuple[str, dict[str, Any]]], other: str) -> None:
        text = FAMILIES[name].render(made)
        one, two = Stream(name, tools=TOOLS), Stream(name, tools=TOOLS)
        first: list[Delta] = []
        second: list[Delta] = []
        for at in range(max(len(text), len(other))):
            first += one.feed(text[at : at + 1])
            second += two.feed(other[at : at + 1])
        assert seen(collect(first + one.finish("stop"))) == read(text, name)
        assert seen(collect(second + two.finish("stop"))) == read(other, name)

    check()
