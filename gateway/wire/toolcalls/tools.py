"""The tools that a request offers, as the parser needs them: names, and the types of their arguments."""

from collections.abc import Iterable, Mapping
from typing import Final

from gateway.wire.toolcalls.schema import ANY, Kinds, kinds_of, member


class Offer:
    """The offered tools.

    Args:
        tools: in OpenAI's form (`{"type": "function", "function": {"name", "parameters"}}`); bare function objects and
            functions without parameters are taken too, anything else is passed over. None: it is not known what is
            offered, and any name will do.
    """

    __slots__ = ("_schemas", "known")

    def __init__(self, tools: Iterable[object] | None) -> None:
        self.known: Final = tools is not None
        self._schemas: Final[dict[str, Mapping[str, object]]] = {}
        for tool in tools or ():
            function = _function(tool)
            name = function.get("name")
            if isinstance(name, str) and name:
                schema = function.get("parameters", function.get("input_schema"))
                self._schemas[name] = schema if isinstance(schema, Mapping) else {}

    @property
    def names(self) -> tuple[str, ...]:
        """The offered names, in order."""
        return tuple(self._schemas)

    @property
    def nothing(self) -> bool:
        """Whether it is known that no tool is offered."""
        return self.known and not self._schemas

    def takes(self, name: str) -> bool:
        """Whether a tool of this name is offered, or might be."""
        return not self.known or name in self._schemas

    def schema(self, name: str) -> Mapping[str, object]:
        """The parameters' schema of a tool; an empty one if there is none."""
        return self._schemas.get(name, {})

    def argument(self, tool: str, name: str) -> object:
        """The schema of one argument; None if nothing is said about it."""
        schema = self.schema(tool)
        return member(schema, name, schema)

    def kinds(self, tool: str, name: str) -> Kinds:
        """The JSON types that an argument may have; `ANY` if nothing is said about it."""
        schema = self.argument(tool, name)
        return ANY if schema is None else kinds_of(schema, self.schema(tool))

    def satisfied(self, tool: str, given: set[str]) -> bool:
        """Whether everything that a tool requires is among the `given` arguments."""
        required = self.schema(tool).get("required")
        return not isinstance(required, list) or given.issuperset(name for name in required if isinstance(name, str))

    def positions(self, tool: str) -> tuple[str, ...]:
        """The argument names in the order of the schema."""
        properties = self.schema(tool).get("properties")
        return tuple(properties) if isinstance(properties, Mapping) else ()


def _function(tool: object) -> Mapping[str, object]:
    if not isinstance(tool, Mapping):
        return {}
    inner = tool.get("function")
    return inner if isinstance(inner, Mapping) else tool
