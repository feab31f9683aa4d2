"""What each engine gets for what a client sends, and what is refused: one case per difference that users meet."""

import msgspec
import pytest

from engines.profile import EngineKind, Operation, ParameterRefused
from engines.registry import profile
from engines.triton import UNTIL_THE_END

from .support import members, raw_members, sent

VLLM, TRTLLM, TRITON = EngineKind.VLLM, EngineKind.TRTLLM, EngineKind.TRITON
CHAT, COMPLETIONS, EMBEDDINGS = Operation.CHAT, Operation.COMPLETIONS, Operation.EMBEDDINGS
HELLO: dict[str, object] = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
PROMPT: dict[str, object] = {"model": "m", "prompt": "Hello"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
LIMIT = int(UNTIL_THE_END)


def chat_on(kind: EngineKind, **more: object) -> dict[str, object]:
    """Give what the engine gets beyond model, messages and the defaults that Triton needs."""
    request = members(HELLO | more)
    result = sent(request, profile(kind).prepare(CHAT, request))
    if kind is TRITON and more.keys().isdisjoint({"max_tokens", "max_completion_tokens"}):
        assert result.pop("max_tokens") == LIMIT
    if kind is TRITON and "temperature" not in more:
        assert result.pop("temperature") == 1
    assert {name: result.pop(name) for name in HELLO} == HELLO
    return result


def refusal(kind: EngineKind, operation: Operation, **body: object) -> ParameterRefused:
    """Give the refusal of a request."""
    base = HELLO if operation is CHAT else PROMPT if operation is COMPLETIONS else {"model": "m"}
    with pytest.raises(ParameterRefused) as caught:
        profile(kind).prepare(operation, members(base | body))
    assert caught.value.param in caught.value.message or caught.value.code != "unsupported_parameter"
    return caught.value


PASSED_ALONE = object()


@pytest.mark.parametrize(
    ("kind", "name", "value", "expected"),
    [
        # labels: dropped where unknown fields are refused, untouched on vLLM, which ignores them
        *((kind, name, value, {}) for kind in (TRTLLM, TRITON) for name, value in [
            ("store", True), ("metadata", {"a": "b"}), ("service_tier", "flex"), ("prompt_cache_key", "k"),
            ("prompt_cache_retention", "24h"), ("safety_identifier", "s"), ("verbosity", "low"),
            ("prediction", {"type": "content", "content": "x"}),
        ]),
        (VLLM, "store", True, PASSED_ALONE),
        (VLLM, "metadata", {"a": "b"}, PASSED_ALONE),
        # values that mean what happens anyway
        *((kind, "parallel_tool_calls", True, {}) for kind in (TRTLLM, TRITON)),
        *((kind, "parallel_tool_calls", False, {}) for kind in (TRTLLM, TRITON)),
        (VLLM, "parallel_tool_calls", False, PASSED_ALONE),
        *((kind, "tool_choice", "auto", {}) for kind in EngineKind),
        *((kind, "tool_choice", "none", {}) for kind in EngineKind),
        *((kind, "tools", [], {}) for kind in EngineKind),
        *((kind, "functions", [], {}) for kind in EngineKind),
        *((kind, "function_call", "none", {}) for kind in EngineKind),
        (VLLM, "modalities", ["text"], PASSED_ALONE),
        (TRTLLM, "modalities", ["text"], {}),
        (TRITON, "modalities", ["text"], {}),
        (TRITON, "n", 1, PASSED_ALONE),
        (TRITON, "logit_bias", {}, {}),
        (TRITON, "top_k", -1, {}),
        (TRITON, "repetition_penalty", 1.0, {}),
        (TRITON, "chat_template_kwargs", {}, {}),
        (TRITON, "response_format", {"type": "text"}, {}),
        (TRTLLM, "top_k", -1, {}),
        (TRTLLM, "top_k", 5, PASSED_ALONE),
        # null is absent for OpenAI
        *((kind, name, None, {}) for kind in (TRTLLM, TRITON) for name in (
            "seed", "n", "stop", "tools", "tool_choice", "response_format", "logit_bias", "functions",
            "reasoning_effort", "store", "top_k", "stream_options",
        )),
        (VLLM, "seed", None, PASSED_ALONE),
        # sampling the engine has
        *((VLLM, name, value, PASSED_ALONE) for name, value in [
            ("top_k", 5), ("min_p", 0.1), ("repetition_penalty", 1.1),
            ("chat_template_kwargs", {"enable_thinking": False}), ("structured_outputs", {"choice": ["a"]}),
            ("logit_bias", {"1": 5}), ("n", 2), ("reasoning_effort", "none"),
        ]),
        *((TRTLLM, name, value, PASSED_ALONE) for name, value in [
            ("min_p", 0.1), ("repetition_penalty", 1.1), ("chat_template_kwargs", {"enable_thinking": False}), ("n", 2),
            ("logit_bias", {"1": 5}), ("response_format", {"type": "json_object"}), ("reasoning_effort", "low"),
            ("user", "u"), ("cache_salt", "s"),
        ]),
        (TRITON, "min_tokens", 3, PASSED_ALONE),
        (TRITON, "user", "u", PASSED_ALONE),
        (TRITON, "temperature", 0, PASSED_ALONE),
        (TRITON, "max_tokens", 7, PASSED_ALONE),
        (TRITON, "max_completion_tokens", 7, PASSED_ALONE),
        # hints and nearest values
        (TRITON, "reasoning_effort", "low", {}),
        (TRTLLM, "reasoning_effort", "minimal", {"reasoning_effort": "low"}),
        (TRTLLM, "reasoning_effort", "xhigh", {"reasoning_effort": "high"}),
        (TRTLLM, "max_completion_tokens", 5, {"max_tokens": 5}),
        (VLLM, "max_completion_tokens", 5, PASSED_ALONE),
        *((VLLM, name, None, {}) for name in ("tool_choice", "parallel_tool_calls")),
        # vLLM's words for structured output, as trtllm-serve says them
        *((TRTLLM, name, value, {"response_format": expected}) for name, value, expected in [
            ("guided_json", {"type": "object"}, {"type": "json", "schema": {"type": "object"}}),
            ("guided_json", '{"type": "object"}', {"type": "json", "schema": {"type": "object"}}),
            ("guided_regex", "a+", {"type": "regex", "regex": "a+"}),
            ("guided_choice", ["a.b", "c"], {"type": "regex", "regex": r"(a\.b|c)"}),
            ("guided_grammar", "root ::= 'a'", {"type": "ebnf", "ebnf": "root ::= 'a'"}),
            ("structured_outputs", {"regex": "a+", "json": None}, {"type": "regex", "regex": "a+"}),
            ("structured_outputs", {"json_object": True}, {"type": "json_object"}),
        ]),
        (TRTLLM, "structured_outputs", {}, {}),
        # vLLM's older words for structured output
        (VLLM, "guided_choice", ["a", "b"], {"structured_outputs": {"choice": ["a", "b"]}}),
        (VLLM, "guided_json", {"type": "object"}, {"structured_outputs": {"json": {"type": "object"}}}),
        (VLLM, "guided_decoding_backend", "xgrammar", {}),
        (VLLM, "guided_regex", None, {}),
    ],
)  # fmt: skip
def test_chat_member(kind: EngineKind, name: str, value: object, expected: object) -> None:
    """One member sent on its own reaches the engine as it is, as something else, or not at all."""
    assert chat_on(kind, **{name: value}) == ({name: value} if expected is PASSED_ALONE else expected)


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        *((kind, name, value) for kind in EngineKind for name, value in [
            ("functions", [{"name": "f"}]), ("function_call", {"name": "f"}), ("modalities", ["text", "audio"]),
            ("audio", {"voice": "x", "format": "wav"}), ("web_search_options", {}), ("moderation", {"model": "m"}),
        ]),
        *((TRITON, name, value) for name, value in [
            ("logit_bias", {"1": 5}), ("top_k", 5), ("min_p", 0.1), ("repetition_penalty", 1.1),
            ("response_format", {"type": "json_object"}),
            ("response_format", {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}),
            ("response_format", "json"), ("response_format", []),
            ("guided_json", {}), ("structured_outputs", {"choice": ["a"]}), ("stop_token_ids", [1]),
            ("chat_template_kwargs", {"enable_thinking": False}), ("cache_salt", "s"),
        ]),
        *((TRTLLM, name, value) for name, value in [
            ("structured_outputs", {"structural_tag": "x"}), ("guided_choice", []), ("guided_grammar", 5),
            ("structured_outputs", {"json": {}, "regex": "a"}), ("structured_outputs", "a"),
            ("guided_json", "no object"), ("guided_whitespace_pattern", " "), ("reasoning_effort", "none"),
            ("bad_words", ["x"]), ("return_token_ids", True),
        ]),
        (VLLM, "top_p_min", 0.5),
    ],
)  # fmt: skip
def test_what_an_engine_cannot_give_is_refused(kind: EngineKind, name: str, value: object) -> None:
    """A member that promises something is never dropped or ignored without a word: 400, naming it."""
    refused = refusal(kind, CHAT, **{name: value})
    assert refused.message.endswith(".")
    assert (refused.param, refused.code) == (name, "unsupported_parameter")


def test_drops_are_told_unless_nothing_was_asked_for() -> None:
    """The header names what was dropped; values that are the default need no word."""
    request = members(HELLO | {"store": True, "parallel_tool_calls": True, "service_tier": "auto", "seed": None})
    prepared = profile(TRITON).prepare(CHAT, request)
    assert set(prepared.dropped) == {"store", "parallel_tool_calls"}
    assert prepared.translated == ()


@pytest.mark.parametrize("kind", [TRTLLM, TRITON])
def test_one_call_at_most_cannot_be_promised_with_tools(kind: EngineKind) -> None:
    """`parallel_tool_calls: false` beside tools is refused where the engine does not know it."""
    assert refusal(kind, CHAT, tools=[TOOL], parallel_tool_calls=False).param == "parallel_tool_calls"
    assert "parallel_tool_calls" not in chat_on(kind, tools=[TOOL], parallel_tool_calls=True)


@pytest.mark.parametrize("kind", EngineKind)
def test_a_choice_of_tools_needs_tools(kind: EngineKind) -> None:
    """`required` and a named tool without tools are the client's mistake; with tools any choice goes on."""
    assert refusal(kind, CHAT, tool_choice="required").code == "invalid_value"
    assert (
        refusal(kind, CHAT, tool_choice={"type": "function", "function": {"name": "f"}}, tools=[]).param
        == "tool_choice"
    )
    assert (
        refusal(kind, CHAT, tool_choice={"type": "allowed_tools", "allowed_tools": {}}, tools=[TOOL]).param
        == "tool_choice"
    )
    assert chat_on(kind, tools=[TOOL], tool_choice="required") == {"tools": [TOOL], "tool_choice": "required"}


def test_one_limit_reaches_trtllm() -> None:
    """Both limits together are 400 there (`chat_max_both`): max_completion_tokens wins, and the other is told."""
    request = members(HELLO | {"max_tokens": 9, "max_completion_tokens": 5})
    prepared = profile(TRTLLM).prepare(CHAT, request)
    assert sent(request, prepared) == HELLO | {"max_tokens": 5}
    assert (prepared.dropped, prepared.translated) == (("max_tokens",), ("max_completion_tokens",))


def test_a_null_limit_does_not_win() -> None:
    """`max_completion_tokens: null` says nothing."""
    assert chat_on(TRTLLM, max_tokens=9, max_completion_tokens=None) == {"max_tokens": 9}
    assert chat_on(TRITON, max_tokens=9, max_completion_tokens=None) == {"max_tokens": 9}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"include_usage": False}),
        ({"include_usage": True}, {"include_usage": True}),
        ({"include_usage": False, "include_obfuscation": False}, {"include_usage": False}),
        (
            {"include_usage": None, "continuous_usage_stats": True},
            {"include_usage": False, "continuous_usage_stats": True},
        ),
    ],
)
def test_usage_comes_only_when_asked_for(options: dict[str, object], expected: dict[str, object]) -> None:
    """trtllm-serve turns usage on once stream_options is there (`chat_stream_options_empty`)."""
    assert chat_on(TRTLLM, stream=True, stream_options=options)["stream_options"] == expected


def test_completions_stop_after_sixteen_tokens_as_openai_does() -> None:
    """Each engine stops there when the client is silent: two are told to, vLLM does so by itself."""
    for kind, expected in (
        (VLLM, PROMPT),
        (TRTLLM, PROMPT | {"max_tokens": 16}),
        (TRITON, PROMPT | {"max_tokens": 16}),
    ):
        request = members(PROMPT)
        assert sent(request, profile(kind).prepare(COMPLETIONS, request)) == expected
    request = members(PROMPT | {"max_completion_tokens": 3})
    for kind in EngineKind:
        assert sent(request, profile(kind).prepare(COMPLETIONS, request)) == PROMPT | {"max_tokens": 3}


def test_triton_takes_one_prompt() -> None:
    """A list of one text is taken apart (`completions_prompt_list`), token ids are refused."""
    request = members({"model": "m", "prompt": ["Hello"], "max_tokens": 1})
    assert sent(request, profile(TRITON).prepare(COMPLETIONS, request))["prompt"] == "Hello"
    for prompt in ([1, 2], [[1, 2]], ["a", [1]], []):
        assert refusal(TRITON, COMPLETIONS, prompt=prompt).param == "prompt"


def test_triton_refuses_what_breaks_completions() -> None:
    """Echo in a stream cuts the connection there; several results and infilling do not exist."""
    assert refusal(TRITON, COMPLETIONS, echo=True, stream=True).param == "echo"
    request = members(PROMPT | {"echo": True, "stream": False, "max_tokens": 1})
    assert profile(TRITON).prepare(COMPLETIONS, request).members is None
    assert refusal(TRITON, COMPLETIONS, best_of=2).param == "best_of"
    assert refusal(TRITON, COMPLETIONS, suffix="x").param == "suffix"


def test_triton_embeds_one_input() -> None:
    """A list of one is taken apart (422 otherwise: `embeddings_list_of_one_string`)."""
    one = profile(TRITON)
    for given, expected in ((["a"], "a"), ("a", "a"), ([1, 2], [1, 2]), ([[1, 2]], [1, 2]), ([], [])):
        request = members({"model": "m", "input": given})
        assert sent(request, one.prepare(EMBEDDINGS, request))["input"] == expected


@pytest.mark.parametrize("kind", [VLLM, TRITON])
def test_vectors_come_as_json(kind: EngineKind) -> None:
    """vLLM's `bytes` and `bytes_only` are no answer that an OpenAI client could read; the rest goes on untouched."""
    for value in ("bytes", "bytes_only"):
        assert refusal(kind, EMBEDDINGS, input="a", encoding_format=value).param == "encoding_format"
    for value in ("float", "base64"):
        request = members({"model": "m", "input": "a", "encoding_format": value})
        assert profile(kind).prepare(EMBEDDINGS, request).members is None
    assert profile(kind).prepare(EMBEDDINGS, members({"model": "m", "input": "a"})).members is None


@pytest.mark.parametrize("kind", EngineKind)
def test_allowed_tools_become_the_only_tools(kind: EngineKind) -> None:
    """No engine has that choice (`tool_choice_allowed_tools`); leaving the other tools out says the same."""
    other = {"type": "function", "function": {"name": "g", "parameters": {"type": "object"}}}
    allowed = [{"type": "function", "function": {"name": "g"}}]
    for mode in ("auto", "required"):
        choice = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": allowed}}
        request = members(HELLO | {"tools": [TOOL, other], "tool_choice": choice})
        prepared = profile(kind).prepare(CHAT, request)
        result = sent(request, prepared)
        assert (result["tools"], result["tool_choice"]) == ([other], mode)
        assert set(prepared.translated) == {"tools", "tool_choice"}
    all_of_them = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": allowed}}
    assert chat_on(kind, tools=[other], tool_choice=all_of_them) == {"tools": [other], "tool_choice": "auto"}


def test_triton_cannot_require_one_of_several_tools() -> None:
    """It forces the first, whatever the model would choose (`tools_llama3_required`)."""
    other = {"type": "function", "function": {"name": "g", "parameters": {"type": "object"}}}
    assert refusal(TRITON, CHAT, tools=[TOOL, other], tool_choice="required").param == "tool_choice"
    only_g = {"mode": "required", "tools": [{"type": "function", "function": {"name": "g"}}]}
    choice = {"type": "allowed_tools", "allowed_tools": only_g}
    assert chat_on(TRITON, tools=[TOOL, other], tool_choice=choice)["tools"] == [other]


def test_triton_functions_get_a_schema() -> None:
    """A function without parameters takes none (500 otherwise: `tools_no_parameters_named`)."""
    bare = {"type": "function", "function": {"name": "g", "description": "d", "parameters": None}}
    tools = chat_on(TRITON, tools=[TOOL, bare])["tools"]
    assert tools == [
        TOOL,
        {
            "type": "function",
            "function": {"name": "g", "description": "d", "parameters": {"type": "object", "properties": {}}},
        },
    ]


def test_old_and_new_structured_output_do_not_mix() -> None:
    """Which of them should hold is not for us to say."""
    assert refusal(VLLM, CHAT, guided_json={}, structured_outputs={"choice": ["a"]}).code == "invalid_value"
    assert chat_on(VLLM, guided_json={"a": 1}, guided_whitespace_pattern=" ") == {
        "structured_outputs": {"json": {"a": 1}, "whitespace_pattern": " "}
    }


def test_odd_shapes_are_left_to_the_engine() -> None:
    """What is no valid request in any dialect goes on, for the engine to refuse in its words."""
    for body in (
        b'{"model":"m","messages":"x","tools":"y","stream_options":5,"tool_choice":"none"}',
        b'{"model":"m","messages":[5,{"role":"developer"}],"tools":[5],"stream_options":[]}',
        b'{"model":"m","messages":[{"role":"developer","tool_calls":[{"function":"type"}]}],"tools":{}}',
    ):
        for kind in EngineKind:
            profile(kind).prepare(CHAT, raw_members(body))


def test_untouched_numbers_keep_their_digits() -> None:
    """Members nobody names keep every byte, beside others that change."""
    request = raw_members(
        b'{"model":"m","messages":[ ],"temperature": 1.00000000000000000001e0,"seed":9007199254740993, "store":true}'
    )
    prepared = profile(TRITON).prepare(CHAT, request)
    assert prepared.members is not None
    text = msgspec.json.encode(prepared.members)
    assert b"1.00000000000000000001e0" in text
    assert b"9007199254740993" in text
