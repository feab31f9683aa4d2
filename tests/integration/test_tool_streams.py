"""Streams of tool calls that engines tell in odd ways, over real sockets, as the OpenAI SDK puts them together."""

import json

import pytest

from tests.integration.conftest import Gateway, one_engine
from tests.support.agent import READERS, TIME, WEATHER, Said
from tests.support.client import Client
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, DONE, STREAM, delta, event
from tests.support.scripted import ScriptedEngine, stream
from tests.support.sdk import openai_client

STREAMED = {name: read for name, read in READERS.items() if name != "whole"}
PARIS = ("get_weather", {"city": "Paris"})
OSLO = ("get_weather", {"city": "Oslo"})
NOW = ("get_time", {"zone": "UTC"})


def part(index: int, arguments: str | None = None, name: str | None = None, call_id: str | None = None) -> Json:
    """One entry of `tool_calls` in a delta."""
    function = ({} if name is None else {"name": name}) | ({} if arguments is None else {"arguments": arguments})
    opener = {} if call_id is None else {"id": call_id, "type": "function"}
    return {"index": index, **opener, "function": function}


def calling(*deltas: list[Json]) -> list[bytes]:
    """A stream with one event for each list of entries."""
    told = [event(delta("", role="assistant"))]
    for entries in deltas:
        one = delta()
        one["choices"][0]["delta"] = {"tool_calls": entries}
        told.append(event(one))
    return [*told, event(delta(finish="tool_calls")), DONE]


CLEAN = calling(
    [part(0, "", "get_weather", "call_a")],
    [part(0, '{"city": ')],
    [part(0, '"Paris"}')],
    [part(1, "", "get_weather", "call_b")],
    [part(1, '{"city": "Oslo"}')],
    [part(2, "", "get_time", "call_c")],
    [part(2, '{"zone": "UTC"}')],
)
INTERLEAVED = calling(
    [part(0, "", "get_weather", "call_a")],
    [part(1, "", "get_weather", "call_b")],
    [part(0, '{"city": ')],
    [part(1, '{"city": "O')],
    [part(0, '"Paris"}')],
    [part(1, 'slo"}')],
)
AT_ONCE = calling(
    [part(0, '{"city": "Paris"}', "get_weather", "call_a"), part(1, '{"city": "Oslo"}', "get_weather", "call_b")],
)
ONE_INDEX = calling(
    [part(0, '{"city": "Paris"}', "get_weather", "call_a")],
    [part(0, '{"city": "Oslo"}', "get_weather", "call_b")],
)
NAME_LATER = calling(
    [part(0, "", "", "call_a")],
    [part(0, None, "get_weather")],
    [part(0, '{"city": "Paris"}')],
)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (CLEAN, [PARIS, OSLO, NOW]),
        (INTERLEAVED, [PARIS, OSLO]),
        (AT_ONCE, [PARIS, OSLO]),
        (ONE_INDEX, [PARIS, OSLO]),
        (NAME_LATER, [PARIS]),
    ],
    ids=["clean", "interleaved", "in one delta", "one index for two", "a name that comes later"],
)
async def test_each_call_keeps_its_id_its_name_and_its_arguments(
    gateway: Gateway, engine: ScriptedEngine, events: list[bytes], expected: list[tuple[str, Json]]
) -> None:
    """However the engine tells them apart: no two calls become one, none is lost, none gets another's arguments."""
    engine.answer(stream(*events))
    async with openai_client(await gateway(one_engine(engine))) as client:
        for read in STREAMED.values():
            said: Said = await read(client, tools=[WEATHER, TIME])
            assert said.arguments == expected
            assert said.ids == ["call_a", "call_b", "call_c"][: len(expected)]
            assert said.finish == "tool_calls"


async def test_a_stream_of_calls_that_is_right_keeps_its_bytes(client: Client, engine: ScriptedEngine) -> None:
    """Nothing is put together and cut again."""
    engine.answer(stream(*(one.replace(b"org/m", b"same") for one in CLEAN)))
    await client.post(CHAT, STREAM | {"model": "same", "tools": [WEATHER, TIME]})
    answer = await client.answer()

    assert answer.body == b"".join(CLEAN).replace(b"org/m", b"same")


async def test_no_name_is_made_up(client: Client, engine: ScriptedEngine) -> None:
    """A call whose name never comes is no call that a client could make."""
    engine.answer(stream(*calling([part(0, "", "", "call_a")], [part(0, '{"city": "Paris"}')])))
    await client.post(CHAT, STREAM | {"tools": [WEATHER]})
    answer = await client.answer()

    names = [
        call["function"].get("name")
        for one in answer.events[:-1]
        for choice in json.loads(one)["choices"]
        for call in choice["delta"].get("tool_calls") or ()
    ]
    assert "get_weather" not in names
