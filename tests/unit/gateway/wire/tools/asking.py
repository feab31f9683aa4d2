"""Requests with tools, for the tests of this folder."""

import msgspec

from engines.policy import Members
from engines.profile import EngineKind
from gateway.wire.tools import Ask, Facts, Parse, known_format, read_ask
from tests.support.json_type import Json

WEATHER: Json = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
TIME: Json = {"type": "function", "function": {"name": "get_time"}}
TOOLS: Json = [WEATHER, TIME]
NAMED: Json = {"type": "function", "function": {"name": "get_weather"}}


def members_of(**members: Json) -> Members:
    return {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in members.items()}


def plain(members: Members) -> Json:
    return {name: msgspec.json.decode(raw) for name, raw in members.items()}


def asked(tools: Json = TOOLS, choice: Json = None, **more: Json) -> tuple[Ask, Members]:
    members = members_of(tools=tools, **({} if choice is None else {"tool_choice": choice}), **more)
    ask = read_ask(members)
    assert ask is not None
    return ask, members


def facts_of(
    kind: EngineKind, *, parser: str | None = None, form: str = "auto", parse: Parse = Parse.AUTO, **more: Json
) -> Facts:
    return Facts(kind, parse, known_format(form, parser, kind, "org/m"), parser, **more)
