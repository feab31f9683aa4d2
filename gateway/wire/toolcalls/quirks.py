"""What engines do wrong when they parse tool calls themselves, as data by engine, version and parser.

Most of it (missing ids, repeated names, empty deltas, types on every delta, wrong finish reasons) `normalise` puts
right whoever did it. Listed here is what must be known beforehand, or what callers should say. Sources: tool-calls.md
sections 2.2 and 2.3, the recordings of vLLM and Triton, trtllm-serve's transcription.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


class Quirk(Enum):
    """A habit that needs its own treatment."""

    RESENDS_ARGUMENTS = auto()
    """Sends the whole arguments object again and again, and the call once more at the end: held until it is whole."""
    RESTARTS_ARGUMENTS = auto()
    """May append the whole arguments object to a beginning of it: held until it is whole."""
    REPEATS_CONTENT = auto()
    """Repeats the text before a call on every delta of the call."""
    NEVER_SAYS_LENGTH = auto()
    """Says `stop` or `tool_calls` at the token limit: the caller compares usage with the limit."""
    CLOSES_CUT_CALLS = auto()
    """Returns a call that was cut off as if it were whole, when it is not streamed."""
    DROPS_UNKNOWN_TOOLS = auto()
    """Loses calls of tools that were not offered."""
    LOSES_WHOLE_CALLS = auto()
    """Loses calls or arguments when several tokens arrive at once: raw mode is better."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Quirks of an engine's parsers over a range of versions.

    Args:
        engine: `vllm`, `trtllm` or `triton`.
        parsers: the engine's names; empty means all, and its forced tools too.
        since, before: versions, the second exclusive; empty means open.
    """

    engine: str
    quirks: frozenset[Quirk]
    parsers: frozenset[str] = frozenset()
    since: str = ""
    before: str = ""


def _rule(engine: str, quirks: tuple[Quirk, ...], parsers: str = "", since: str = "", before: str = "") -> Rule:
    return Rule(engine, frozenset(quirks), frozenset(parsers.split()), since, before)


RULES: Final = (
    _rule("vllm", (Quirk.NEVER_SAYS_LENGTH,), before="0.28"),
    _rule("vllm", (Quirk.RESTARTS_ARGUMENTS, Quirk.LOSES_WHOLE_CALLS), "jamba xlam"),
    _rule("vllm", (Quirk.RESTARTS_ARGUMENTS,), "functiongemma"),
    _rule("vllm", (Quirk.LOSES_WHOLE_CALLS,), "deepseek_v3 deepseek_v31 llama3_json llama4_json hunyuan_a13b step3"),
    _rule("vllm", (Quirk.LOSES_WHOLE_CALLS,), "phi4_mini_json internlm minicpm5 pythonic olmo3"),
    _rule("vllm", (Quirk.CLOSES_CUT_CALLS,), "qwen3_coder qwen3_xml step3p5 mimo glm45 glm47 minimax_m2 dots seed_oss"),
    _rule("vllm", (Quirk.CLOSES_CUT_CALLS,), "deepseek_v32 deepseek_v4 deepseek_v41 gemma4"),
    _rule("vllm", (Quirk.DROPS_UNKNOWN_TOOLS,), "glm45 glm47 ling3 poolside_v1 minimax_m2 dots"),
    _rule("trtllm", (Quirk.RESENDS_ARGUMENTS, Quirk.REPEATS_CONTENT), "minimax_m2"),
    _rule("trtllm", (Quirk.LOSES_WHOLE_CALLS, Quirk.DROPS_UNKNOWN_TOOLS), "qwen3 qwen3_coder kimi_k2"),
    _rule("trtllm", (Quirk.LOSES_WHOLE_CALLS,), "deepseek_v3 deepseek_v31 deepseekv3 deepseekv3.1 deepseek_v32"),
    _rule("triton", (Quirk.NEVER_SAYS_LENGTH,)),
    _rule("triton", (Quirk.RESTARTS_ARGUMENTS, Quirk.LOSES_WHOLE_CALLS, Quirk.CLOSES_CUT_CALLS), "llama3"),
    _rule("triton", (Quirk.LOSES_WHOLE_CALLS, Quirk.CLOSES_CUT_CALLS), "mistral"),
)


def quirks_for(engine: str, version: str = "", parser: str = "") -> frozenset[Quirk]:
    """The quirks of an engine's parser; with an unknown version, those of every version."""
    found: set[Quirk] = set()
    for rule in RULES:
        if rule.engine == engine and (not rule.parsers or parser in rule.parsers) and _within(rule, version):
            found |= rule.quirks
    return frozenset(found)


def _within(rule: Rule, version: str) -> bool:
    if not version:
        return True
    number = _numbers(version)
    return (not rule.since or number >= _numbers(rule.since)) and (not rule.before or number < _numbers(rule.before))


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: `0.32.0rc1` gives (0, 32, 0)."""
    numbers: list[int] = []
    for part in version.lstrip("v").split("."):
        found = re.match(r"\d+", part)
        if not found:
            break
        numbers.append(int(found.group()))
        if found.end() < len(part):
            break
    return tuple(numbers)
