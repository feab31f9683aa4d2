"""Answers held to a JSON schema, as an engine's grammar holds its model.

Recordings `chat_json_schema`, `think_json_schema`.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from engines.simulator.script import Answer, Thought, example


def held(answer: Answer, response_format: object) -> Answer:
    """The answer, if it keeps to the schema that the request gives; else one that does.

    Recorded answers (`Answer.pieces`) stay as they are, and so does everything where no schema is given.
    """
    schema = _schema(response_format)
    if schema is None or answer.pieces:
        return answer
    thoughts = tuple(part for part in answer.segments if isinstance(part, Thought))
    said = "".join(part for part in answer.segments if isinstance(part, str))
    try:
        value = json.loads(said)
    except ValueError:
        value = None
    if value is not None and _fits(value, schema):
        return answer
    return replace(answer, segments=(*thoughts, json.dumps(example(schema), ensure_ascii=False)))


def _schema(response_format: object) -> Mapping[str, object] | None:
    if not isinstance(response_format, Mapping):
        return None
    inner = response_format.get("json_schema")
    found = inner.get("schema") if isinstance(inner, Mapping) else response_format.get("schema")
    return found if isinstance(found, Mapping) else None


def _fits(value: object, schema: Mapping[str, object]) -> bool:
    """Whether a value keeps to type, enum, const, properties and required, as `example` does."""
    if "const" in schema and value != schema["const"]:
        return False
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        return False
    if schema.get("type") in _TYPES and not isinstance(value, _TYPES[str(schema["type"])]):
        return False
    properties = schema.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, Mapping):
        return True
    required = schema.get("required")
    if not set(required if isinstance(required, list) else ()) <= value.keys():
        return False
    if schema.get("additionalProperties") is False and not value.keys() <= properties.keys():
        return False
    return all(_fits(value[name], inner) for name, inner in properties.items() if name in value)


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}
