"""A replica that starts or comes back serves only after one small request of the gateway's own (`health.warm_up`)."""

import asyncio
from collections.abc import Mapping

import pytest

from gateway.balance.endpoint import Endpoint, EndpointState
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, EMBEDDINGS, HELLO, completion, vllm_error
from tests.support.scripted import ScriptedEngine, Talk, hang_up, reply
from tests.support.serving import Serving
from tests.support.waiting import until

ANSWER = reply(completion(model="org/m"))
WARM: Mapping[str, Json] = {"health": {"interval": 0.2, "warm_up": True}}


async def ask(serving: Serving, body: Mapping[str, Json] = HELLO) -> Answer:
    async with await serving.connect() as client:
        await client.post(CHAT, dict(body))
        return await client.answer()


def only(serving: Serving) -> Endpoint:
    (endpoint,) = serving.plane.endpoints
    return endpoint


async def up(serving: Serving) -> None:
    await until(lambda: only(serving).state is EndpointState.UP, what="an endpoint that is up")


def warm_ups(engine: ScriptedEngine) -> list[Json]:
    return [one.json for one in engine.requests if b"ping" in one.body]


async def test_nobody_is_served_before_the_first_request_is_answered(gateway: Gateway, engine: ScriptedEngine) -> None:
    warm = asyncio.Event()

    async def first_is_slow(talk: Talk) -> None:
        await warm.wait()
        await ANSWER(talk)

    engine.answer(first_is_slow)
    serving = await gateway(one_engine(engine, **WARM), whole=True)
    await engine.request()
    answer = await ask(serving)
    assert (answer.status, answer.error["code"]) == (503, "engine_unavailable")
    assert only(serving).reason == "it is not warmed up yet"
    warm.set()
    await up(serving)

    assert (await ask(serving)).status == 200
    assert warm_ups(engine) == [{"model": "org/m", "messages": [{"role": "user", "content": "ping"}], "max_tokens": 1}]
    await serving.settled()


async def test_a_replica_that_comes_back_is_warmed_up_again(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(ANSWER)
    serving = await gateway(one_engine(engine, **WARM), whole=True)
    await up(serving)
    engine.on("/health", reply(b"", status=503))
    await until(lambda: only(serving).state is EndpointState.DOWN, what="an endpoint that is down")
    engine.on("/health", reply(b""))
    await up(serving)

    assert len(warm_ups(engine)) == 2


@pytest.mark.parametrize(
    ("script", "why"), [(reply(b"", status=500), "status 500"), (hang_up, "no HTTP answer")], ids=["500", "death"]
)
async def test_a_replica_that_cannot_be_warmed_up_stays_out_and_is_tried_again(
    gateway: Gateway, engine: ScriptedEngine, script: Json, why: str
) -> None:
    engine.answer(script)
    serving = await gateway(one_engine(engine, **WARM), whole=True)
    await engine.request(2)
    await until(lambda: why in only(serving).reason, what="the reason")
    assert only(serving).state is EndpointState.DOWN
    engine.answer(ANSWER)

    await up(serving)


async def test_a_refusal_is_an_answer(gateway: Gateway, engine: ScriptedEngine) -> None:
    """The engine works; what it does not have, clients are told."""
    engine.answer(reply(vllm_error("no such model", 404), status=404))
    serving = await gateway(one_engine(engine, **WARM), whole=True)

    await up(serving)


async def test_an_engine_of_embeddings_is_asked_for_a_vector(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.on(EMBEDDINGS, reply({"object": "list", "data": []}))
    settings = {
        "engines": {"e": {"kind": "vllm", "urls": [engine.url], **WARM}},
        "models": {"v": {"engine": "e", "model": "org/v", "task": "embedding"}},
    }
    serving = await gateway(settings, whole=True)
    await up(serving)

    assert warm_ups(engine) == [{"model": "org/v", "input": "ping"}]


async def test_without_the_setting_nothing_is_asked(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(ANSWER)
    serving = await gateway(one_engine(engine, health={"interval": 0.2}), whole=True)
    await up(serving)

    assert warm_ups(engine) == []


async def test_who_switches_it_off_waits_for_nothing_any_more(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(reply(b"", status=500))
    settings = one_engine(engine, **WARM)
    serving = await gateway(settings, whole=True)
    await engine.request()
    assert only(serving).cold
    settings["engines"]["e"]["health"] = {"interval": 0.2}
    serving.apply(settings)

    await up(serving)
