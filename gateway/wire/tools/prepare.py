"""A plan made good: the request members that the engine gets, and the reading of its answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, assert_never

import msgspec

from engines.policy import NULL, Members, ParameterRefused
from engines.profile import EngineKind
from engines.translators import GUIDED_FIELDS
from gateway.wire.tools.ask import Ask, name_of, parameters_of
from gateway.wire.tools.facts import Facts
from gateway.wire.tools.plan import EngineParses, Forced, Named, Off, Plan, Raw, Refused, Union
from gateway.wire.tools.reading import Content, Reading
from gateway.wire.tools.schemas import list_of_calls, union_tool

_NO_CALLS: Final = msgspec.Raw(b'"none"')
_FALSE: Final = msgspec.Raw(b"false")
_CONSTRAINTS: Final = ("structured_outputs", *GUIDED_FIELDS)


@dataclass(frozen=True, slots=True)
class Tooled:
    """A request made ready as far as tools are concerned.

    Args:
        members: for the engine's profile; None if nothing changes.
        reading: how calls and reasoning are read out of the answer; None if they are not.
        dropped, translated: names for the response headers.
    """

    members: Members | None = None
    reading: Reading | None = None
    dropped: tuple[str, ...] = ()
    translated: tuple[str, ...] = ()


def prepare(decided: Plan, facts: Facts, ask: Ask, members: Members) -> Tooled:
    """Makes the plan good. ``members`` are not changed.

    Raises:
        ParameterRefused: the engine cannot do what was asked for.
    """
    edits: dict[str, msgspec.Raw | None]
    match decided:
        case Refused(param, message):
            raise ParameterRefused(param, message)
        case Off():
            wanted = ask.choice.mode != "none"
            reading = Reading(ask, watch=wanted, known=facts.wire, calls=False)
            if wanted:
                return Tooled(None, reading)
            edits, dropped = _cut_here(facts, ask)
            return Tooled(_edited(members, edits), reading, dropped)
        case EngineParses(markup=markup):
            return _tooled(facts, ask, members, {}, Content.MARKUP if markup else Content.NOTHING, watch=not markup)
        case Named(name=name):
            edits = {"tool_choice": _raw({"type": "function", "function": {"name": name}}), "tools": _offered(ask)}
            return _tooled(facts, ask, members, edits, Content.NOTHING, ("tool_choice",))
        case Raw():
            return _tooled(facts, ask, members, _raw_text(facts, ask), Content.FORMAT)
        case Forced():
            edits = _raw_text(facts, ask) | _held(facts, ask, members)
            return _tooled(facts, ask, members, edits, Content.FORMAT, ("tool_choice",))
        case Union():
            union = union_tool(ask.tools)
            name = name_of(union)
            edits = {
                "tools": _raw([*ask.tools, union]),
                "tool_choice": _raw({"type": "function", "function": {"name": name}}),
            }
            return _tooled(facts, ask, members, edits, Content.FORMAT, ("tool_choice",), union=name)
        case _:
            assert_never(decided)


def _tooled(
    facts: Facts,
    ask: Ask,
    members: Members,
    edits: Mapping[str, msgspec.Raw | None],
    content: Content,
    translated: tuple[str, ...] = (),
    *,
    union: str = "",
    watch: bool = False,
) -> Tooled:
    more, dropped = _cut_here(facts, ask)
    reading = Reading(ask, content=content, known=facts.wire, quirks=facts.quirks, union=union, watch=watch)
    return Tooled(_edited(members, {**edits, **more}), reading, dropped, translated)


def _cut_here(facts: Facts, ask: Ask) -> tuple[dict[str, msgspec.Raw | None], tuple[str, ...]]:
    """Takes `parallel_tool_calls: false` from engines that do not know it; the reading passes the first call only."""
    if ask.parallel or facts.kind is EngineKind.VLLM:
        return {}, ()
    return {"parallel_tool_calls": None}, ("parallel_tool_calls",)


def _edited(members: Members, edits: Mapping[str, msgspec.Raw | None]) -> Members | None:
    if not edits:
        return None
    made = members | {name: value for name, value in edits.items() if value is not None}
    for name, value in edits.items():
        if value is None:
            made.pop(name, None)
    return made


def _raw_text(facts: Facts, ask: Ask) -> dict[str, msgspec.Raw | None]:
    """What makes the engine give the model's text with the tools still in its prompt."""
    edits: dict[str, msgspec.Raw | None] = {"tools": _offered(ask)} if ask.choice.allowed else {}
    match facts.kind:
        case EngineKind.VLLM:
            # Without a parser every other choice is refused.
            edits |= {"tool_choice": _NO_CALLS, "skip_special_tokens": _FALSE, "parallel_tool_calls": None}
        case EngineKind.TRTLLM:
            # Without a parser it gives the text whatever the choice; with one, markup is taken out even under "none".
            edits |= {"tool_choice": None, "skip_special_tokens": _FALSE}
        case EngineKind.TRITON:
            edits["tool_choice"] = _NO_CALLS  # its schema has no word for special tokens, which it leaves out
        case _:
            assert_never(facts.kind)
    return edits


def _held(facts: Facts, ask: Ask, members: Members) -> dict[str, msgspec.Raw | None]:
    """What holds the engine to calls: a schema for its whole text."""
    for name in _CONSTRAINTS:
        if members.get(name, NULL) != NULL:
            raise ParameterRefused(name, f"'{name}' cannot be used together with a forced tool call.", "invalid_value")
    choice = ask.choice
    if choice.mode == "named":
        tool = next((tool for tool in ask.tools if name_of(tool) == choice.name), None)
        if tool is None:
            raise ParameterRefused("tool_choice", "'tool_choice' names a tool that is not offered.", "invalid_value")
        schema = parameters_of(tool)
    else:
        if not ask.tools:
            raise ParameterRefused("tools", "'tools' must be a list of tools.", "invalid_value")
        schema = list_of_calls(ask.tools, several=ask.parallel)
    return {"tool_choice": _NO_CALLS, "response_format": _raw(_response_format(facts.kind, schema))}


def _response_format(kind: EngineKind, schema: dict[str, Any]) -> dict[str, Any]:
    if kind is EngineKind.TRTLLM:
        return {"type": "json", "schema": schema}
    return {"type": "json_schema", "json_schema": {"name": "tool_calls", "schema": schema}}


def _offered(ask: Ask) -> msgspec.Raw:
    return _raw(ask.tools)


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
