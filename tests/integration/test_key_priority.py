"""A key's priority: in the queue of the gateway, and at an engine that heeds it."""

import asyncio

import pytest

from tests.integration.conftest import Gateway, one_engine
from tests.support.json_type import Json
from tests.support.keys import bearer, key_entry
from tests.support.openai_bytes import CHAT, EMBEDDINGS, HELLO, completion
from tests.support.scripted import ScriptedEngine, Talk, reply
from tests.support.serving import Serving
from tests.support.waiting import until

KEYS = [
    key_entry("high", "sk-high", priority=50),
    key_entry("plain", "sk-plain"),
    key_entry("low", "sk-low", priority=-3),
]


async def ask(serving: Serving, key: str, body: Json = HELLO, path: str = CHAT) -> int:
    async with await serving.connect() as client:
        await client.post(path, body, bearer(key))
        return (await client.answer()).status


async def test_the_queue_goes_by_the_priority_of_keys(gateway: Gateway, engine: ScriptedEngine) -> None:
    go_on = asyncio.Event()

    async def wait(talk: Talk) -> None:
        await go_on.wait()
        await reply(completion())(talk)

    engine.answer(wait)
    serving = await gateway(one_engine(engine, max_in_flight=1) | {"keys": KEYS})
    order = ["sk-plain", "sk-low", "sk-plain", "sk-high"]
    asked = []
    for number, key in enumerate(order):
        asked.append(asyncio.ensure_future(ask(serving, key, HELLO | {"user": key})))
        await (engine.request() if number == 0 else until(lambda at=number: serving.plane.queues["m"].waiting == at))  # type: ignore[misc]
    go_on.set()
    assert await asyncio.gather(*asked) == [200] * 4

    assert [request.json["user"] for request in engine.requests] == ["sk-plain", "sk-high", "sk-plain", "sk-low"]


@pytest.mark.parametrize(("key", "own", "sent"), [("sk-high", 0, -50), ("sk-low", 0, 3), ("sk-plain", None, None)])
async def test_an_engine_that_heeds_priorities_is_told(
    gateway: Gateway, engine: ScriptedEngine, key: str, own: int | None, sent: int | None
) -> None:
    engine.answer(reply(completion()))
    serving = await gateway(one_engine(engine, priorities=True) | {"keys": KEYS})

    assert await ask(serving, key, HELLO | ({} if own is None else {"priority": own})) == 200
    assert engine.requests[0].json.get("priority") == sent


async def test_a_client_cannot_push_itself_forward(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion()))
    serving = await gateway(one_engine(engine, priorities=True) | {"keys": KEYS})

    assert await ask(serving, "sk-plain", HELLO | {"priority": -1_000}) == 200
    assert engine.requests[0].json["priority"] == 0


async def test_other_engines_and_paths_are_not_told(gateway: Gateway, engine: ScriptedEngine) -> None:
    """vLLM refuses a priority unless it was started for them."""
    engine.answer(reply(completion()))
    engine.on(EMBEDDINGS, reply({"object": "list", "data": [], "model": "org/vectors", "usage": {}}))
    plain = await gateway(one_engine(engine) | {"keys": KEYS})
    ranked = await gateway(one_engine(engine, priorities=True) | {"keys": KEYS})

    assert await ask(plain, "sk-high") == 200
    assert await ask(ranked, "sk-high", {"model": "vectors", "input": "x"}, EMBEDDINGS) == 200
    assert [request.json.get("priority") for request in engine.requests] == [None, None]
