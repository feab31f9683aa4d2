# ruff: noqa: RUF001 - the markers of some formats hold full-width bars
"""Habits of single families that no grammar teaches, and what they mean."""

from typing import Any

import pytest

from .test_traps import PARIS, read

TIME = [("get_time", "{}", True)]
BAR = "｜"
EMPTY_FENCE = (
    f"<{BAR}tool▁calls▁begin{BAR}><{BAR}tool▁call▁begin{BAR}>function<{BAR}tool▁sep{BAR}>get_time\n"
    f"```json\n\n```<{BAR}tool▁call▁end{BAR}><{BAR}tool▁calls▁end{BAR}>"
)
NAMED = {"type": "function", "function": {"name": "get_weather"}}


@pytest.mark.parametrize("joint", ["; ", ";", ", ", "\n", "; <|python_tag|>", "<|python_tag|>", "\n<|python_tag|>"])
@pytest.mark.parametrize("start", ["", "<|python_tag|>"])
def test_llama_joins_calls_in_many_ways(joint: str, start: str) -> None:
    """With the tag before the first call, before each, or before none."""
    text = f'{start}{{"name": "get_weather", "parameters": {{"city": "Paris"}}}}{joint}{{"name": "get_time"}}'
    assert read(text, "llama3_json") == (None, None, PARIS + TIME, "tool_calls")


@pytest.mark.parametrize(
    "text",
    [
        '<|python_tag|>get_weather.call(city="Paris")<|eom_id|>',
        '<|python_tag|>get_weather(city="Paris")',
        '<function=get_weather>{"city": "Paris"}</function><|eom_id|>',
        '<function=get_weather>{"city": "Paris"}',
    ],
)
def test_llama_calls_as_its_built_in_and_custom_tools_are_called(text: str) -> None:
    """The two other ways that its prompts teach, for offered tools."""
    assert read(text, "llama3_json") == (None, None, PARIS, "tool_calls")
    content, _, calls, _ = read(text.replace("get_weather", "nope").removesuffix("<|eom_id|>"), "llama3_json")
    assert (content, calls) == (text.replace("get_weather", "nope").removesuffix("<|eom_id|>"), [])


def test_text_after_a_llama_call_keeps_its_semicolon() -> None:
    """Only before another call it is markup."""
    text = '{"name": "get_weather", "parameters": {"city": "Paris"}}; done'
    content, _, calls, _ = read(text, "llama3_json")
    assert (content, calls) == ("; done", PARIS)


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("'a' 'b'", '"ab"'),
        ("'a'\n    \"b\"", '"ab"'),
        ("r'\\b' '\\n'", '"\\\\b\\n"'),
        ("'''a''' 'b'", '"ab"'),
        ("''", '""'),
    ],
)
def test_strings_side_by_side_are_one(written: str, wanted: str) -> None:
    """As in Python."""
    assert read(f"[get_weather(city={written}, days=1)]", "pythonic")[2] == [
        ("get_weather", f'{{"city": {wanted}, "days": 1}}', True)
    ]


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        ("mistral_v11", "[TOOL_CALLS]get_time[ARGS]"),
        ("mistral_v11", "[TOOL_CALLS]get_time[ARGS] </s>"),
        ("kimi_k2", "<|tool_call_begin|>functions.get_time:0<|tool_call_argument_begin|>"),
        ("deepseek_v31", f"<{BAR}tool▁call▁begin{BAR}>get_time<{BAR}tool▁sep{BAR}><{BAR}tool▁call▁end{BAR}>"),
        (
            "deepseek_v3",
            EMPTY_FENCE,
        ),
    ],
)
def test_nothing_after_the_separator_is_no_arguments(wire: str, text: str) -> None:
    """Unless the limit fell there."""
    assert read(text, wire)[2] == TIME
    if not text.endswith(">") or wire == "kimi_k2":
        assert read(text, wire, finish_reason="length")[2] in ([("get_time", "", False)], TIME)


def test_blanks_around_gemmas_call_are_markup() -> None:
    """Before the call, around its braces, before its closer."""
    text = '<|tool_call>\n call:get_weather{ city : <|"|>Paris<|"|> }\n<tool_call|>'
    assert read(text, "gemma4") == (None, None, PARIS, "tool_calls")


@pytest.mark.parametrize("wire", ["harmony", "hermes", "gemma4"])
@pytest.mark.parametrize(
    ("choice", "text", "calls", "finish"),
    [
        ("required", '[{"name": "get_weather", "parameters": {"city": "Paris"}}]', PARIS, "tool_calls"),
        (NAMED, '{"city": "Paris"}', PARIS, "stop"),
        (NAMED, '{"name": "get_time"}', [("get_weather", '{"name": "get_time"}', True)], "stop"),
        (NAMED, '{"name": "get_weather", "arguments": {"city": "Paris"}}', PARIS, "stop"),
    ],
)
def test_forced_calls_as_plain_json(wire: str, choice: Any, text: str, calls: Any, finish: str) -> None:  # noqa: ANN401
    """In every format, without any header; an object with nothing but a name is arguments that have a name."""
    assert read(text, wire, tool_choice=choice) == (None, None, calls, finish)


@pytest.mark.parametrize(
    ("wire", "frame"),
    [
        (
            "qwen3_xml",
            "<tool_call><function=get_weather>\n<parameter=city>\n{}\n</parameter>\n</function></tool_call>",
        ),
        ("glm45", "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>"),
        ("minimax_m2", '<minimax:tool_call><invoke name="get_weather"><parameter name="city">{}</parameter></invoke>'),
    ],
)
def test_of_two_closers_the_last_is_markup(wire: str, frame: str) -> None:
    """A value may hold the tag that ends values, at its end too."""
    closer = {"qwen3_xml": "</parameter>", "glm45": "</arg_value>", "minimax_m2": "</parameter>"}[wire]
    for value in (f"x {closer}", f"a {closer} b", f"{closer}", f"x {closer}{closer}"):
        wanted = [("get_weather", f'{{"city": "{value}"}}', True)]
        assert read(frame.format(value), wire)[2] == wanted, value


@pytest.mark.parametrize("starts_in_reasoning", [True, False])
def test_k2_horizon_writes_calls_in_three_ways(starts_in_reasoning: bool) -> None:
    """With types, without, and as JSON; a call ends its reasoning."""
    typed = "<ifm|arg_key>{}</ifm|arg_key><ifm|arg_type>{}</ifm|arg_type><ifm|arg_value>{}</ifm|arg_value>"
    untyped = "<ifm|arg_key>city</ifm|arg_key><ifm|arg_value>Paris</ifm|arg_value>"
    opener = "" if starts_in_reasoning else "<ifm|think_fast>"
    text = (
        f"{opener}hm<ifm|tool_calls><ifm|tool_call>get_weather{untyped}</ifm|tool_call>"
        f"<ifm|tool_call>nope{typed.format('a', 'string', '1')}{typed.format('b', 'integer', '1')}</ifm|tool_call>\n"
        '<ifm|tool_call>{"name": "get_time", "arguments": {}}</ifm|tool_call></ifm|tool_calls><|ifm|im_end|>'
    )
    wanted = (None, "hm", [*PARIS, ("nope", '{"a": "1", "b": 1}', True), *TIME], "tool_calls")
    assert read(text, "k2_horizon", starts_in_reasoning=starts_in_reasoning) == wanted
    closed = f"{opener}hm</ifm|think_fast>\nHi."
    assert read(closed, "k2_v3", starts_in_reasoning=starts_in_reasoning) == ("\nHi.", "hm", [], "stop")


SHARED = {
    "hermes": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>',
    "qwen3_xml": "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function></tool_call>",
    "glm45": "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>",
}


@pytest.mark.parametrize("wire", [*SHARED, "glm47", "granite4"])
@pytest.mark.parametrize("other", SHARED)
def test_what_families_with_the_same_opener_write_is_read(wire: str, other: str) -> None:
    """A model that is taken for another of them, or writes both; for offered tools only."""
    text = f"Well: {SHARED[other]}\n{SHARED['hermes']}"
    assert read(text, wire) == ("Well: ", None, PARIS * 2, "tool_calls")


@pytest.mark.parametrize(
    ("wire", "other"), [("hermes", "qwen3_xml"), ("hermes", "glm45"), ("qwen3_xml", "glm45"), ("glm45", "qwen3_xml")]
)
def test_unknown_tools_in_the_markup_of_others_are_text(wire: str, other: str) -> None:
    """`<tool_call>` and a word may be prose."""
    text = SHARED[other].replace("get_weather", "nope")
    assert read(text, wire) == (text, None, [], "stop")


def test_objects_in_xml_values_are_repaired() -> None:
    """As they are in JSON formats: raw newlines, trailing commas, Python's words."""
    value = '{"a": "x\ny", "b": [1,], "c": True}'
    text = f"<tool_call><function=get_weather><parameter=where>{value}</parameter></function></tool_call>"
    wanted = '{"where": {"a": "x\\ny", "b": [1], "c": true}}'
    assert read(text, "qwen3_xml")[2] == [("get_weather", wanted, True)]
