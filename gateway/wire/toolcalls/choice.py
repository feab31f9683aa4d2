"""What a request's `tool_choice` means for the parser."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_MODES: Final = frozenset({"auto", "none", "required"})


@dataclass(frozen=True, slots=True)
class Choice:
    """A `tool_choice`.

    Args:
        mode: `auto`, `none`, `required` or `named`.
        name: the named tool.
        allowed: the only tools that may be called; empty means all.
    """

    mode: str = "auto"
    name: str = ""
    allowed: tuple[str, ...] = ()

    @property
    def forced(self) -> bool:
        """Whether a call must come."""
        return self.mode in ("required", "named")


def choice_of(raw: object, offered: Sequence[str] = ()) -> Choice:
    """Reads `tool_choice` as OpenAI defines it: a mode, a named tool, or allowed tools; anything else is auto.

    Args:
        offered: names of tools, of which a bare string may be one.
    """
    if isinstance(raw, Choice):
        return raw
    if isinstance(raw, str) and raw in offered and raw not in _MODES:
        return Choice("named", raw)
    if isinstance(raw, str):
        return Choice("required" if raw == "any" else raw if raw in _MODES else "auto")
    if not isinstance(raw, Mapping):
        return Choice()
    if raw.get("type") == "allowed_tools":
        return _allowed(raw)
    name = _name(raw)
    return Choice("named", name) if name else Choice()


def _allowed(raw: Mapping[str, object]) -> Choice:
    inner = raw.get("allowed_tools")
    inner = inner if isinstance(inner, Mapping) else raw
    tools = inner.get("tools")
    listed = tools if isinstance(tools, Sequence) and not isinstance(tools, str) else ()
    names = tuple(name for tool in listed if (name := _name(tool)))
    return Choice("required" if inner.get("mode") == "required" else "auto", allowed=names)


def _name(tool: object) -> str:
    if not isinstance(tool, Mapping):
        return ""
    inner = tool.get("function")
    name = (inner if isinstance(inner, Mapping) else tool).get("name")
    return name if isinstance(name, str) else ""
