# ruff: noqa: RUF001 - the markers of some formats hold full-width bars
"""Which wire format a model speaks (tool-calls.md section 1.4).

In this order: explicit configuration, the chat template or vocabulary, leaked markup, the model's name. Never the
architecture (`model_type`): Qwen3 and Qwen3-Coder share one and speak different formats.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway.wire.toolcalls.aliases import format_named
from gateway.wire.toolcalls.formats import FORMATS
from gateway.wire.toolcalls.marks import Marks, marks


@dataclass(frozen=True, slots=True)
class Finding:
    """A format and why.

    Args:
        format: our name; empty if nothing was found.
        source: `configuration`, `template`, `text` or `name`.
        evidence: the marker, or the pattern of the name, that decided.
    """

    format: str
    source: str
    evidence: str


@dataclass(frozen=True, slots=True)
class _Print:
    """A fingerprint: a format is meant where all of `has` and none of `lacks` occur."""

    format: str
    has: tuple[str, ...]
    lacks: tuple[str, ...] = ()


_PRINTS: Final = (
    _Print("deepseek_v41", ("｜DSML｜ calls",)),
    _Print("deepseek_v4", ("｜DSML｜tool_calls",)),
    _Print("deepseek_v32", ("｜DSML｜function_calls",)),
    _Print("deepseek_v32", ("｜DSML｜",)),
    _Print("kimi_k3", ("<|open|>", "<|sep|>")),
    _Print("kimi_k2", ("<|tool_calls_section_begin|>",)),
    _Print("kimi_k2", ("<|tool_call_section_begin|>",)),
    _Print("deepseek_v3", ("<｜tool▁calls▁begin｜>", "```json")),
    _Print("deepseek_v31", ("<｜tool▁calls▁begin｜>",)),
    _Print("deepseek_v31", ("<｜tool▁call▁begin｜>",)),
    _Print("harmony", ("<|channel|>", "<|message|>")),
    _Print("minimax_m3", ("]<]minimax[>[",)),
    _Print("minimax_m2", ("<minimax:tool_call>",)),
    _Print("minimax_m2", ("<dots_function_call>",)),
    _Print("seed_oss", ("<seed:tool_call>",)),
    _Print("step3", ("<steptml:invoke",)),
    _Print("muse", ("<atem:invoke",)),
    _Print("plamo3", ("<|plamo:begin_tool_request",)),
    _Print("k2_horizon", ("<ifm|tool_call",)),
    _Print("hy_v3", ("<arg_key>", "<tool_sep>")),
    _Print("glm45", ("<arg_key>", "\\n<arg_key>")),
    _Print("glm45", ("<arg_key>", "\n<arg_key>")),
    _Print("glm47", ("<arg_key>",)),
    _Print("qwen3_xml", ("<function=", "<parameter=")),
    _Print("mistral_v11", ("[TOOL_CALLS]", "[ARGS]")),
    _Print("mistral_v3", ("[TOOL_CALLS]",)),
    _Print("gemma4", ("<|tool_call>",)),
    _Print("functiongemma", ("<start_function_call>",)),
    _Print("cohere", ("<|START_ACTION|>",)),
    _Print("apertus", ("<|tools_prefix|>",)),
    _Print("inkling", ("<|content_invoke_tool_json|>",)),
    _Print("gigachat3", ("<|function_call|>",)),
    _Print("llama4_pythonic", ("<|python_start|>",)),
    _Print("lfm2", ("<|tool_call_start|>",)),
    _Print("llama3_json", ("<|python_tag|>",)),
    _Print("llama3_json", ('{"name": function name, "parameters"',)),
    _Print("olmo3", ("<function_calls>",), ("<invoke",)),
    _Print("phi4_mini", ("functools",)),
    _Print("nemotron", ("<TOOLCALL>",)),
    _Print("hunyuan", ("<tool_calls>", "<answer>")),
    _Print("jamba", ("<tool_calls>",)),
    _Print("internlm", ("<|action_start|>",)),
    _Print("granite", ("<|tool_call|>",)),
    _Print("minicpm5", ("<function name=", "<param name=")),
    _Print("ernie45", ("<tool_call>", "<response>")),
    _Print("hermes", ("<tool_call>", '"name"')),
    _Print("hermes", ("<tool_call>", "tojson")),
    _Print("hermes", ("<longcat_tool_call>",)),
)
"""First match wins; five families share `<tool_call>`, so that comes last."""

_NAMES: Final = (
    (r"xlam", "xlam"),
    (r"deepseek.*distill.*qwen", "hermes"),
    (r"deepseek.*distill.*llama", "llama3_json"),
    (r"qwen[-_. ]?3[-_. ]?coder|qwen3?[-_.]?next[-_.]?coder", "qwen3_xml"),
    (r"qwen[-_. ]?3\.[5-9]|qwen[-_. ]?[4-9](?![0-9]*b)", "qwen3_xml"),
    (r"nemotron[-_. ]?3|nemotron[-_. ]?nano[-_. ]?(v?3|3)", "qwen3_xml"),
    (r"nemotron.*(nano.*v2|super|ultra)", "nemotron"),
    (r"step[-_. ]?3[._]?5|mimo|nanbeige", "qwen3_xml"),
    (r"step[-_. ]?3", "step3"),
    (r"seed[-_. ]?oss", "seed_oss"),
    (r"qwen|qwq|hermes|longcat", "hermes"),
    (r"gpt[-_. ]?oss", "harmony"),
    (r"deepseek.*v?4[._]1", "deepseek_v41"),
    (r"deepseek.*v4", "deepseek_v4"),
    (r"deepseek.*v3[._]?2[-_. ]?exp", "deepseek_v31"),
    (r"deepseek.*v3[._]?2", "deepseek_v32"),
    (r"deepseek.*v3[._]?1", "deepseek_v31"),
    (r"deepseek.*(v3|r1)", "deepseek_v3"),
    (r"k2[-_. ]?horizon", "k2_horizon"),
    (r"kimi.*k3", "kimi_k3"),
    (r"kimi", "kimi_k2"),
    (r"glm[-_. ]?4[._][0-6](?!\d)", "glm45"),
    (r"glm[-_. ]?(4[._]7|[5-9])|ling[-_. ]?3|poolside|laguna|spark[-_. ]?2", "glm47"),
    (r"minimax.*m3", "minimax_m3"),
    (r"minimax.*m2|dots", "minimax_m2"),
    (r"functiongemma", "functiongemma"),
    (r"gemma[-_. ]?4", "gemma4"),
    (r"llama[-_. ]?4", "llama4_pythonic"),
    (r"llama[-_. ]?3[._]2.*(1b|3b)|toolace", "pythonic"),
    (r"llama[-_. ]?3", "llama3_json"),
    (r"olmo[-_. ]?3", "olmo3"),
    (r"lfm[-_. ]?2", "lfm2"),
    (r"mistral.*7b.*v0\.?3|nemo|mixtral|mistral.*(large.*2407|small.*2409)", "mistral_v3"),
    (r"mistral|magistral|devstral|ministral|codestral|pixtral", "mistral_v11"),
    (r"granite[-_. ]?4", "granite4"),
    (r"granite", "granite"),
    (r"ernie", "ernie45"),
    (r"jamba", "jamba"),
    (r"hunyuan.*a13b", "hunyuan"),
    (r"hunyuan|hy[-_. ]?v?[34]", "hy_v3"),
    (r"phi[-_. ]?4[-_. ]?mini", "phi4_mini"),
    (r"command|cohere|aya", "cohere"),
    (r"internlm|intern[-_. ]?s1", "internlm"),
    (r"apertus", "apertus"),
    (r"gigachat", "gigachat3"),
    (r"minicpm[-_. ]?5", "minicpm5"),
    (r"inkling", "inkling"),
    (r"plamo", "plamo3"),
)
"""Patterns of a model's name, first match wins: the weakest evidence there is."""

NOTHING: Final = Finding("", "", "")


def from_template(template: str) -> Finding:
    """The format that a chat template, or the text of a tokenizer's vocabulary, teaches."""
    for mark in _PRINTS:
        if all(word in template for word in mark.has) and not any(word in template for word in mark.lacks):
            return Finding(mark.format, "template", " + ".join(mark.has))
    return NOTHING


def template_in(files: Mapping[str, str]) -> str:
    """What a tokenizer's files say about tool calls, for `from_template`.

    Args:
        files: contents by name: `chat_template.jinja`, `chat_template.json`, `tokenizer_config.json`, `tokenizer.json`;
            any of them, others are passed over.
    """
    found = [files.get("chat_template.jinja", "")]
    for name in ("chat_template.json", "tokenizer_config.json"):
        found.extend(_templates(_json(files.get(name, "")).get("chat_template")))
    decoder = _json(files.get("tokenizer_config.json", "")).get("added_tokens_decoder")
    tokens = list(decoder.values()) if isinstance(decoder, Mapping) else []
    added = _json(files.get("tokenizer.json", "")).get("added_tokens")
    tokens += added if isinstance(added, list) else []
    found.extend(str(token.get("content", "")) for token in tokens if isinstance(token, Mapping))
    return "\n".join(part for part in found if part)


def _json(text: str) -> Mapping[str, object]:
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, Mapping) else {}


def _templates(value: object) -> list[str]:
    """A template, or a list of named ones."""
    if isinstance(value, str):
        return [value]
    listed = value if isinstance(value, list) else []
    return [str(one.get("template", "")) for one in listed if isinstance(one, Mapping)]


def from_name(model: str) -> Finding:
    """The format that a model's name suggests; the name may be a path or a repository id."""
    name = model.rstrip("/").rsplit("/", 1)[-1].lower()
    for pattern, wire in _NAMES:
        if re.search(pattern, name):
            return Finding(wire, "name", pattern)
    return NOTHING


def resolve(*, configured: str = "", template: str = "", model: str = "") -> Finding:
    """The format of a model, from the best evidence there is.

    Args:
        configured: our name or any engine's; `auto` and the empty string say nothing.

    Raises:
        UnknownFormatError: nobody calls a format what is configured.
    """
    if configured and configured != "auto":
        return Finding(format_named(configured).name, "configuration", configured)
    found = from_template(template) if template else NOTHING
    return found if found.format or not model else from_name(model)


def _sure_markers() -> dict[str, str]:
    """Markers that only leaked markup contains, and the format that they mean if nothing better is known."""
    found: dict[str, str] = {}
    for wire in FORMATS:
        for opener in wire.openers:
            found.setdefault(opener, wire.name)
    for word in (
        "functools",
        "<function_calls>",
        "<tool_calls>",
        "<invoke ",
        "< calls>",
        "< invoke ",
        "<function ",
        "Action:",
    ):
        found.pop(word, None)
    return found | {"<|channel|>": "harmony", "<tool_calls>": "jamba", "<function_calls>": "olmo3"}


_MARKERS: Final = _sure_markers()
MARKERS: Final = marks(*_MARKERS)
"""Everything that only leaked markup contains."""
_WINDOW: Final = 4096
"""How much of the text after a first marker is looked at to tell families apart that share it."""


def from_text(text: str) -> Finding:
    """The format of tool-call markup that leaked into content; nothing if there is none."""
    at, word = MARKERS.find(text, 0)
    if at < 0:
        return NOTHING
    found = from_template(text[at : at + _WINDOW])
    return Finding(found.format or _MARKERS[word], "text", word)


class Sniffer:
    """Watches content for tool-call markup that an engine's parser let through.

    Costs one search per piece; remembers no more than the longest marker.
    """

    __slots__ = ("_tail", "finding")

    def __init__(self) -> None:
        self._tail = ""
        self.finding = NOTHING

    def feed(self, text: str) -> bool:
        """Looks at more content. Returns whether markup was seen, now or before."""
        if self.finding.format:
            return True
        marker: Marks = MARKERS
        if not self._tail and not marker.may_begin_in(text):
            return False
        seen = self._tail + text
        self.finding = from_text(seen)
        self._tail = "" if self.finding.format else seen[marker.hold(seen, 0) :]
        return bool(self.finding.format)
