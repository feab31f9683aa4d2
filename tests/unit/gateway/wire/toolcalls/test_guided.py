"""JSON that the engine was made to write: `required` and named tools."""

from typing import Any

import pytest

from .renderers import FAMILIES
from .strategies import TOOLS, read

NAMED = {"type": "function", "function": {"name": "get_time"}}
LIST = '[{"name": "get_time", "parameters": {"i": 1}}, {"name": "get_weather", "arguments": {}}]'
BOTH = [("get_time", '{"i": 1}', True), ("get_weather", "{}", True)]
WIRES = ("guided", "hermes", "qwen3_xml", "llama3_json", "mistral_v11", "glm45", "pythonic", "deepseek_v32")


@pytest.mark.parametrize("wire", WIRES)
def test_required_takes_a_list_of_calls_in_every_format(wire: str) -> None:
    """Also after reasoning, after whitespace, and as a single object."""
    assert read(LIST, wire, tool_choice="required") == (None, None, BOTH, "tool_calls")
    assert read(f"<think>a</think>\n {LIST}\n", wire, tool_choice="required") == (None, "a", BOTH, "tool_calls")
    single = '{"name": "get_time", "parameters": {"i": 1}}'
    assert read(single, wire, tool_choice="required")[2] == BOTH[:1]


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "guided"])
def test_required_takes_native_markup_too(wire: str) -> None:
    """Which of them an engine's parser made the model write cannot be known."""
    text = FAMILIES[wire].render([("get_time", {"i": 1})])
    for choice in ("required", NAMED):
        assert read(text, wire, tool_choice=choice)[2] == BOTH[:1]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"i": 1}', '{"i": 1}'),
        ("{}", "{}"),
        ('{"name": "get_time", "arguments": {"i": 1}}', '{"i": 1}'),
        ('[{"name": "get_time", "parameters": {"i": 1}}]', '{"i": 1}'),
        ('{"name": "Bob"}', '{"name": "Bob"}'),
        ('{"arguments": 1}', '{"arguments": 1}'),
        ('```json\n{"i": 1}\n```', '{"i": 1}'),
        (' {"s": "}{"}', '{"s": "}{"}'),
        ('"{\\"i\\": 1}"', '{"i": 1}'),
    ],
)
def test_a_named_tool_takes_bare_arguments(wire: str, text: str, arguments: str) -> None:
    """Unless they are a whole call of an offered tool; the finish reason is `stop`."""
    wanted = (None, None, [("get_time", arguments, True)], "stop")
    assert read(text, wire, tool_choice=NAMED) == wanted
    assert read(list(text), wire, tool_choice=NAMED) == wanted


def test_bare_arguments_end_with_their_brace() -> None:
    """What engines let the model write after it is no argument."""
    text = '{"i": 1}}\n</tool_call>Sure!'
    for wire in ("guided", "hermes"):
        assert read(text, wire, tool_choice=NAMED) == ("Sure!", None, BOTH[:1], "stop")


def test_a_cut_list_keeps_its_whole_calls() -> None:
    """The open one is as far as it came."""
    text = LIST[: LIST.index('"arguments": {') + len('"arguments": {')]
    wanted = [*BOTH[:1], ("get_weather", "{", False)]
    assert read(text, "guided", tool_choice="required", finish_reason="length") == (None, None, wanted, "length")
    early = read(LIST[:60], "guided", tool_choice="required", finish_reason="length")
    assert early == (None, None, BOTH[:1], "length")
    named = read('{"i": 1', "guided", tool_choice=NAMED, finish_reason="length")
    assert named == (None, None, [("get_time", '{"i": 1', False)], "length")


def test_one_offered_tool_is_the_one_that_is_required() -> None:
    """Triton forces the first tool by its arguments alone."""
    assert read('{"i": 1}', "hermes", tools=TOOLS[1:2], tool_choice="required") == (None, None, BOTH[:1], "tool_calls")
    assert read('{"i": 1}', "hermes", tool_choice="required") == ('{"i": 1}', None, [], "stop")


@pytest.mark.parametrize(
    ("choice", "named"),
    [
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED]}}, False),
        ({"type": "allowed_tools", "mode": "required", "tools": [NAMED]}, False),
        ("any", False),
        ({"name": "get_time"}, True),
    ],
)
def test_every_spelling_of_a_forced_choice(choice: Any, named: bool) -> None:  # noqa: ANN401 - what clients send
    """Allowed tools, and what other APIs call it."""
    wanted = "stop" if named else "tool_calls"
    assert read(LIST.split(", {", maxsplit=1)[0] + "]", "hermes", tool_choice=choice)[2:] == (BOTH[:1], wanted)


def test_prose_under_a_forced_choice_is_prose() -> None:
    """The model refused."""
    for text in ("I cannot.", '"Quoted", he said', "[citation needed]", "{oops", '[{"a": 1}]'):
        assert read(text, "hermes", tool_choice="required") == (text, None, [], "stop")
