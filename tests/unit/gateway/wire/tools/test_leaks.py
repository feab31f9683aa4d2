"""Markup of tool calls in content where none should be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.toolcalls import FORMATS, Format, Stream, collect, format_named
from gateway.wire.toolcalls.deltas import Parsed
from gateway.wire.tools.leaks import LeakReader
from gateway.wire.tools.thoughts import ReasoningRule, Thoughts
from tests.unit.gateway.wire.toolcalls.renderers import FAMILIES
from tests.unit.gateway.wire.tools.asking import TOOLS

PARIS = ("get_weather", {"city": "Paris"})
MARKED = [name for name, family in FAMILIES.items() if family.opener and family.opener != "functools"]
SAME = {
    "granite4": "hermes", "ernie45": "hermes", "glm47": "glm45", "hunyuan": "jamba", "llama4_pythonic": "pythonic",
    "minicpm5": "", "deepseek_v31": "deepseek_v3",
}  # fmt: skip
"""Formats whose markup begins as another's does, and is read as that."""


def read(text: str, known: str | None = None, sizes: list[int] | None = None) -> tuple[Parsed, list[str]]:
    leaks: list[str] = []

    def parser(wire: Format) -> Stream:
        return Stream(wire, tools=TOOLS, reasoning="off")

    wire = None if known is None else format_named(known)
    reader = LeakReader(Thoughts(ReasoningRule().pairs()), wire, parser, leaks.append)
    deltas = []
    for size in sizes or ():
        deltas += reader.feed(text[:size])
        text = text[size:]
    deltas += [*reader.feed(text), *reader.finish("stop")]
    return collect(deltas), leaks


@pytest.mark.parametrize("name", [name for name in MARKED if SAME.get(name, name)])
def test_markup_shows_its_format(name: str) -> None:
    """Whatever was expected, streamed in any way; what stands before it stays content."""
    text = "Well.\n" + FAMILIES[name].render([PARIS, PARIS])
    for known in (None, "hermes", "qwen3_xml", name):
        for sizes in (None, [1] * len(text), [7] * len(text)):
            parsed, leaks = read(text, known, sizes)
            assert [(call.name, call.arguments.replace(" ", "")) for call in parsed.calls] == [
                ("get_weather", '{"city":"Paris"}')
            ] * 2
            assert (parsed.content or "").strip() == "Well."
            assert len(leaks) == 1


@pytest.mark.parametrize("name", ["hermes", "granite4", "glm47", "jamba", "hunyuan", "mistral_v3", "mistral_v11"])
def test_what_is_known_decides_between_formats_that_begin_alike(name: str) -> None:
    _, leaks = read(FAMILIES[name].render([PARIS]), name)

    assert leaks == [name]


def test_prose_is_prose() -> None:
    text = 'Use <tool_call> to call, [x] < 3, <|im_start|> and {"name": "get_weather"}.'
    parsed, _ = read(text)

    assert (parsed.content, parsed.calls) == (text, ())


@given(st.text(st.sampled_from('<|>tol_ca[]TOLS_ {}:"n')), st.lists(st.integers(1, 6), max_size=20))
def test_nothing_is_lost_where_there_is_no_call(text: str, sizes: list[int]) -> None:
    parsed, _ = read(text, sizes=sizes)

    assert parsed.calls == ()
    assert (parsed.content or "") + (parsed.reasoning or "") == text


def test_reasoning_is_no_leak() -> None:
    parsed, leaks = read("<think>a <tool_call>? no</think>Hi.")

    assert (parsed.reasoning, parsed.content, leaks) == ("a <tool_call>? no", "Hi.", [])


def test_every_format_with_markers_is_found() -> None:
    """Or reads what another one's markers begin."""
    openers = {name for name in (wire.name for wire in FORMATS) if name in FAMILIES and FAMILIES[name].opener}

    assert openers - set(MARKED) == {"phi4_mini"}
