# ruff: noqa: RUF001 - the markers of some formats hold full-width bars
"""Our own renderers: what a well-behaved model of each family writes for some calls."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Calls = Sequence[tuple[str, Mapping[str, Any]]]

BAR = "｜"
DSML = "｜DSML｜"
M3 = "]<]minimax[>["


def js(value: object) -> str:
    """JSON as most templates write it."""
    return json.dumps(value, ensure_ascii=False)


def text_of(value: object) -> str:
    """A value inside XML: strings raw, all else JSON."""
    return value if isinstance(value, str) else js(value)


def named(calls: Calls, key: str = "arguments", name: str = "name") -> list[dict[str, Any]]:
    return [{name: n, key: dict(a)} for n, a in calls]


def blocks(opener: str, closer: str, key: str = "arguments") -> Callable[[Calls], str]:
    return lambda calls: "\n".join(f"{opener}\n{js(one)}\n{closer}" for one in named(calls, key))


def listed(opener: str, closer: str, key: str = "arguments", name: str = "name") -> Callable[[Calls], str]:
    return lambda calls: opener + js(named(calls, key, name)) + closer


def qwen(opener: str, closer: str) -> Callable[[Calls], str]:
    def one(name: str, arguments: Mapping[str, Any]) -> str:
        params = "".join(f"<parameter={k}>\n{text_of(v)}\n</parameter>\n" for k, v in arguments.items())
        return f"{opener}\n<function={name}>\n{params}</function>\n{closer}"

    return lambda calls: "\n".join(one(*call) for call in calls)


def invoke(
    section: str, space: str = "\n", prefix: str = "", item: str = "invoke", param: str = "parameter"
) -> Callable[[Calls], str]:
    def one(name: str, arguments: Mapping[str, Any]) -> str:
        params = "".join(
            f'<{prefix}{param} name="{k}">{text_of(v)}</{prefix}{param}>{space}' for k, v in arguments.items()
        )
        return f'<{prefix}{item} name="{name}">{space}{params}</{prefix}{item}>{space}'

    def render(calls: Calls) -> str:
        inner = "".join(one(*call) for call in calls)
        return f"<{section}>{space}{inner}</{section}>" if section else inner.rstrip()

    return render


def dsml(section: str, gap: str = "") -> Callable[[Calls], str]:
    mark = DSML + gap

    def one(name: str, arguments: Mapping[str, Any]) -> str:
        params = "".join(
            f'<{mark}parameter name="{k}" string="{str(isinstance(v, str)).lower()}">{text_of(v)}</{mark}parameter>\n'
            for k, v in arguments.items()
        )
        return f'<{mark}invoke name="{name}">\n{params}</{mark}invoke>\n'

    return lambda calls: f"<{mark}{section}>\n{''.join(one(*call) for call in calls)}</{mark}{section}>"


def deepseek(calls: Calls, fenced: bool) -> str:
    def one(name: str, arguments: Mapping[str, Any]) -> str:
        inner = (
            f"function<{BAR}tool▁sep{BAR}>{name}\n```json\n{js(arguments)}\n```"
            if fenced
            else f"{name}<{BAR}tool▁sep{BAR}>{js(arguments)}"
        )
        return f"<{BAR}tool▁call▁begin{BAR}>{inner}<{BAR}tool▁call▁end{BAR}>"

    gap = "\n" if fenced else ""
    return f"<{BAR}tool▁calls▁begin{BAR}>{gap.join(one(*call) for call in calls)}<{BAR}tool▁calls▁end{BAR}>"


def kimi(calls: Calls) -> str:
    inner = "".join(
        f"<|tool_call_begin|>functions.{n}:{i}<|tool_call_argument_begin|>{js(a)}<|tool_call_end|>"
        for i, (n, a) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{inner}<|tool_calls_section_end|>"


def kimi_k3(calls: Calls) -> str:
    kinds = {str: "string", bool: "boolean", int: "number", float: "number", dict: "object", list: "array"}

    def argument(key: str, value: object) -> str:
        kind = kinds.get(type(value), "null")
        name = key.replace("&", "&amp;").replace('"', "&quot;")
        return f'<|open|>argument key="{name}" type="{kind}"<|sep|>{text_of(value)}<|close|>argument<|sep|>'

    inner = "".join(
        f'<|open|>call tool="{n}" index="{i + 1}"<|sep|>'
        f"{''.join(argument(k, v) for k, v in a.items())}<|close|>call<|sep|>"
        for i, (n, a) in enumerate(calls)
    )
    return f"<|open|>tools<|sep|>{inner}<|close|>tools<|sep|>"


def glm(newlines: bool) -> Callable[[Calls], str]:
    gap = "\n" if newlines else ""

    def one(name: str, arguments: Mapping[str, Any]) -> str:
        pairs = "".join(
            f"<arg_key>{k}</arg_key>{gap}<arg_value>{text_of(v)}</arg_value>{gap}" for k, v in arguments.items()
        )
        return f"<tool_call>{name}{gap}{pairs}</tool_call>"

    return lambda calls: gap.join(one(*call) for call in calls)


def hunyuan3(calls: Calls) -> str:
    def one(name: str, arguments: Mapping[str, Any]) -> str:
        pairs = "".join(f"<arg_key>{k}</arg_key><arg_value>{text_of(v)}</arg_value>" for k, v in arguments.items())
        return f"<tool_call>{name}<tool_sep>{pairs}</tool_call>"

    return f"<tool_calls>{''.join(one(*call) for call in calls)}</tool_calls>"


def k2_horizon(calls: Calls) -> str:
    def one(name: str, arguments: Mapping[str, Any]) -> str:
        pairs = "".join(
            f"<ifm|arg_key>{k}</ifm|arg_key><ifm|arg_value>{text_of(v)}</ifm|arg_value>" for k, v in arguments.items()
        )
        return f"<ifm|tool_call>{name}{pairs}</ifm|tool_call>"

    inner = "\n".join(one(*call) for call in calls)
    return f"<ifm|tool_calls>{inner}</ifm|tool_calls>"


def minimax_m3(calls: Calls) -> str:
    def element(key: str, value: object) -> str:
        if isinstance(value, dict) and value:
            inner = "".join(element(k, v) for k, v in value.items())
        elif isinstance(value, list) and value:
            inner = "".join(element("item", v) for v in value)
        else:
            inner = "" if value in ({}, []) else text_of(value)
        return f"{M3}<{key}>{inner}{M3}</{key}>"

    def one(name: str, arguments: Mapping[str, Any]) -> str:
        inner = "".join(element(k, v) + "\n" for k, v in arguments.items())
        return f'{M3}<invoke name="{name}">\n{inner}{M3}</invoke>\n'

    return f"{M3}<tool_call>\n{''.join(one(*call) for call in calls)}{M3}</tool_call>"


def python_call(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{k}={v!r}' for k, v in arguments.items())})"


def pythonic(opener: str = "", closer: str = "") -> Callable[[Calls], str]:
    return lambda calls: f"{opener}[{', '.join(python_call(*call) for call in calls)}]{closer}"


def gemma(opener: str, closer: str, quote: str) -> Callable[[Calls], str]:
    def notation(value: object) -> str:
        match value:
            case str():
                return f"{quote}{value}{quote}"
            case dict():
                return "{" + ",".join(f"{k}:{notation(v)}" for k, v in value.items()) + "}"
            case list():
                return "[" + ",".join(notation(v) for v in value) + "]"
            case _:
                return js(value)

    return lambda calls: "".join(f"{opener}call:{n}{notation(dict(a))}{closer}" for n, a in calls)


def harmony(calls: Calls) -> str:
    """The `<|call|>` that ends a message is a stop token, so a call is the last thing of a real answer."""
    return "".join(
        f"{'<|start|>assistant' if i else ''}<|channel|>commentary to=functions.{n} <|constrain|>json<|message|>"
        f"{js(a)}<|call|>"
        for i, (n, a) in enumerate(calls)
    )


def plamo(calls: Calls) -> str:
    def tag(name: str, end: bool = False) -> str:
        return f"<|plamo:{'end' if end else 'begin'}_{name}:plamo|>"

    inner = "".join(
        tag("tool_request")
        + tag("tool_name")
        + n
        + tag("tool_name", True)
        + tag("tool_arguments")
        + js(a)
        + tag("tool_arguments", True)
        + tag("tool_request", True)
        for n, a in calls
    )
    return tag("tool_requests") + inner + tag("tool_requests", True)


@dataclass(frozen=True)
class Family:
    """How one format writes calls, and what it can carry.

    Args:
        render: calls to text.
        before, after: whether text may stand there.
        exact: arguments are the JSON that was rendered, byte for byte.
        many: how many calls one answer may hold.
        forbidden: what a string value cannot contain without meaning something else.
        opener: what the first call begins with, where it is markup.
        wrap: how visible text is written.
    """

    render: Callable[[Calls], str]
    before: bool = True
    after: bool = True
    exact: bool = False
    many: int = 3
    forbidden: tuple[str, ...] = ()
    opener: str = ""
    wrap: Callable[[str], str] = str


def _message(text: str) -> str:
    return f"<|channel|>commentary<|message|>{text}<|end|><|start|>assistant"


FAMILIES: dict[str, Family] = {
    "hermes": Family(blocks("<tool_call>", "</tool_call>"), exact=True, opener="<tool_call>"),
    "granite4": Family(blocks("<tool_call>", "</tool_call>"), exact=True, opener="<tool_call>"),
    "ernie45": Family(blocks("<tool_call>", "</tool_call>"), exact=True, opener="<tool_call>"),
    "qwen3_xml": Family(qwen("<tool_call>", "</tool_call>"), opener="<tool_call>"),
    "seed_oss": Family(qwen("<seed:tool_call>", "</seed:tool_call>"), opener="<seed:tool_call>"),
    "llama3_json": Family(
        lambda calls: "; ".join(js(one) for one in named(calls, "parameters")), before=False, after=False, exact=True
    ),
    "pythonic": Family(pythonic(), before=False),
    "llama4_pythonic": Family(pythonic("<|python_start|>", "<|python_end|>"), opener="<|python_start|>"),
    "olmo3": Family(
        lambda calls: "<function_calls>" + "\n".join(python_call(*call) for call in calls) + "</function_calls>",
        opener="<function_calls>",
    ),
    "lfm2": Family(pythonic("<|tool_call_start|>", "<|tool_call_end|>"), opener="<|tool_call_start|>"),
    "mistral_v3": Family(listed("[TOOL_CALLS]", ""), exact=True, opener="[TOOL_CALLS]"),
    "mistral_v11": Family(
        lambda calls: "".join(f"[TOOL_CALLS]{n}[ARGS]{js(a)}" for n, a in calls), exact=True, opener="[TOOL_CALLS]"
    ),
    "harmony": Family(harmony, exact=True, after=False, opener="<|channel|>", wrap=_message),
    "deepseek_v3": Family(lambda calls: deepseek(calls, True), exact=True, opener=f"<{BAR}tool▁calls▁begin{BAR}>"),
    "deepseek_v31": Family(lambda calls: deepseek(calls, False), exact=True, opener=f"<{BAR}tool▁calls▁begin{BAR}>"),
    "deepseek_v32": Family(dsml("function_calls"), opener=f"<{DSML}function_calls>"),
    "deepseek_v4": Family(dsml("tool_calls"), opener=f"<{DSML}tool_calls>"),
    "deepseek_v41": Family(dsml("calls", " "), opener=f"<{DSML} calls>"),
    "kimi_k2": Family(kimi, exact=True, opener="<|tool_calls_section_begin|>"),
    "kimi_k3": Family(kimi_k3, opener="<|open|>tools<|sep|>"),
    "glm45": Family(glm(True), opener="<tool_call>"),
    "glm47": Family(glm(False), opener="<tool_call>"),
    "hy_v3": Family(hunyuan3, opener="<tool_calls>"),
    "k2_horizon": Family(k2_horizon, opener="<ifm|tool_calls>"),
    "minimax_m2": Family(invoke("minimax:tool_call"), opener="<minimax:tool_call>"),
    "minimax_m3": Family(minimax_m3, opener=f"{M3}<tool_call>"),
    "gemma4": Family(gemma("<|tool_call>", "<tool_call|>", '<|"|>'), opener="<|tool_call>"),
    "functiongemma": Family(
        gemma("<start_function_call>", "<end_function_call>", "<escape>"), opener="<start_function_call>"
    ),
    "granite": Family(listed("<|tool_call|>", ""), exact=True, opener="<|tool_call|>"),
    "jamba": Family(listed("<tool_calls>", "</tool_calls>"), exact=True, opener="<tool_calls>"),
    "hunyuan": Family(listed("<tool_calls>", "</tool_calls>"), exact=True, opener="<tool_calls>"),
    "nemotron": Family(listed("<TOOLCALL>", "</TOOLCALL>"), exact=True, opener="<TOOLCALL>"),
    "phi4_mini": Family(listed("functools", ""), exact=True, opener="functools"),
    "xlam": Family(listed("", ""), exact=True, before=False),
    "cohere": Family(
        listed("<|START_ACTION|>", "<|END_ACTION|>", "parameters", "tool_name"), exact=True, opener="<|START_ACTION|>"
    ),
    "internlm": Family(
        lambda calls: "".join(
            f"<|action_start|><|plugin|>\n{js(one)}<|action_end|>" for one in named(calls, "parameters")
        ),
        exact=True,
        opener="<|action_start|><|plugin|>",
    ),
    "step3": Family(
        lambda calls: (
            f"<{BAR}tool_calls_begin{BAR}>"
            + "".join(
                f"<{BAR}tool_call_begin{BAR}>function<{BAR}tool_sep{BAR}>"
                + invoke("", "", "steptml:")([call])
                + f"<{BAR}tool_call_end{BAR}>"
                for call in calls
            )
            + f"<{BAR}tool_calls_end{BAR}>"
        ),
        opener=f"<{BAR}tool_calls_begin{BAR}>",
    ),
    "apertus": Family(
        lambda calls: "<|tools_prefix|>" + js([{n: dict(a)} for n, a in calls]) + "<|tools_suffix|>",
        exact=True,
        opener="<|tools_prefix|>",
    ),
    "gigachat3": Family(
        lambda calls: "".join("<|function_call|>" + js(one) for one in named(calls)),
        exact=True,
        opener="<|function_call|>",
    ),
    "minicpm5": Family(invoke("", "", item="function", param="param"), opener="<function name="),
    "inkling": Family(
        lambda calls: "".join(f"<|content_invoke_tool_json|>{js(one)}<|end_message|>" for one in named(calls, "args")),
        exact=True,
        opener="<|content_invoke_tool_json|>",
    ),
    "muse": Family(invoke("atem:function_calls", prefix="atem:"), opener="<atem:function_calls>"),
    "plamo3": Family(plamo, exact=True, opener="<|plamo:begin_tool_requests:plamo|>"),
    "guided": Family(listed("", "", "parameters"), before=False, after=False, exact=True),
}
