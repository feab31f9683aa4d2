"""Every name under which somebody knows a wire format or a reasoning family (tool-calls.md section 1.3)."""

from difflib import get_close_matches
from types import MappingProxyType
from typing import Final

from gateway.wire.toolcalls.formats import FORMATS, REASONINGS
from gateway.wire.toolcalls.spec import Format, Reasoning

ENGINES: Final = ("vLLM", "trtllm-serve", "Triton", "SGLang", "smg", "dynamo")
"""Whose names `ALIASES` holds, in the order of its columns."""

ALIASES: Final[dict[str, tuple[str, str, str, str, str, str]]] = {
    "hermes": ("hermes qwen3_json longcat", "qwen3", "", "hermes qwen25 qwen trinity", "qwen", "hermes qwen25 qwen3"),
    "granite4": ("granite4", "", "", "", "", ""),
    "ernie45": ("ernie45", "", "", "", "", ""),
    "qwen3_xml": (
        "qwen3_coder qwen3_xml step3p5 mimo",
        "qwen3_coder",
        "",
        "qwen3_coder step3p5 nanbeige mimo",
        "qwen_xml qwen_coder",
        "qwen3_coder nemotron_nano",
    ),
    "seed_oss": ("seed_oss", "", "", "", "", ""),
    "llama3_json": ("llama3_json llama4_json", "", "llama3", "llama3", "llama json", "llama3_json"),
    "pythonic": ("pythonic", "", "", "pythonic", "pythonic", "pythonic"),
    "llama4_pythonic": ("llama4_pythonic", "", "", "", "", ""),
    "olmo3": ("olmo3", "", "", "", "", ""),
    "lfm2": ("lfm2", "", "", "lfm2", "", ""),
    "mistral_v11": ("mistral", "", "", "", "", ""),
    "mistral_v3": ("", "", "mistral", "mistral", "mistral", "mistral"),
    "harmony": ("openai", "", "", "gpt-oss", "", "harmony"),
    "deepseek_v3": ("deepseek_v3", "deepseek_v3 deepseekv3", "", "deepseekv3", "deepseek", "deepseek_v3"),
    "deepseek_v31": (
        "deepseek_v31",
        "deepseek_v31 deepseekv3.1",
        "",
        "deepseekv31",
        "deepseek31",
        "deepseek_v3_1",
    ),
    "deepseek_v32": ("deepseek_v32", "deepseek_v32", "", "deepseekv32", "deepseek32", "deepseek_v3_2"),
    "deepseek_v4": ("deepseek_v4", "deepseek_v4", "", "deepseekv4", "deepseek_v4", "deepseek_v4"),
    "deepseek_v41": ("deepseek_v41", "deepseek_v41 deepseek_v4.1", "", "deepseekv41", "", "deepseek_v41"),
    "kimi_k2": ("kimi_k2", "kimi_k2", "", "kimi_k2", "kimik2", "kimi_k2 kimi_k25"),
    "kimi_k3": ("kimi_k3", "kimi_k3", "", "kimi_k3", "kimi_k3", "kimi_k3"),
    "glm45": ("glm45", "glm4", "", "glm45 glm", "glm45_moe", "glm45"),
    "glm47": ("glm47 ling3 poolside_v1", "glm47 poolside_v1", "", "glm47 ling3 spark25", "glm47_moe", "glm47"),
    "hy_v3": ("hy_v3 hy_v4", "", "", "hunyuan", "", ""),
    "k2_horizon": ("k2_horizon", "", "", "k2_v3", "", ""),
    "minimax_m2": ("minimax_m2 dots", "minimax_m2", "", "minimax-m2 dots", "minimax_m2", "minimax_m2"),
    "minimax_m3": ("minimax_m3", "minimax_m3", "", "minimax-m3", "", "minimax_m3"),
    "gemma4": ("gemma4", "gemma4", "", "gemma4", "", "gemma4"),
    "functiongemma": ("functiongemma", "", "", "", "", ""),
    "granite": ("granite granite-20b-fc", "", "", "", "", ""),
    "jamba": ("jamba", "", "", "", "", "jamba"),
    "hunyuan": ("hunyuan_a13b", "", "", "", "", ""),
    "nemotron": ("", "", "", "", "", "nemotron_deci"),
    "phi4_mini": ("phi4_mini_json", "", "", "", "", "phi4"),
    "xlam": ("xlam", "", "", "", "", "default"),
    "cohere": ("cohere_command3 cohere_command4", "", "", "cohere_command4", "cohere", ""),
    "internlm": ("internlm", "", "", "interns1", "", ""),
    "step3": ("step3", "", "", "step3", "step3", ""),
    "apertus": ("apertus", "", "", "", "", ""),
    "gigachat3": ("gigachat3", "", "", "", "", ""),
    "minicpm5": ("minicpm5", "", "", "", "", ""),
    "inkling": ("inkling", "inkling", "", "inkling", "inkling", "inkling"),
    "muse": ("muse_glimmer", "", "", "", "", "muse"),
    "plamo3": ("plamo3", "", "", "", "", ""),
    "guided": ("", "", "", "", "", ""),
}
"""Our format → the engines' parser names, blank-separated, one string per engine."""

_REASONING_ALIASES: Final = MappingProxyType(
    {
        "think": "qwen3 deepseek_r1 deepseek-r1 deepseek_v3 deepseek_v31 deepseek_v4 glm45 minimax_m2 kimi_k2 kimi_k25 "
        "kimi nemotron nemotron_v3 nano-v3 nano_v3 step3 step3p5 ernie45 olmo3 holo2 mimo qwen3_5 qwen3-thinking "
        "minimax_m2_append_think poolside_v1 laguna hy_v3 internlm qwq longcat",
        "seed": "seed_oss seed-oss",
        "mistral": "magistral mistral_v11",
        "gemma": "gemma4",
        "cohere": "cohere_command3 cohere_command4 command_a",
        "kimi_k3": "",
        "minimax_m3": "minimax-m3",
        "ifm": "k2_horizon k2_v3",
        "granite": "",
        "hunyuan": "hunyuan_a13b",
        "harmony": "gpt-oss openai openai_gptoss gptoss",
        "apertus": "",
    }
)


class UnknownFormatError(ValueError):
    """No wire format or reasoning family has this name; the message suggests close ones."""


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(".", "").replace(" ", "_")


def _format_index() -> dict[str, Format]:
    own = {form.name: form for form in FORMATS}
    index: dict[str, Format] = {}
    for name, columns in ALIASES.items():
        for alias in " ".join(columns).split():
            index.setdefault(_plain(alias), own[name])
    return index | {_plain(name): form for name, form in own.items()}


def _reasoning_index() -> dict[str, Reasoning]:
    own = {family.name: family for family in REASONINGS}
    index: dict[str, Reasoning] = {}
    for name, aliases in _REASONING_ALIASES.items():
        for alias in aliases.split():
            index.setdefault(_plain(alias), own[name])
    return index | {_plain(name): family for name, family in own.items()}


_FORMAT_BY_NAME: Final = MappingProxyType(_format_index())
_REASONING_BY_NAME: Final = MappingProxyType(_reasoning_index())


def format_named(name: str | Format) -> Format:
    """The format of our name or any engine's; hyphens, dots and capitals do not matter.

    Raises:
        UnknownFormatError: there is none.
    """
    if isinstance(name, Format):
        return name
    if found := _FORMAT_BY_NAME.get(_plain(name)):
        return found
    raise UnknownFormatError(_message("tool-call format", name, tuple(_FORMAT_BY_NAME)))


def reasoning_named(name: str) -> Reasoning:
    """The reasoning family of our name or any engine's.

    Raises:
        UnknownFormatError: there is none.
    """
    if found := _REASONING_BY_NAME.get(_plain(name)):
        return found
    raise UnknownFormatError(_message("reasoning format", name, tuple(_REASONING_BY_NAME)))


def _message(what: str, name: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(_plain(name), known, 3)
    return f"unknown {what} {name!r}" + (f"; did you mean {', '.join(close)}?" if close else "")
