"""Work and memory, counted: linear in the text, whatever the pieces."""

import sys
from types import FrameType
from typing import Any

import pytest

from gateway.wire.toolcalls import Stream, parse

from .renderers import FAMILIES, M3
from .strategies import TOOLS

OPEN = {
    "hermes": '<tool_call>{"name": "get_time", "arguments": {"s": "',
    "hermes_late_name": '<tool_call>{"arguments": {"s": "',
    "hermes_stringified": '<tool_call>{"name": "get_time", "arguments": "{',
    "qwen3_xml": "<tool_call>\n<function=get_time>\n<parameter=s>\n",
    "qwen3_xml_untyped": "<tool_call>\n<function=get_time>\n<parameter=zz>\n",
    "minimax_m3": f'{M3}<tool_call>{M3}<invoke name="get_time">{M3}<zz>',
    "gemma4": '<|tool_call>call:get_time{s:<|"|>',
    "gemma4_bare": "<|tool_call>call:get_time{zz:",
    "pythonic": "[get_time(s='",
    "harmony": '<|channel|>commentary to=functions.get_time<|message|>{"s": "',
    "reasoning": "<think>",
    "text": "Hello ",
    "draft": "<think>" + FAMILIES["qwen3_xml"].render([("get_time", {})]),
}


def _wire(case: str) -> str:
    names = {"reasoning": "hermes", "text": "hermes", "draft": "qwen3_xml"}
    return names.get(case) or next(name for name in sorted(FAMILIES, key=len, reverse=True) if case.startswith(name))


def _calls_made(case: str, count: int) -> int:
    """Function calls that feeding `count` pieces makes."""
    made = 0

    def note(_frame: FrameType, event: str, _arg: Any) -> None:  # noqa: ANN401 - the hook's signature
        nonlocal made
        made += event == "call"

    stream = Stream(_wire(case), tools=TOOLS)
    stream.feed(OPEN[case])
    sys.setprofile(note)
    try:
        for _ in range(count):
            stream.feed("ab <c")
        stream.finish()
    finally:
        sys.setprofile(None)
    return made


@pytest.mark.parametrize("case", OPEN)
def test_twice_the_text_is_twice_the_work(case: str) -> None:
    """The number of function calls grows with the number of pieces and no faster."""
    few, many = _calls_made(case, 400), _calls_made(case, 1600)
    assert many < few * 4.6


@pytest.mark.parametrize("case", OPEN)
def test_what_waits_to_be_read_stays_small(case: str) -> None:
    """The text that is copied with each piece never grows: no more is held back than a marker."""
    stream = Stream(_wire(case), tools=TOOLS)
    stream.feed(OPEN[case])
    for piece in ("ab <c", "</", " ", "\n", "x", "]<", "<|", "`", "</parameter", " ") * 40:
        stream.feed(piece)
        cursor = stream._machine.cursor
        assert len(cursor.buf) - cursor.pos < 200


@pytest.mark.parametrize("case", [case for case in OPEN if case not in ("reasoning", "text", "draft")])
def test_a_megabyte_of_arguments_is_read(case: str) -> None:
    """In one piece and in many, with the same result."""
    inner = "lorem ipsum 北京 " * 62_500
    text = OPEN[case] + inner
    whole = parse(text, format=_wire(case), tools=TOOLS, finish_reason="length")
    split = parse(
        (text[at : at + 4096] for at in range(0, len(text), 4096)),
        format=_wire(case),
        tools=TOOLS,
        finish_reason="length",
    )
    assert [call.arguments for call in whole.calls] == [call.arguments for call in split.calls]
    said = (whole.content or "") + "".join(call.arguments for call in whole.calls)
    assert said.count("lorem") == 62_500


def test_many_openers_that_lead_nowhere_are_linear() -> None:
    """Each attempt fails within its own period, so reading again costs no more than reading."""

    def cost(count: int) -> int:
        made = 0

        def note(_frame: FrameType, event: str, _arg: Any) -> None:  # noqa: ANN401 - the hook's signature
            nonlocal made
            made += event == "call"

        text = '<tool_call>{"arguments": {"a": "' * count
        sys.setprofile(note)
        try:
            parse(text, format="hermes", tools=TOOLS)
        finally:
            sys.setprofile(None)
        return made

    assert cost(800) < cost(200) * 4.6


def test_plain_text_goes_straight_through() -> None:
    """A piece without the first character of any marker costs no more than a handful of calls."""
    stream = Stream("hermes", tools=TOOLS)
    stream.feed("Hello")
    made = 0

    def note(_frame: FrameType, event: str, _arg: Any) -> None:  # noqa: ANN401 - the hook's signature
        nonlocal made
        made += event == "call"

    sys.setprofile(note)
    try:
        stream.feed(" world, this is plain text")
    finally:
        sys.setprofile(None)
    assert made <= 6
