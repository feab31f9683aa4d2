"""Types from JSON Schemas as tools write them."""

from typing import Any

import pytest

from gateway.wire.toolcalls.schema import ANY, coerced, element, kinds_of, member
from gateway.wire.toolcalls.tools import Offer

ROOT: dict[str, Any] = {
    "$defs": {"Loop": {"$ref": "#/$defs/Loop"}, "Int": {"type": "integer"}, "a/b": {"type": "boolean"}},
    "definitions": {"Old": {"type": "array", "items": {"type": "string"}}},
}


@pytest.mark.parametrize(
    ("schema", "kinds"),
    [
        ({"type": "string"}, {"string"}),
        ({"type": ["integer", "null"]}, {"integer", "null"}),
        ({"type": "STRING"}, {"string"}),
        ({"type": "float"}, {"number"}),
        ({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Int"}]}, {"string", "integer"}),
        ({"oneOf": [{"type": "boolean"}, {"enum": ["x", None]}]}, {"boolean", "string", "null"}),
        ({"anyOf": [{"type": "string"}, {}]}, ANY),
        ({"allOf": [{"type": "integer"}, {"minimum": 1}]}, {"integer"}),
        ({"allOf": [{"type": ["integer", "string"]}, {"type": ["string", "null"]}]}, {"string"}),
        ({"enum": [1, 2.5, True]}, {"integer", "number", "boolean"}),
        ({"const": {"a": 1}}, {"object"}),
        ({"properties": {}}, {"object"}),
        ({"items": {}}, {"array"}),
        ({"type": "integer", "nullable": True}, {"integer", "null"}),
        ({"$ref": "#/$defs/Int"}, {"integer"}),
        ({"$ref": "#/$defs/a~1b"}, {"boolean"}),
        ({"$ref": "#/definitions/Old"}, {"array"}),
        ({"$ref": "#/$defs/Loop"}, ANY),
        ({"$ref": "#/nowhere"}, ANY),
        ({"$ref": "http://elsewhere"}, ANY),
        ({}, ANY),
        (True, ANY),
        ({"type": "mystery"}, ANY),
    ],
)
def test_the_kinds_that_a_schema_allows(schema: object, kinds: set[str]) -> None:
    """References, unions, lists, enums and constants are followed; loops end."""
    assert kinds_of(schema, ROOT) == frozenset(kinds)


def test_members_and_elements_are_found_through_unions() -> None:
    """And additional properties have their schema."""
    schema = {"anyOf": [{"type": "null"}, {"properties": {"a": {"type": "integer"}}}]}
    assert member(schema, "a", ROOT) == {"type": "integer"}
    assert member({"additionalProperties": {"type": "string"}}, "x", ROOT) == {"type": "string"}
    assert member({"additionalProperties": False}, "x", ROOT) is None
    assert element({"anyOf": [{"$ref": "#/definitions/Old"}, {"type": "null"}]}, ROOT) == {"type": "string"}
    assert element({}, ROOT) is None


def test_a_value_never_becomes_invalid_json() -> None:
    """Huge numbers and deep nesting included."""
    assert coerced("9" * 5000, frozenset({"integer"})) == '"' + "9" * 5000 + '"'
    assert coerced("1e999", frozenset({"number"})) == "1e999"
    assert coerced("[" * 100_000, ANY).startswith('"[')
    assert coerced("(1, 2)", frozenset({"array"})) == "[1, 2]"
    assert coerced("__import__('os')", frozenset({"array"})).startswith('"__import__')


def test_tools_are_taken_as_clients_send_them() -> None:
    """OpenAI's form, bare functions, without parameters; what is neither is passed over."""
    offer = Offer(
        [
            {"type": "function", "function": {"name": "a", "parameters": {"properties": {"x": {"type": "string"}}}}},
            {"name": "b", "input_schema": {"properties": {"y": {"type": "integer"}}}},
            {"type": "function", "function": {"name": "c", "parameters": None}},
            {"type": "web_search"},
            "nonsense",
            {"function": {"name": 3}},
        ]
    )
    assert offer.names == ("a", "b", "c")
    assert offer.kinds("a", "x") == {"string"}
    assert offer.kinds("b", "y") == {"integer"}
    assert offer.kinds("c", "z") == ANY
    assert offer.positions("a") == ("x",)
    assert not offer.takes("d")
    assert Offer(None).takes("d")
    assert Offer([]).nothing
    assert not Offer(None).nothing
