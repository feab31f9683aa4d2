"""What a request wants with tools, read no further than it must be."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from engines.policy import NULL, Members
from engines.tools import NO_TOOLS
from gateway.wire.toolcalls.choice import Choice, choice_of

_MODES: Final[Mapping[bytes, Choice]] = {
    mode.encode(): Choice(mode.strip('"')) for mode in ('"auto"', '"none"', '"required"')
} | {b"null": Choice()}
_decode_tools = msgspec.json.Decoder(list[dict[str, Any]]).decode


class IdsIn:
    """Ids that occur in raw messages. One that occurs as something else only counts too, which costs nothing."""

    __slots__ = ("_messages",)

    def __init__(self, messages: msgspec.Raw) -> None:
        self._messages = messages

    def __contains__(self, call_id: object) -> bool:
        return isinstance(call_id, str) and f'"{call_id}"'.encode() in bytes(self._messages)


class Ask:
    """The tools of a request and the choice among them. The list of tools is read when somebody looks into it."""

    __slots__ = ("_raw", "_tools", "choice", "legacy", "parallel", "used_ids")

    def __init__(
        self,
        tools: msgspec.Raw,
        choice: Choice,
        *,
        parallel: bool = True,
        legacy: bool = False,
        messages: msgspec.Raw = NULL,
    ) -> None:
        """``legacy``: the client speaks of `functions`, and gets its answer in those words. ``messages``: as the client
        sent them."""
        self._raw = tools
        self._tools: list[dict[str, Any]] | None = None
        self.choice = choice
        self.parallel = parallel
        self.legacy = legacy
        self.used_ids = IdsIn(messages)

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools that may be called; empty if the list is none of tools."""
        if self._tools is None:
            try:
                given = _decode_tools(self._raw)
            except (msgspec.DecodeError, RecursionError):
                given = []
            allowed = self.choice.allowed
            self._tools = [tool for tool in given if name_of(tool) in allowed] if allowed else given
        return self._tools


def name_of(tool: Mapping[str, Any]) -> str:
    """A tool's name."""
    function = tool.get("function")
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else ""


def parameters_of(tool: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a tool's arguments; for OpenAI a function without one takes none."""
    function = tool.get("function")
    schema = function.get("parameters") if isinstance(function, Mapping) else None
    return schema if isinstance(schema, dict) else {"type": "object", "properties": {}}


def read_ask(members: Members, *, legacy: bool = False, messages: msgspec.Raw = NULL) -> Ask | None:
    """What the members of a chat request ask for; None if they offer no tool. The other arguments are `Ask`'s."""
    tools = members.get("tools")
    if tools is None or tools in NO_TOOLS:
        return None
    parallel = bytes(members.get("parallel_tool_calls", NULL)) != b"false"
    return Ask(tools, _choice(members.get("tool_choice")), parallel=parallel, legacy=legacy, messages=messages)


def _choice(raw: msgspec.Raw | None) -> Choice:
    if raw is None:
        return _MODES[b"null"]
    known = _MODES.get(bytes(raw))
    if known is not None:
        return known
    try:
        return choice_of(msgspec.json.decode(raw))
    except (msgspec.DecodeError, RecursionError):
        return Choice()
