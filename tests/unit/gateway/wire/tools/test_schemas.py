"""Schemas that hold a model to calls."""

from gateway.wire.tools.schemas import list_of_calls, union_tool
from tests.support.json_type import Json
from tests.unit.gateway.wire.tools.asking import TIME, TOOLS, WEATHER
from tests.unit.gateway.wire.tools.valid import Schema

TREE: Json = {
    "type": "function",
    "function": {
        "name": "plant",
        "parameters": {
            "type": "object",
            "properties": {"tree": {"$ref": "#/$defs/Tree"}, "whole": {"$ref": "#"}},
            "required": ["tree"],
            "$defs": {
                "Tree": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "twigs": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
                    },
                    "required": ["name"],
                    "additionalProperties": False,
                }
            },
        },
    },
}


def call(name: str, **parameters: Json) -> Json:
    return {"name": name, "parameters": parameters}


def test_a_list_of_calls() -> None:
    schema = Schema(list_of_calls(TOOLS, several=True))

    assert schema([call("get_weather", city="Paris"), call("get_time")])
    assert not schema([])
    assert not schema([call("other")])
    assert not schema([call("get_weather", city=1)])
    assert not schema([{"name": "get_time"}])


def test_one_call_only() -> None:
    schema = Schema(list_of_calls(TOOLS, several=False))

    assert schema([call("get_time")])
    assert not schema([call("get_time"), call("get_time")])


def test_references_lead_to_where_their_schemas_have_gone() -> None:
    """Also those of a schema to itself, and of two tools to definitions of the same name."""
    other: Json = {
        "type": "function",
        "function": {
            "name": "count",
            "parameters": {
                "type": "object",
                "properties": {"tree": {"$ref": "#/$defs/Tree"}},
                "$defs": {"Tree": {"type": "integer"}},
            },
        },
    }
    for tools in ([TREE], [WEATHER, TREE], [TREE, other]):
        made = list_of_calls(tools, several=True)
        schema = Schema(made)
        assert schema([call("plant", tree={"name": "a", "twigs": [{"name": "b"}]})])
        assert schema([call("plant", tree={"name": "a"}, whole={"tree": {"name": "b"}})])
        assert not schema([call("plant", tree={"name": "a", "twigs": [{"nam": "b"}]})])
        assert not schema([call("plant", tree={"name": "a"}, whole={"tree": 1})])
        assert schema([call("count", tree=1)]) is (other in tools)


def test_one_tool_for_all() -> None:
    function = union_tool([WEATHER, TREE, TIME])["function"]
    schema = Schema(function["parameters"])

    assert schema(call("get_weather", city="Paris"))
    assert schema(call("plant", tree={"name": "a"}))
    assert not schema(call("plant", tree={}))
    assert not schema({})


def test_its_name_is_no_other_tools() -> None:
    taken: Json = {"type": "function", "function": {"name": "call_tool"}}

    assert union_tool([taken])["function"]["name"] == "call_tool_"
    assert union_tool([TIME])["function"]["name"] == "call_tool"
