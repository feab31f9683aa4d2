"""Reasoning at the beginning of an answer, taken from its content."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.toolcalls import ReasoningDelta, TextDelta, format_named, parse
from gateway.wire.tools.thoughts import ReasoningRule, Thoughts

PAIRS = ReasoningRule().pairs()
PARTS = st.sampled_from(["<think>", "</think>", "<thi", "nk>", "a", " ", "\n", "<", "</", "think", "Hi."])
TEXTS = st.lists(PARTS, max_size=12).map("".join)


def read(text: str, sizes: list[int] | None = None, *, opened: bool = False) -> tuple[str, str]:
    """Reasoning and content of a text that comes in pieces of these sizes, and then at once."""
    reader = Thoughts(PAIRS, opened=opened)
    deltas = []
    for size in sizes or ():
        deltas += reader.feed(text[:size])
        text = text[size:]
    deltas += [*reader.feed(text), *reader.finish("stop")]
    assert reader.settled
    thoughts = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    return thoughts, "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


@pytest.mark.parametrize(
    ("text", "reasoning", "content"),
    [
        ("Hi.", "", "Hi."),
        ("<think>hm</think>Hi.", "hm", "Hi."),
        ("\n<think>\nhm\n</think>\n\nHi.", "\nhm\n", "\n\nHi."),
        ("<think>\n\n</think>\n\nHi.", "", "\n\nHi."),
        ("<think>hm", "hm", ""),
        ("<think>  ", "", ""),
        ("  ", "", "  "),
        ("<thinking>hm</thinking>", "", "<thinking>hm</thinking>"),
        ("Hi <think>hm</think>", "", "Hi <think>hm</think>"),
        ("<think>a</think>b<think>c</think>", "a", "b<think>c</think>"),
        ("hm</think>Hi.", "", "hm</think>Hi."),
        ("<think>a</think><think> </think>Hi.", "a", "Hi."),
        ("<think>a</think><think> ", "a", ""),
        ("<think>a</think><think> b </think>Hi.", "a b ", "Hi."),
    ],
)
def test_a_leading_block(text: str, reasoning: str, content: str) -> None:
    assert read(text) == (reasoning, content)
    assert read(text, [1] * len(text)) == (reasoning, content)


def test_a_block_that_the_prompt_opened() -> None:
    assert read("hm</think>Hi.", opened=True) == ("hm", "Hi.")
    assert read("hm", opened=True) == ("hm", "")
    assert read("</think>Hi.", opened=True) == ("", "Hi.")


@given(TEXTS, st.lists(st.integers(1, 5), max_size=20), st.booleans())
def test_the_borders_of_pieces_mean_nothing(text: str, sizes: list[int], opened: bool) -> None:
    assert read(text, sizes, opened=opened) == read(text, opened=opened)


@given(TEXTS, st.booleans())
def test_it_says_what_the_parser_of_calls_says(text: str, opened: bool) -> None:
    """Which of the two reads an answer depends on whether the request has tools; nobody should notice.

    But for blanks before the first word.
    """
    parsed = parse(text, format="hermes", tools=[], starts_in_reasoning=opened)
    reasoning, content = read(text, opened=opened)

    assert reasoning.lstrip() == (parsed.reasoning or "").lstrip()
    assert content.lstrip() == (parsed.content or "").lstrip()


def test_families_of_formats_and_configured_names() -> None:
    assert ReasoningRule().pairs(format_named("mistral")) == (("[THINK]", "[/THINK]"), ("<think>", "</think>"))
    assert ReasoningRule("magistral").pairs()[0] == ("[THINK]", "[/THINK]")
    assert ReasoningRule("off").pairs(format_named("mistral")) == ()
    assert Thoughts(()).settled


def test_an_engine_that_gives_reasoning_itself_is_believed() -> None:
    reader = Thoughts(PAIRS, opened=True)
    reader.settle()

    assert reader.feed("<think>no</think>") == [TextDelta("<think>no</think>")]
