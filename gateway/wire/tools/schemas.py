"""JSON schemas that hold a model to calls of the offered tools, and to nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.wire.tools.ask import name_of, parameters_of

UNION: Final = "call_tool"
"""The name of the one tool that stands for all where an engine can only force one."""


def list_of_calls(tools: Sequence[Mapping[str, Any]], *, several: bool) -> dict[str, Any]:
    """A list of at least one `{"name", "parameters"}`: what vLLM makes of a required choice."""
    schema: dict[str, Any] = {"type": "array", "minItems": 1, **_any_call(tools, "items")}
    if not several:
        schema["maxItems"] = 1
    return schema


def union_tool(tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One tool whose arguments are a call of one of these."""
    names = {name_of(tool) for tool in tools}
    name = UNION
    while name in names:
        name += "_"
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": "Calls one of the other tools.",
            "parameters": _call_of(tools),
        },
    }


def _call_of(tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    made = _any_call(tools, "call")
    call: dict[str, Any] = made.pop("call")
    return {"type": "object", **call, **made}


def _any_call(tools: Sequence[Mapping[str, Any]], member: str) -> dict[str, Any]:
    """The schema of one call under `member`, and beside it the definitions that it refers to."""
    definitions: dict[str, Any] = {}
    calls = []
    for number, tool in enumerate(tools):
        schema = parameters_of(tool)
        if _refers(schema):
            # References are paths from the root of a document, which this schema no longer is.
            place = f"tool_{number}"
            definitions[place] = _moved(schema, f"#/$defs/{place}")
            schema = {"$ref": f"#/$defs/{place}"}
        calls.append(
            {
                "type": "object",
                "properties": {"name": {"const": name_of(tool)}, "parameters": schema},
                "required": ["name", "parameters"],
                "additionalProperties": False,
            }
        )
    made: dict[str, Any] = {member: calls[0] if len(calls) == 1 else {"anyOf": calls}}
    return made | {"$defs": definitions} if definitions else made


def _refers(schema: object) -> bool:
    if isinstance(schema, Mapping):
        reference = schema.get("$ref")
        return (isinstance(reference, str) and reference.startswith("#")) or any(map(_refers, schema.values()))
    return isinstance(schema, list) and any(map(_refers, schema))


def _moved(schema: object, root: str) -> Any:  # noqa: ANN401 - any JSON value
    """The schema with its references leading to where it stands now."""
    if isinstance(schema, Mapping):
        return {
            key: root + value[1:]
            if key == "$ref" and isinstance(value, str) and value.startswith("#")
            else _moved(value, root)
            for key, value in schema.items()
        }
    return [_moved(one, root) for one in schema] if isinstance(schema, list) else schema
