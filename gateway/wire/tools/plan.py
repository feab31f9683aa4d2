"""How a request with tools is served by one engine: a decision, with its reason for people.

What each engine does, with the recordings: tool-calls.md sections 0.3, 2.2 and 7, engines/triton.md section 5.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from engines.profile import EngineKind
from gateway.wire.tools.ask import Ask, name_of
from gateway.wire.tools.facts import Facts, Parse


@dataclass(frozen=True, slots=True)
class Off:
    """The answer's calls are nobody's business."""

    why: str


@dataclass(frozen=True, slots=True)
class EngineParses:
    """The engine's calls are put right; `markup`: what its parser lets through is read."""

    why: str
    markup: bool = True


@dataclass(frozen=True, slots=True)
class Raw:
    """The engine gives the model's text, which is read here."""

    why: str


@dataclass(frozen=True, slots=True)
class Forced:
    """As `Raw`, and the engine is held to JSON calls by a schema."""

    why: str


@dataclass(frozen=True, slots=True)
class Named:
    """The engine is asked for the only tool by name."""

    why: str
    name: str


@dataclass(frozen=True, slots=True)
class Union:
    """The engine is asked for one tool that stands for all."""

    why: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The engine cannot do what was asked for."""

    param: str
    message: str


Plan: TypeAlias = Off | EngineParses | Raw | Forced | Named | Union | Refused

_NO_GUIDE: Final = (
    "'tool_choice' cannot force a call on this model's engine, of which no guided decoding is known. If it was started "
    "with a guided decoding backend, 'engines.%s.guided_decoding: true' in the gateway's configuration says so."
)


def plan(facts: Facts, ask: Ask) -> Plan:
    """Decides how the engine serves the request. What is odd about a request is the engine's to say."""
    if facts.parse is Parse.OFF:
        return Off("tools.parse is off")
    mode = ask.choice.mode
    if mode == "none":
        return Off("the request wants no call")
    match facts.kind:
        case EngineKind.VLLM:
            return _vllm(facts, forced=ask.choice.forced)
        case EngineKind.TRTLLM:
            return _trtllm(facts, ask)
        case EngineKind.TRITON:
            return _triton(facts, ask)
        case _:
            assert_never(facts.kind)


def _vllm(facts: Facts, *, forced: bool) -> Plan:
    if (why := _gateway(facts)) is None:
        return _engine(facts)
    return Forced(why) if forced else Raw(why)


def _trtllm(facts: Facts, ask: Ask) -> Plan:
    choice = ask.choice
    if choice.forced:
        if choice.mode == "required" and facts.parses and len(ask.tools) == 1:
            return Named("the only tool is asked for by name, which its parser knows", name_of(ask.tools[0]))
        if facts.guided and not (choice.mode == "named" and facts.parses):
            return Forced("it has guided decoding")
        if choice.mode == "required" or facts.parses is False:
            return Refused("tool_choice", _NO_GUIDE % facts.engine)
        return _engine(facts)
    if (why := _gateway(facts)) is not None:
        return Raw(why)
    if facts.parses is None and facts.parse is Parse.AUTO and facts.found.format:
        return Raw("whether it has a parser is not known, so that calls are read wherever they are")
    return _engine(facts)


def _triton(facts: Facts, ask: Ask) -> Plan:
    choice = ask.choice
    if choice.mode == "named":
        return EngineParses("a named tool is forced without a parser", markup=False)
    if choice.mode == "required" and ask.tools:
        if len(ask.tools) == 1:
            return Named("it would force its first tool, and there is one", name_of(ask.tools[0]))
        return Union("it can force one tool only")
    if (why := _gateway(facts)) is not None:
        return Raw(why)
    if facts.found.format and facts.parse is Parse.AUTO:
        return Raw(f"its parsers lose calls, and the format is known ({facts.found.source})")
    return _engine(facts)


def _gateway(facts: Facts) -> str | None:
    """Why calls must be read here, None if they need not."""
    if facts.parse is Parse.GATEWAY:
        return "tools.parse is gateway"
    if facts.parse is Parse.ENGINE or facts.parses is not False:
        return None
    return "it said that it has no tool parser" if facts.learnt else "it has no tool parser"


def _engine(facts: Facts) -> EngineParses:
    if facts.parse is Parse.ENGINE:
        return EngineParses("tools.parse is engine", markup=False)
    return EngineParses("it has a tool parser" if facts.parses else "whether it has a tool parser is not known")
