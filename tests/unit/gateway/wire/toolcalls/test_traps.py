# ruff: noqa: RUF001 - the markers of some formats hold full-width bars
"""The traps of tool-calls.md section 1.2, and the cases where its references disagree, each as decided."""

from typing import Any

import pytest

from gateway.wire.toolcalls import Stream, parse

from .strategies import Seen, seen

PROPERTIES: dict[str, Any] = {
    "city": {"type": "string"},
    "days": {"type": "integer"},
    "code": {"type": "string"},
    "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "mixed": {"type": ["string", "object"]},
    "unit": {"enum": ["c", "f"]},
    "where": {"$ref": "#/$defs/Place"},
    "all": {"allOf": [{"type": "integer"}, {"minimum": 0}]},
    "ratio": {"type": "number"},
    "on": {"type": "boolean"},
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": PROPERTIES,
                "$defs": {"Place": {"type": "object", "properties": {"lat": {"type": "number"}}}},
            },
        },
    },
    {"type": "function", "function": {"name": "get_time"}},
    {"name": "bare_function"},
]
HERMES = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
PARIS = [("get_weather", '{"city": "Paris"}', True)]


def read(text: str, name: str, **settings: Any) -> Seen:  # noqa: ANN401 - handed on as it is
    settings.setdefault("tools", TOOLS)
    whole = seen(parse(text, format=name, **settings))
    assert seen(parse(list(text), format=name, **settings)) == whole
    return whole


def xml(key: str, value: str, name: str = "qwen3_xml") -> str:
    """The JSON text that one XML value becomes."""
    text = f"<tool_call>\n<function=get_weather>\n<parameter={key}>\n{value}\n</parameter>\n</function>\n</tool_call>"
    [(_, arguments, whole)] = read(text, name)[2]
    assert whole
    start = f'{{"{key}": '
    assert arguments.startswith(start)
    return arguments.removeprefix(start).removesuffix("}")


def test_an_end_marker_inside_a_json_string_is_data() -> None:
    """JSON is scanned to its end; the closing tag is not searched for."""
    text = '<tool_call>\n{"name": "f", "arguments": {"code": "before </tool_call> after"}}\n</tool_call>'
    assert read(text, "hermes") == (None, None, [("f", '{"code": "before </tool_call> after"}', True)], "tool_calls")


def test_raw_newlines_and_tabs_in_json_strings_are_escaped() -> None:
    """They occur, and JSON does not allow them."""
    text = '<tool_call>{"name": "f", "arguments": {"code": "a\n\tb"}}</tool_call>'
    assert read(text, "hermes")[2] == [("f", '{"code": "a\\n\\tb"}', True)]


def test_escapes_pass_through_untouched() -> None:
    """Nothing is decoded: a surrogate pair split over pieces, lone ones, and mixed spellings stay as they are."""
    inner = '{"a": "\\ud83c\\udf27 \\ud83c \\u5317 北 \\/ \\"", "n": 3.0, "s": "42", "e": 1E5}'
    text = f'<tool_call>{{"name": "f", "arguments": {inner}}}</tool_call>'
    assert read(text, "hermes")[2] == [("f", inner, True)]
    for at in range(len(text)):
        assert parse([text[:at], text[at:]], format="hermes").calls[0].arguments == inner


def test_no_surrogate_character_gets_out() -> None:
    """Halves that arrive apart are joined; lone ones become U+FFFD, for UTF-8 cannot carry them."""
    assert read("a\ud83c\udf27b\ud83cc", "hermes")[0] == "a🌧b\ufffdc"
    assert read("a\ud83c", "hermes")[0] == "a\ufffd"
    text = "<tool_call>\n<function=f>\n<parameter=a>\n\udf27\n</parameter>\n</function>\n</tool_call>"
    assert read(text, "qwen3_xml")[2] == [("f", '{"a": "\ufffd"}', True)]


@pytest.mark.parametrize("value", ["&amp;", "&lt;b&gt;", "a &quot; b"])
def test_html_entities_in_xml_values_stay(value: str) -> None:
    """XML values are not HTML."""
    assert xml("city", value) == f'"{value}"'


def test_one_newline_on_each_side_is_markup_and_the_rest_is_data() -> None:
    """Indentation of code survives."""
    assert xml("code", "    if x:\n        y\n") == '"    if x:\\n        y\\n"'
    assert xml("code", "\n  a") == '"\\n  a"'
    assert xml("code", "") == '""'


def test_in_line_templates_keep_the_last_newline_of_a_file() -> None:
    """A newline before the closing tag is markup only if there is one after the opening tag."""
    text = "<tool_call>f\n<arg_key>code</arg_key>\n<arg_value>x = 1\n</arg_value>\n</tool_call>"
    assert read(text, "glm45")[2] == [("f", '{"code": "x = 1\\n"}', True)]
    framed = text.replace("<arg_value>", "<arg_value>\n")
    assert read(framed, "glm45")[2] == [("f", '{"code": "x = 1"}', True)]


@pytest.mark.parametrize("value", ["null", "true", "007", "1.50", "[1]", '{"a": 1}'])
def test_a_declared_string_stays_a_string(value: str) -> None:
    """The query `null` is not JSON null."""
    assert xml("city", value) == '"' + value.replace('"', '\\"') + '"'


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("days", "5", "5"),
        ("days", "5.0", "5"),
        ("days", "007", "7"),
        ("days", "five", '"five"'),
        ("days", "12345678901234567890123", "12345678901234567890123"),
        ("days", "5.5", "5.5"),
        ("either", "42", '"42"'),
        ("either", "null", '"null"'),
        ("maybe", "null", "null"),
        ("maybe", "nullable", '"nullable"'),
        ("maybe", "n", '"n"'),
        ("mixed", '{"a": 1}', '{"a": 1}'),
        ("mixed", "{oops", '"{oops"'),
        ("mixed", "[1]", '"[1]"'),
        ("unit", "c", '"c"'),
        ("where", '{"lat": 1.50}', '{"lat": 1.50}'),
        ("where", "{'lat': None, 'x': True}", '{"lat": null, "x": true}'),
        ("where", '"{\\"lat\\": 1}"', '{"lat": 1}'),
        ("all", "3", "3"),
        ("ratio", "1e3", "1e3"),
        ("ratio", ".5", "0.5"),
        ("ratio", "NaN", '"NaN"'),
        ("on", "True", "true"),
        ("on", "yes", '"yes"'),
        ("undeclared", "42", "42"),
        ("undeclared", "007", '"007"'),
        ("undeclared", "[1, 2]", "[1, 2]"),
        ("undeclared", "NaN", '"NaN"'),
        ("undeclared", "plain", '"plain"'),
    ],
)
def test_xml_values_are_typed_by_the_schema(key: str, value: str, wanted: str) -> None:
    """A string wins where it is allowed, except over null, objects and arrays that are allowed too."""
    assert xml(key, value) == wanted


@pytest.mark.parametrize("name", ["fs-read.v2", "a.b", "mcp__x__y", "x:y"])
def test_tool_names_may_have_dots_and_dashes(name: str) -> None:
    """In every kernel."""
    tools = [{"type": "function", "function": {"name": name}}]
    for wire, text in {
        "hermes": f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>',
        "qwen3_xml": f"<tool_call><function={name}></function></tool_call>",
        "pythonic": f"[{name}()]",
        "mistral_v11": f"[TOOL_CALLS]{name}[ARGS]{{}}",
        "gemma4": f"<|tool_call>call:{name}{{}}<tool_call|>",
        "kimi_k2": f"<|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{{}}<|tool_call_end|>",
        "harmony": f"<|channel|>commentary to=functions.{name}<|message|>{{}}<|call|>",
    }.items():
        assert read(text, wire, tools=tools)[2] == [(name, "{}", True)], wire


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        ("llama3_json", '{"name": "nope", "parameters": {}}'),
        ("pythonic", "[nope(a=1)]"),
        ("xlam", '[{"name": "nope", "arguments": {}}]'),
        ("llama3_json", 'Sure: {"name": "get_time", "parameters": {}}'),
        ("llama3_json", '```json\n{"name": "get_time", "parameters": {}}\n```'),
        ("pythonic", "Call [get_time()]"),
        ("xlam", 'Like this:\n```json\n[{"name": "get_time", "arguments": {}}]\n```'),
        ("llama3_json", '{"answer": 42}'),
        ("llama3_json", '{"name": "Bob", "age": 3}'),
    ],
)
def test_shapes_without_markup_need_an_offered_name_at_the_start(wire: str, text: str) -> None:
    """Anything else is text, JSON in prose above all."""
    assert read(text, wire) == (text, None, [], "stop")


def test_text_after_a_call_is_content() -> None:
    """Whitespace between markers goes; text on either side stays as it is."""
    text = f"First\n{HERMES}\n\n{HERMES}\nthen.\n{HERMES}\n<|im_end|>\n"
    assert read(text, "hermes") == ("First\n\nthen.\n", None, PARIS * 3, "tool_calls")
    assert read(f"\n\n{HERMES}\n", "hermes")[0] is None


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        ("hermes", '<tool_call>{"name": "nope", "arguments": {}}</tool_call>'),
        ("glm45", "<tool_call>nope\n</tool_call>"),
        ("minimax_m2", '<minimax:tool_call>\n<invoke name="nope">\n</invoke>\n</minimax:tool_call>'),
        ("kimi_k2", "<|tool_call_begin|>functions.nope:0<|tool_call_argument_begin|>{}<|tool_call_end|>"),
        ("llama3_json", '<|python_tag|>{"name": "nope", "parameters": {}}'),
        ("qwen3_xml", "<tool_call>\n<function=nope>\n</function>\n</tool_call>"),
    ],
)
def test_unknown_tools_are_returned_where_there_is_markup(wire: str, text: str) -> None:
    """The client decides."""
    if wire == "kimi_k2":
        text = f"<|tool_calls_section_begin|>{text}<|tool_calls_section_end|>"
    assert read(text, wire) == (None, None, [("nope", "{}", True)], "tool_calls")


@pytest.mark.parametrize("arguments", ["{}", "null", "[]", '""', '"{}"'])
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    """However the model says so."""
    text = f'<tool_call>{{"name": "get_time", "arguments": {arguments}}}</tool_call>'
    assert read(text, "hermes")[2] == [("get_time", "{}", True)]


def test_missing_arguments_are_an_empty_object() -> None:
    """A name alone is a call."""
    assert read('<tool_call>{"name": "get_time"}</tool_call>', "hermes")[2] == [("get_time", "{}", True)]


def test_stringified_arguments_are_decoded_once() -> None:
    """If they give an object; otherwise it is no call."""
    text = HERMES.replace('{"city": "Paris"}', '"{\\"city\\": \\"Paris\\"}"')
    assert read(text, "hermes")[2] == PARIS
    assert parse(text, format="hermes").repairs == {"stringified_arguments": 1}
    odd = HERMES.replace('{"city": "Paris"}', '"Paris"')
    assert read(odd, "hermes") == (odd, None, [], "stop")


def test_a_missing_opener_is_accepted_for_offered_tools() -> None:
    """Qwen3-Coder's habit."""
    text = "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>"
    assert read(text, "qwen3_xml") == (None, None, PARIS, "tool_calls")
    assert read(text.replace("get_weather", "nope"), "qwen3_xml")[2] == []


def test_dsml_without_a_type_is_typed_by_the_schema_or_a_string() -> None:
    """`string=` may be missing; a JSON body is arguments too."""
    mark = "｜DSML｜"
    params = "".join(f'<{mark}parameter name="{k}">2</{mark}parameter>' for k in ("city", "days", "undeclared"))
    text = f'<{mark}function_calls><{mark}invoke name="get_weather">{params}</{mark}invoke></{mark}function_calls>'
    assert read(text, "deepseek_v32")[2] == [("get_weather", '{"city": "2", "days": 2, "undeclared": "2"}', True)]
    body = text.replace(params, '{"city": "Paris"}')
    assert read(body, "deepseek_v32")[2] == PARIS


@pytest.mark.parametrize(
    "text",
    [
        "Use <tool_call> to call.",
        "Use `<tool_call>` and `</tool_call>`.",
        "<tool_call>",
        "<tool_call>\nfoo\n</tool_call>",
    ],
)
def test_a_marker_in_prose_is_prose(text: str) -> None:
    """And the rest of the text is not lost."""
    for wire in ("hermes", "qwen3_xml", "glm45"):
        if (wire, text) != ("glm45", "<tool_call>\nfoo\n</tool_call>"):
            assert read(text, wire) == (text, None, [], "stop")


def test_a_stray_marker_does_not_hide_the_call_after_it() -> None:
    """Reading starts again right after it."""
    assert read("A <tool_call> tag. " + HERMES, "hermes") == ("A <tool_call> tag. ", None, PARIS, "tool_calls")


def test_harmony_headers_may_lack_their_start_and_name_the_recipient_in_the_role() -> None:
    """All spellings are one call."""
    body = '<|message|>{"city": "Paris"}'
    for header in (
        "<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json",
        "<|channel|>commentary to=functions.get_weather <|constrain|>json",
        "<|channel|>commentary to=functions.get_weather json",
        "<|channel|>commentary to=functions.get_weather",
        "<|channel|>analysis to=functions.get_weather code",
        "<|start|>assistant to=functions.get_weather<|channel|>commentary json",
        " to=functions.get_weather<|channel|>commentary <|constrain|>json",
        "<|channel|>commentary<|channel|>commentary to=functions.get_weather <|constrain|>json",
    ):
        for end in ("<|call|>", ""):
            assert read(header + body + end, "harmony") == (None, None, PARIS, "tool_calls"), header


def test_a_call_cut_by_the_limit_is_open_and_says_length() -> None:
    """Complete calls before it stand; it is as it was generated."""
    text = HERMES + "\n" + HERMES[: HERMES.index("ris")]
    wanted = (None, None, [*PARIS, ("get_weather", '{"city": "Pa', False)], "length")
    assert read(text, "hermes", finish_reason="length") == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("<tool_call>\n<function=get_weather>\n<par", ""),
        ("<tool_call>\n<function=get_weather>\n<parameter=city>\nPar", '{"city": "Par'),
        ("<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</para", '{"city": "Paris'),
        ("<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n", '{"city": "Paris"'),
        ("<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</func", '{"city": "Paris"'),
    ],
)
def test_an_xml_call_cut_by_the_limit_is_never_closed(text: str, wanted: str) -> None:
    """Engines that close it return a wrong call as if it were right."""
    result = read(text, "qwen3_xml", finish_reason="length")
    assert result == (None, None, [("get_weather", wanted, False)], "length")


def test_missing_closers_at_a_natural_stop_are_forgiven() -> None:
    """Models often omit the last ones."""
    for end in (" ", "}\n", "}\n</tool_"):
        assert read(HERMES[: HERMES.index("}\n")] + end, "hermes") == (None, None, PARIS, "tool_calls")


def test_a_call_whose_required_arguments_are_missing_is_not_closed_for_the_model() -> None:
    """Triton says `stop` at the token limit: a call without its closing tag may be cut."""
    tools = [{"name": "f", "parameters": {"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}}]
    text = "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n"
    assert read(text, "qwen3_xml", tools=tools)[2] == [("f", '{"a": 1', False)]
    assert read(text + "<parameter=b>\n2\n</parameter>\n", "qwen3_xml", tools=tools)[2] == [
        ("f", '{"a": 1, "b": 2}', True)
    ]


@pytest.mark.parametrize(
    ("reason", "choice", "wanted"),
    [
        ("stop", None, "tool_calls"),
        ("tool_calls", "auto", "tool_calls"),
        ("length", None, "length"),
        ("stop", "required", "tool_calls"),
        ("stop", {"type": "function", "function": {"name": "get_weather"}}, "stop"),
        ("tool_calls", {"type": "function", "function": {"name": "get_weather"}}, "stop"),
        ("content_filter", None, "content_filter"),
        (None, None, "tool_calls"),
    ],
)
def test_the_finish_reason_is_the_truth(reason: str | None, choice: object, wanted: str) -> None:
    """`length` over `tool_calls`; `stop` for a named tool."""
    assert read(HERMES, "hermes", finish_reason=reason, tool_choice=choice)[3] == wanted
    assert read("hi", "hermes", finish_reason="tool_calls")[3] == "stop"


def test_without_tools_calls_dissolve_into_text() -> None:
    """`tool_choice: none` and an empty list alike; reasoning is still split."""
    text = "<think>a</think>" + HERMES
    assert read(text, "hermes", tool_choice="none") == (HERMES, "a", [], "stop")
    assert read(text, "hermes", tools=[]) == (HERMES, "a", [], "stop")


def test_ids_of_the_model_are_kept_when_clean_and_unique() -> None:
    """Otherwise they are ours."""
    one = "<|tool_call_begin|>functions.get_time:{}<|tool_call_argument_begin|>{{}}<|tool_call_end|>"
    text = "<|tool_calls_section_begin|>" + one.format(3) + one.format(4) + one.format(4) + "<|tool_calls_section_end|>"
    ids = [call.id for call in parse(text, format="kimi_k2", tools=TOOLS).calls]
    assert ids[:2] == ["functions.get_time:3", "functions.get_time:4"]
    assert ids[2].startswith("call_")
    assert len(ids[2]) == len("call_") + 24


def test_an_id_that_the_conversation_has_is_not_given_again() -> None:
    """Kimi's models begin to count anew in every answer, some of them."""
    text = "<|tool_call_begin|>functions.get_time:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
    (call,) = parse(text, format="kimi_k2", tools=TOOLS, used_ids={"functions.get_time:0"}).calls
    assert call.id.startswith("call_")


def test_only_the_first_call_where_calls_may_not_be_parallel() -> None:
    """`parallel_tool_calls: false`."""
    assert read(HERMES + HERMES, "hermes", parallel=False) == (None, None, PARIS, "tool_calls")


def test_a_broken_call_stays_open_and_the_rest_is_text() -> None:
    """Not one character is lost, and nothing pretends to be whole."""
    text = '<tool_call>{"name": "f", "arguments": {"a": 1, oops}}</tool_call> bye'
    assert read(text, "hermes") == ("oops}}</tool_call> bye", None, [("f", '{"a": 1, ', False)], "tool_calls")


def test_repairs_are_counted() -> None:
    """Each leniency by its name."""
    text = "<tool_call>\n```json\n{'name': 'f', 'arguments': {'a': True, }}\n```\n</tool_call>"
    parsed = parse(text, format="hermes")
    assert parsed.calls[0].arguments == '{"a": true }'
    assert parsed.repairs == {"code_fence": 1, "single_quotes": 1, "python_literal": 1, "trailing_comma": 1}
    assert parse(HERMES, format="hermes").repairs == {}


def test_a_stream_ends_once() -> None:
    """Finishing twice is a mistake of the caller."""
    stream = Stream("hermes")
    stream.finish()
    with pytest.raises(ValueError, match="before"):
        stream.finish()


@pytest.mark.parametrize("inner", ["[}", "[1}]", "{]", "[[}", "[,}", "{a:[}"])
def test_mismatched_brackets_end_an_object_call(inner: str) -> None:
    """They are no elements, however many are wanted."""
    text = f"<|tool_call>call:get_time{{a:{inner}"
    _, _, [(name, arguments, whole)], _ = read(text, "gemma4")
    assert name == "get_time"
    assert not whole
    assert len(arguments) < 40


@pytest.mark.parametrize("body", ['{"i": 1}', '"{\\"i\\": 1}"', '```json\n{"i": 1}\n```', '\n{"i": 1}\n'])
def test_harmony_takes_arguments_however_they_are_wrapped(body: str) -> None:
    """As JSON, in a string, in a fence."""
    text = f"<|channel|>commentary to=functions.get_time<|message|>{body}<|call|>"
    assert read(text, "harmony") == (None, None, [("get_time", '{"i": 1}', True)], "tool_calls")


def test_markers_in_reasoning_of_harmony_are_text() -> None:
    """A header is a few words and then a message; an end is followed by a header or nothing."""
    thought = "I must not write <|call|> or <|channel|>final myself; the call does it."
    text = f"<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant"
    text += " to=functions.get_time<|channel|>commentary <|constrain|>json<|message|>{}"
    assert read(text, "harmony") == (None, thought, [("get_time", "{}", True)], "tool_calls")


def test_messages_to_the_models_own_tools_are_no_content() -> None:
    """Nobody offered `python`; what is said to it belongs to the reasoning."""
    text = "<|channel|>commentary to=python <|constrain|>code<|message|>print(1)"
    assert read(text, "harmony") == (None, "print(1)", [], "stop")
    offered = [{"type": "function", "function": {"name": "python"}}]
    call = text.replace("print(1)", '{"code": "print(1)"}')
    assert read(call, "harmony", tools=offered)[2] == [("python", '{"code": "print(1)"}', True)]


def test_an_empty_section_of_special_tokens_goes() -> None:
    """No prose contains them; `<tool_call></tool_call>` may be prose."""
    section = "<|tool_calls_section_begin|><|tool_calls_section_end|>"
    assert read("Ok. " + section, "kimi_k2") == ("Ok. ", None, [], "stop")
    assert read("<tool_call></tool_call>", "hermes") == ("<tool_call></tool_call>", None, [], "stop")


def test_an_answer_that_skips_its_reasoning() -> None:
    """The prompt opened it, the model goes straight to its response channel, or to its tools."""
    text = "<|open|>response<|sep|>Hi<|close|>response<|sep|>"
    assert read(text, "kimi_k3", starts_in_reasoning=True) == ("Hi", None, [], "stop")
    call = '<|open|>tools<|sep|><|open|>call tool="get_time" index="1"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>'
    assert read("hm" + call, "kimi_k3", starts_in_reasoning=True)[1:3] == ("hm", [("get_time", "{}", True)])


def test_ids_follow_from_the_seed() -> None:
    """The same answer gives the same ids however it is cut; another seed gives others."""
    text = HERMES + HERMES
    ids = [[call.id for call in parse(t, format="hermes", id_seed="a").calls] for t in (text, list(text))]
    assert ids[0] == ids[1]
    other = [call.id for call in parse(text, format="hermes", id_seed="b").calls]
    assert len({*ids[0], *other}) == 4
