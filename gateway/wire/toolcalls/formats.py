# ruff: noqa: RUF001 - the markers of some formats hold full-width bars
"""The wire formats, as data (tool-calls.md section 1.1). A format is added here and nowhere else."""

from typing import Final

from gateway.wire.toolcalls.spec import Format, Grammar, Head, IdStyle, Implicit, Kernel, Reasoning, Trim

_BARE_OBJECT: Final = Grammar(Kernel.JSON, at_start=True, only_offered=True)
"""A call object without any markup: Llama's habit, and what is left of others when special tokens were removed."""
_BARE_LIST: Final = Grammar(Kernel.JSON, at_start=True, only_offered=True)
_HERMES: Final = (Grammar(Kernel.JSON, opens=("<tool_call>",), closes=("</tool_call>",)), _BARE_OBJECT)
_LONGCAT: Final = Grammar(Kernel.JSON, opens=("<longcat_tool_call>",), closes=("</longcat_tool_call>",))


def _qwen_xml(opener: str, closer: str) -> Grammar:
    return Grammar(
        Kernel.XML,
        opens=(opener,),
        closes=(closer,),
        item_opens=("<function=",),
        item_closes=("</function>",),
        head=Head(ends=(">",)),
        param=Head(opens=("<parameter=",), ends=(">",)),
        param_closes=("</parameter>",),
        trim=Trim.ONE,
    )


def _invoke(section: tuple[str, ...], prefix: str = "", param: str = "parameter", item: str = "invoke") -> Grammar:
    return Grammar(
        Kernel.XML,
        opens=tuple(f"<{name}>" for name in section),
        closes=tuple(f"</{name}>" for name in section),
        item_opens=(f"<{prefix}{item} ",),
        item_closes=(f"</{prefix}{item}>",),
        head=Head(ends=(">",), attribute="name"),
        param=Head(opens=(f"<{prefix}{param} ",), ends=(">",), attribute="name"),
        param_closes=(f"</{prefix}{param}>",),
    )


def _pairs(opener: str, closer: str, section: tuple[str, str] | None = None, stop: str = "\n") -> Grammar:
    """GLM's `<arg_key>k</arg_key><arg_value>v</arg_value>` after a bare name."""
    return Grammar(
        Kernel.XML,
        opens=(section[0],) if section else (),
        closes=(section[1],) if section else (),
        item_opens=(opener,),
        item_closes=(closer,),
        head=Head(ends=(stop,), stops=("<arg_key>", closer)),
        param=Head(opens=("<arg_key>",), ends=("</arg_key>",)),
        param_closes=("</arg_value>",),
        value_opens=("<arg_value>",),
    )


def _dsml(space: str, *names: str) -> Grammar:
    bar = f"｜DSML｜{space}"
    return Grammar(
        Kernel.XML,
        opens=tuple(f"<{bar}{name}>" for name in names),
        closes=tuple(f"</{bar}{name}>" for name in names),
        item_opens=(f"<{bar}invoke ",),
        item_closes=(f"</{bar}invoke>",),
        head=Head(ends=(">",), attribute="name"),
        param=Head(opens=(f"<{bar}parameter ",), ends=(">",), attribute="name"),
        param_closes=(f"</{bar}parameter>",),
        type_attribute="string",
        typed_as_string="true",
        trim=Trim.NONE,
    )


def _dsml_stripped() -> Grammar:
    """DSML after its special token was removed."""
    return Grammar(
        Kernel.XML,
        opens=("<function_calls>", "<tool_calls>", "< calls>"),
        closes=("</function_calls>", "</tool_calls>", "</ calls>"),
        item_opens=("<invoke ", "< invoke "),
        item_closes=("</invoke>", "</ invoke>"),
        head=Head(ends=(">",), attribute="name"),
        param=Head(opens=("<parameter ", "< parameter "), ends=(">",), attribute="name"),
        param_closes=("</parameter>", "</ parameter>"),
        type_attribute="string",
        typed_as_string="true",
        trim=Trim.NONE,
        only_offered=True,
    )


_XML: Final = _qwen_xml("<tool_call>", "</tool_call>")
_PAIRS: Final = _pairs("<tool_call>", "</tool_call>")


def _list(opens: tuple[str, ...], closes: tuple[str, ...]) -> Grammar:
    return Grammar(Kernel.JSON, opens=opens, closes=closes)


_DEEPSEEK: Final = Grammar(
    Kernel.NAME_JSON,
    opens=("<｜tool▁calls▁begin｜>",),
    closes=("<｜tool▁calls▁end｜>",),
    item_opens=("<｜tool▁call▁begin｜>",),
    item_closes=("<｜tool▁call▁end｜>",),
    head=Head(ends=("<｜tool▁sep｜>", "\n"), stops=("```", "{", "<｜tool▁call▁end｜>")),
    prefixes=("function<｜tool▁sep｜>",),
)
_V32: Final = _dsml("", "function_calls")
_V4: Final = _dsml("", "tool_calls")
_V41: Final = _dsml(" ", "calls")
_STRIPPED: Final = _dsml_stripped()
_KIMI: Final = Grammar(
    Kernel.NAME_JSON,
    opens=("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"),
    closes=("<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
    item_opens=("<|tool_call_begin|>",),
    item_closes=("<|tool_call_end|>",),
    head=Head(ends=("<|tool_call_argument_begin|>",), stops=("{", "<|tool_call_end|>")),
    prefixes=("functions.",),
    indexed=True,
)
_KIMI_BARE: Final = Grammar(
    Kernel.NAME_JSON,
    head=Head(stops=("{",)),
    prefixes=("functions.",),
    indexed=True,
    at_start=True,
    only_offered=True,
)
_MISTRAL: Final = Grammar(
    Kernel.NAME_JSON,
    item_opens=("[TOOL_CALLS]",),
    head=Head(ends=("[ARGS]",), stops=("[CALL_ID]", "{")),
    list_of=True,
)
_MISTRAL_BARE: Final = Grammar(
    Kernel.NAME_JSON,
    head=Head(ends=("[ARGS]",), stops=("[CALL_ID]", "{")),
    list_of=True,
    at_start=True,
    only_offered=True,
)
_MISTRALS: Final = (_MISTRAL, _MISTRAL_BARE)
_M3: Final = "]<]minimax[>["


def _gemma(opener: str, closer: str, quote: str, *, coerces: bool) -> tuple[Grammar, ...]:
    marked = Grammar(
        Kernel.OBJECT,
        item_opens=(opener,),
        item_closes=(closer,),
        quotes=(quote,),
        coerces=coerces,
    )
    return marked, Grammar(Kernel.OBJECT, at_start=True, only_offered=True)


_PYTHONIC_BARE: Final = Grammar(Kernel.PYTHONIC, at_start=True, only_offered=True)


def _pythonic(opener: str, closer: str) -> tuple[Grammar, ...]:
    return Grammar(Kernel.PYTHONIC, opens=(opener,), closes=(closer,)), _PYTHONIC_BARE


_S: Final = ("</s>",)

FORMATS: Final[tuple[Format, ...]] = (
    Format(
        "hermes",
        "Qwen2.5, Qwen3 (not Coder), QwQ, Hermes 2 and 3, LongCat",
        (*_HERMES, _LONGCAT),
        foreign=(_XML, _PAIRS),
    ),
    Format(
        "qwen3_xml",
        "Qwen3-Coder, Qwen3.5 and later, Nemotron 3, Step-3.5, MiMo",
        (_XML,),
        implicit=Implicit.AT_END,
        foreign=(_PAIRS,),
    ),
    Format("seed_oss", "Seed-OSS", (_qwen_xml("<seed:tool_call>", "</seed:tool_call>"),), reasoning="seed"),
    Format(
        "llama3_json",
        "Llama 3.1, 3.2, 3.3; Llama 4 with JSON templates",
        (
            Grammar(Kernel.JSON, opens=("<|python_tag|>",), skips=("<|python_tag|>",)),
            Grammar(Kernel.JSON, skips=("<|python_tag|>",), at_start=True, only_offered=True),
            Grammar(
                Kernel.XML,
                item_opens=("<function=",),
                item_closes=("</function>",),
                head=Head(ends=(">",)),
                only_offered=True,
            ),
        ),
        special=True,
        foreign=(Grammar(Kernel.PYTHONIC, opens=("<|python_tag|>",), suffix=".call"),),
    ),
    Format("pythonic", "Llama 3.2 1B and 3B, ToolACE", _pythonic("<|python_start|>", "<|python_end|>")),
    Format("llama4_pythonic", "Llama 4", _pythonic("<|python_start|>", "<|python_end|>"), special=True),
    Format("olmo3", "OLMo 3", _pythonic("<function_calls>", "</function_calls>")),
    Format("lfm2", "LFM2", _pythonic("<|tool_call_start|>", "<|tool_call_end|>"), special=True),
    Format(
        "mistral_v3",
        "Mistral 7B v0.3, Nemo, Mixtral 8x22B, Large 2407",
        _MISTRALS,
        "mistral",
        turn_ends=_S,
        id_style=IdStyle.MISTRAL,
        special=True,
    ),
    Format(
        "mistral_v11",
        "Mistral Small 3.2 and 4, Medium 3, Magistral, Devstral, Ministral 3",
        _MISTRALS,
        "mistral",
        turn_ends=_S,
        id_style=IdStyle.MISTRAL,
        special=True,
    ),
    Format("harmony", "gpt-oss", (), "harmony", special=True),
    Format("deepseek_v3", "DeepSeek V3-0324, R1", (_DEEPSEEK,)),
    Format("deepseek_v31", "DeepSeek V3.1, V3.2-Exp", (_DEEPSEEK,)),
    Format("deepseek_v32", "DeepSeek V3.2", (_V32, _V4, _V41, _STRIPPED), special=True),
    Format("deepseek_v4", "DeepSeek V4", (_V4, _V32, _V41, _STRIPPED), special=True),
    Format("deepseek_v41", "DeepSeek V4.1", (_V41, _V4, _V32, _STRIPPED), special=True),
    Format(
        "kimi_k2",
        "Kimi K2, K2-Thinking, K2.5 to K2.7",
        (_KIMI, _KIMI_BARE),
        implicit=Implicit.AT_ONCE,
        id_style=IdStyle.KIMI,
        special=True,
    ),
    Format(
        "kimi_k3",
        "Kimi K3",
        (
            Grammar(
                Kernel.XML,
                opens=("<|open|>tools<|sep|>",),
                closes=("<|close|>tools<|sep|>",),
                item_opens=("<|open|>call ",),
                item_closes=("<|close|>call<|sep|>",),
                head=Head(ends=("<|sep|>",), attribute="tool"),
                param=Head(opens=("<|open|>argument ",), ends=("<|sep|>",), attribute="key"),
                param_closes=("<|close|>argument<|sep|>",),
                json_opens=("<|open|>json",),
                json_closes=("<|close|>json<|sep|>",),
                type_attribute="type",
                typed_as_string="string",
                trim=Trim.NONE,
            ),
        ),
        "kimi_k3",
        implicit=Implicit.AT_ONCE,
        transparent=("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"),
        special=True,
    ),
    Format("glm45", "GLM-4.5, 4.6", (_PAIRS,), foreign=(_XML,)),
    Format("glm47", "GLM-4.7, 5; Ling 3, Poolside", (_PAIRS,), foreign=(_XML,)),
    Format(
        "hy_v3",
        "Hunyuan 3 and 4",
        (_pairs("<tool_call>", "</tool_call>", ("<tool_calls>", "</tool_calls>"), "<tool_sep>"),),
    ),
    Format(
        "k2_horizon",
        "K2 Horizon",
        (
            Grammar(
                Kernel.XML,
                opens=("<ifm|tool_calls>",),
                closes=("</ifm|tool_calls>",),
                item_opens=("<ifm|tool_call>",),
                item_closes=("</ifm|tool_call>",),
                head=Head(ends=("\n",), stops=("<ifm|arg_key>", "</ifm|tool_call>")),
                param=Head(opens=("<ifm|arg_key>",), ends=("</ifm|arg_key>",)),
                param_closes=("</ifm|arg_value>",),
                value_opens=("<ifm|arg_value>",),
                type_element=Head(opens=("<ifm|arg_type>",), ends=("</ifm|arg_type>",)),
                typed_as_string="string",
            ),
        ),
        "ifm",
        implicit=Implicit.AT_ONCE,
        turn_ends=("<|ifm|im_end|>", "<|ifm|end_of_text|>"),
    ),
    Format(
        "minimax_m2",
        "MiniMax M2, M2.1, M2.5, M2.7; dots",
        (_invoke(("minimax:tool_call", "dots_function_call")),),
        turn_ends=("[e~[",),
    ),
    Format(
        "minimax_m3",
        "MiniMax M3",
        (
            Grammar(
                Kernel.NESTED_XML,
                opens=(f"{_M3}<tool_call>",),
                closes=(f"{_M3}</tool_call>",),
                item_opens=(f"{_M3}<invoke ",),
                item_closes=(f"{_M3}</invoke>",),
                head=Head(ends=(">",), attribute="name"),
                param=Head(opens=(f"{_M3}<",)),
            ),
        ),
        "minimax_m3",
        turn_ends=("[e~[",),
    ),
    Format(
        "gemma4",
        "Gemma 4",
        _gemma("<|tool_call>", "<tool_call|>", '<|"|>', coerces=False),
        "gemma",
        special=True,
    ),
    Format(
        "functiongemma",
        "FunctionGemma 270M",
        _gemma("<start_function_call>", "<end_function_call>", "<escape>", coerces=True),
        turn_ends=("<start_function_response>",),
        special=True,
    ),
    Format(
        "granite",
        "Granite 3, Granite 20B",
        (
            _list(("<|tool_call|>", "<tool_call>", "<function_call>"), ("</tool_call>", "<|/tool_call|>")),
            _BARE_LIST,
        ),
        special=True,
    ),
    Format("granite4", "Granite 4", _HERMES, foreign=(_XML, _PAIRS)),
    Format(
        "ernie45",
        "ERNIE 4.5",
        _HERMES,
        turn_ends=_S,
        transparent=("<response>", "</response>"),
    ),
    Format("jamba", "Jamba", (_list(("<tool_calls>",), ("</tool_calls>",)), _BARE_LIST), turn_ends=_S),
    Format(
        "hunyuan",
        "Hunyuan A13B",
        (_list(("<tool_calls>",), ("</tool_calls>",)), _BARE_LIST),
        transparent=("<answer>", "</answer>"),
    ),
    Format(
        "nemotron",
        "Nemotron Nano v2, Super",
        (_list(("<TOOLCALL>",), ("</TOOLCALL>",)), _BARE_LIST),
        turn_ends=(*_S, "<SPECIAL_12>"),
    ),
    Format("phi4_mini", "Phi-4-mini", (_list(("functools", "<|tool_call|>"), ("<|/tool_call|>",)), _BARE_LIST)),
    Format(
        "xlam",
        "xLAM",
        (
            _list(("<tool_call>", "[TOOL_CALLS]"), ("</tool_call>",)),
            Grammar(Kernel.JSON, at_start=True, only_offered=True, fenced=True),
        ),
        turn_ends=_S,
        restarts=("</think>",),
    ),
    Format(
        "cohere",
        "Command R, R+, A",
        (
            _list(("<|START_ACTION|>",), ("<|END_ACTION|>",)),
            Grammar(Kernel.JSON, opens=("Action:",), only_offered=True),
            _BARE_LIST,
        ),
        "cohere",
        transparent=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"),
        special=True,
    ),
    Format(
        "internlm",
        "InternLM 2 and 2.5, Intern-S1",
        (
            _list(
                ("<|action_start|><|plugin|>", "<|action_start|> <|plugin|>", "<|action_start|>\n<|plugin|>"),
                ("<|action_end|>",),
            ),
            _BARE_OBJECT,
        ),
        turn_ends=_S,
        special=True,
    ),
    Format(
        "step3",
        "Step-3",
        (
            Grammar(
                Kernel.XML,
                opens=("<｜tool_calls_begin｜>",),
                closes=("<｜tool_calls_end｜>",),
                item_opens=("<steptml:invoke ", "function<steptml:invoke "),
                item_closes=("</steptml:invoke>",),
                skips=("<｜tool_call_begin｜>", "<｜tool_call_end｜>", "<｜tool_sep｜>", "function<｜tool_sep｜>"),
                head=Head(ends=(">",), attribute="name"),
                param=Head(opens=("<steptml:parameter ",), ends=(">",), attribute="name"),
                param_closes=("</steptml:parameter>",),
            ),
        ),
        turn_ends=_S,
        special=True,
    ),
    Format(
        "apertus",
        "Apertus",
        (Grammar(Kernel.KEYED, opens=("<|tools_prefix|>",), closes=("<|tools_suffix|>",)),),
        "apertus",
        special=True,
    ),
    Format("gigachat3", "GigaChat 3", (_list(("<|function_call|>",), ()), _BARE_OBJECT), turn_ends=_S, special=True),
    Format("minicpm5", "MiniCPM 5", (_invoke((), param="param", item="function"),)),
    Format(
        "inkling",
        "Inkling",
        (_list(("<|content_invoke_tool_json|>",), ("<|end_message|>",)), _BARE_OBJECT),
        turn_ends=("<|end_message|>",),
        special=True,
    ),
    Format("muse", "MuseGlimmer", (_invoke(("atem:function_calls",), "atem:"),)),
    Format(
        "plamo3",
        "PLaMo 3",
        (
            Grammar(
                Kernel.NAME_JSON,
                opens=("<|plamo:begin_tool_requests:plamo|>",),
                closes=("<|plamo:end_tool_requests:plamo|>",),
                item_opens=("<|plamo:begin_tool_request:plamo|>",),
                item_closes=("<|plamo:end_tool_request:plamo|>",),
                skips=("<|plamo:begin_tool_arguments:plamo|>", "<|plamo:end_tool_arguments:plamo|>"),
                head=Head(ends=("<|plamo:end_tool_name:plamo|>",), stops=("{",)),
                prefixes=("<|plamo:begin_tool_name:plamo|>",),
            ),
        ),
    ),
    Format("guided", "any model under `required` or a named tool", _HERMES, turn_ends=_S),
)

_THINK: Final = ("<think>", "</think>")
_LEADS: Final = (_THINK,)
REASONINGS: Final[tuple[Reasoning, ...]] = (
    Reasoning("think", (_THINK,)),
    Reasoning("seed", (("<seed:think>", "</seed:think>"), _THINK)),
    Reasoning("mistral", (("[THINK]", "[/THINK]"), _THINK)),
    Reasoning(
        "gemma",
        (("<|channel>thought\n", "<channel|>"), ("<|channel>thought", "<channel|>")),
        leads=_LEADS,
        anywhere=True,
    ),
    Reasoning("cohere", (("<|START_THINKING|>", "<|END_THINKING|>"),), leads=_LEADS, anywhere=True),
    Reasoning("kimi_k3", (("<|open|>think<|sep|>", "<|close|>think<|sep|>"),), leads=_LEADS, anywhere=True),
    Reasoning(
        "ifm",
        (
            ("<ifm|think>", "</ifm|think>"),
            ("<ifm|think_fast>", "</ifm|think_fast>"),
            ("<ifm|think_faster>", "</ifm|think_faster>"),
        ),
    ),
    Reasoning("minimax_m3", (("<mm:think>", "</mm:think>"), _THINK)),
    Reasoning("apertus", (("<|inner_prefix|>", "<|inner_suffix|>"),), leads=_LEADS, anywhere=True),
    Reasoning(
        "granite",
        (
            ("Here is my thought process:", "Here is my response:"),
            ("Here's my thought process:", "Here's my response:"),
        ),
    ),
    Reasoning("hunyuan", (_THINK,), transparent=("<answer>", "</answer>")),
    Reasoning("harmony", (("<|channel|>analysis<|message|>", "<|end|>"),)),
)
