"""Formats and parsers by name: which one a text is written in, and how an engine is told."""

from collections.abc import Sequence
from typing import Any, Final

from engines.profile import EngineKind
from gateway.doctor.subject import Subject
from gateway.wire.toolcalls import FORMATS, parse
from gateway.wire.toolcalls.aliases import ALIASES
from gateway.wire.toolcalls.detect import from_text

_COLUMNS: Final = {EngineKind.VLLM: 0, EngineKind.TRTLLM: 1, EngineKind.TRITON: 2}
_NEEDS: Final = b"--tool-call-parser"
"""Named by vLLM and Triton when they refuse tools for want of a parser."""


_LLAMAS: Final = '"parameters"'
"""Tells Llama's bare JSON from that of others, which say "arguments"."""


def has_no_parser(refusal: bytes) -> bool:
    """Whether an engine's refusal says that it was started without a tool parser."""
    return _NEEDS in refusal


def seen_format(text: str, tools: Sequence[dict[str, Any]]) -> str:
    """The format of the calls in a model's own text; empty if there are none. Formats without markup are tried."""
    found = from_text(text).format
    if found:
        return found
    bare = [wire.name for wire in FORMATS if wire.bare]
    if _LLAMAS in text:
        bare.insert(0, "llama3_json")
    return next((name for name in bare if text and parse(text, format=name, tools=list(tools)).calls), "")


def parser_of(kind: EngineKind, wire: str) -> str:
    """What a kind of engine calls the parser for a format; empty if it has none."""
    if kind is EngineKind.VLLM and wire == "mistral_v3":
        return "mistral"  # reads the older form too
    names = ALIASES.get(wire, ("",) * 3)[_COLUMNS[kind]].split()
    return names[0] if names else ""


def start_flag(kind: EngineKind, wire: str) -> str:
    """How the engine is started with the parser for a format."""
    name = parser_of(kind, wire)
    match kind:
        case EngineKind.VLLM:
            return f"--enable-auto-tool-choice --tool-call-parser {name or 'NAME'}"
        case EngineKind.TRTLLM:
            return f"--tool_parser {name or 'NAME'}"
        case EngineKind.TRITON:
            return f"--tool-call-parser {name or 'llama3 (or mistral)'}"


def format_line(subject: Subject, wrote: str) -> str:
    """The line of the file that says the format wrongly, or where it belongs, as it should be."""
    if subject.facts.found.source == "parser":
        name = parser_of(subject.profile.kind, wrote)
        if not name:
            return f"{subject.engine_at('parser')}: none, and {subject.at('tools', 'format')}: {wrote}"
        flag = start_flag(subject.profile.kind, wrote)
        return f"{subject.engine_at('parser')}: {name}, and start the engine with {flag}"
    return f"{subject.at('tools', 'format')}: {wrote}"
