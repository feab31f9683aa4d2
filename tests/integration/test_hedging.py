"""A second replica is asked when the first token is late, if the model wants it (`hedge: p95`)."""

import asyncio
from collections.abc import Mapping

import pytest

from gateway.balance.endpoint import EndpointState
from tests.integration.conftest import Gateway
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, deltas, vllm_error
from tests.support.scripted import ScriptedEngine, Talk, reply, silent, stream
from tests.support.serving import Serving
from tests.support.waiting import until

QUICK = stream(*deltas("a"), DONE)
PATIENCE = 0.5
ENOUGH = 20
"""Streams after which a first token can be late."""


def two(one: ScriptedEngine, other: ScriptedEngine, hedge: str | None = "p95", **more: Json) -> dict[str, Json]:
    """Two replicas that take turns."""
    return {
        "engines": {"e": {"kind": "vllm", "urls": [one.url, other.url]}},
        "models": {"m": {"engine": "e", "model": "org/m", "policy": "round_robin", "hedge": hedge}},
        **more,
    }


async def die(talk: Talk) -> None:
    """Dies with the head of its answer."""
    await talk.start_stream()
    talk.fin()


async def ask(serving: Serving, body: Mapping[str, Json] = STREAM) -> Answer:
    async with await serving.connect() as client:
        await client.post(CHAT, dict(body))
        return await client.answer()


async def learn(serving: Serving, *engines: ScriptedEngine) -> None:
    """Streams that begin quickly, so that the next one that does not is late."""
    for one in engines:
        one.answer(QUICK)
    for _ in range(ENOUGH):
        assert (await ask(serving)).status == 200
    for one in engines:
        one.requests.clear()
        one.talks.clear()


def held(talks: list[Talk], go: asyncio.Event) -> Json:
    """An answer that begins when it may."""

    async def script(talk: Talk) -> None:
        talks.append(talk)
        await go.wait()
        await QUICK(talk)

    return script


async def test_the_second_replica_serves_when_the_first_token_is_late(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    serving = await gateway(two(engine, other))
    await learn(serving, engine, other)
    engine.answer(silent)
    answer = await ask(serving)
    talk = await engine.request()

    assert answer.events[-1] == b"[DONE]"
    assert answer.header("x-turnout-attempts") == "2"
    await until(talk.left.is_set, what="the end of the other's request")
    ids = {one.requests[0].header("x-request-id") for one in (engine, other)}
    assert len(ids) == 2
    await serving.settled()
    assert serving.outcomes() == {"served": ENOUGH + 1}
    assert serving.retries() == {"hedge": 1}
    assert [one.state for one in serving.plane.endpoints] == [EndpointState.UNKNOWN] * 2
    assert {one.breaker.streak for one in serving.plane.endpoints} == {0}  # it blames nobody


async def test_the_first_replica_may_still_be_first(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    serving = await gateway(two(engine, other))
    await learn(serving, engine, other)
    talks: list[Talk] = []
    go = asyncio.Event()
    engine.answer(held(talks, go))
    other.answer(silent)
    asking = asyncio.ensure_future(ask(serving))
    late = await other.request()
    go.set()
    answer = await asking

    assert answer.events[-1] == b"[DONE]"
    assert answer.header("x-turnout-attempts") == "2"
    await until(late.left.is_set, what="the end of the second request")
    await serving.settled()
    assert {one.breaker.streak for one in serving.plane.endpoints} == {0}


@pytest.mark.parametrize("fails", [reply(vllm_error("no"), status=500), die], ids=["500", "death"])
async def test_a_second_attempt_that_fails_leaves_the_first_alone(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine, fails: Json
) -> None:
    serving = await gateway(two(engine, other))
    await learn(serving, engine, other)
    talks: list[Talk] = []
    go = asyncio.Event()
    engine.answer(held(talks, go))
    other.answer(fails)
    asking = asyncio.ensure_future(ask(serving))
    await other.request()
    second = next(one for one in serving.plane.endpoints if one.port == other.port)
    await until(lambda: second.breaker.streak == 1, what="the failure")
    go.set()
    answer = await asking

    assert answer.events[-1] == b"[DONE]"
    await serving.settled()
    assert (len(engine.requests), len(other.requests)) == (1, 1)


@pytest.mark.parametrize("fails", [reply(vllm_error("no"), status=500), die], ids=["500", "death"])
async def test_when_the_first_fails_the_second_goes_on_and_no_third_is_asked(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine, fails: Json
) -> None:
    serving = await gateway(two(engine, other))
    await learn(serving, engine, other)
    talks: list[Talk] = []
    go, fail = asyncio.Event(), asyncio.Event()
    other.answer(held(talks, go))

    async def fail_late(talk: Talk) -> None:
        await fail.wait()
        await fails(talk)

    engine.answer(fail_late)
    asking = asyncio.ensure_future(ask(serving))
    await other.request()
    fail.set()
    first = next(one for one in serving.plane.endpoints if one.port == engine.port)
    await until(lambda: first.breaker.streak == 1, what="the failure")
    go.set()
    answer = await asking

    assert answer.events[-1] == b"[DONE]"
    assert answer.header("x-turnout-attempts") == "2"
    await serving.settled()
    assert (len(engine.requests), len(other.requests)) == (1, 1)


async def test_when_both_fail_the_client_is_told(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    serving = await gateway(two(engine, other))
    await learn(serving, engine, other)
    fail = asyncio.Event()

    async def fail_late(talk: Talk) -> None:
        await fail.wait()
        await reply(vllm_error("no"), status=500)(talk)

    for one in (engine, other):
        one.answer(fail_late)
    asking = asyncio.ensure_future(ask(serving))
    await engine.request()
    await other.request()
    fail.set()
    answer = await asking

    assert answer.status == 502
    await serving.settled()
    assert (len(engine.requests), len(other.requests)) == (1, 1)


async def test_a_refusal_is_not_waited_out(gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine) -> None:
    """What the first says of the request itself is final, and the second is given up."""
    serving = await gateway(two(engine, other))
    await learn(serving, engine, other)
    refuse = asyncio.Event()

    async def refuse_late(talk: Talk) -> None:
        await refuse.wait()
        await reply(vllm_error("no", 400), status=400)(talk)

    engine.answer(refuse_late)
    other.answer(silent)
    asking = asyncio.ensure_future(ask(serving))
    second = await other.request()
    refuse.set()

    assert (await asking).status == 400
    await until(second.left.is_set, what="the end of the second request")
    await serving.settled()


async def test_a_client_that_leaves_ends_both(gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine) -> None:
    serving = await gateway(two(engine, other))
    await learn(serving, engine, other)
    for one in (engine, other):
        one.answer(silent)
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM)
        talks = [await engine.request(), await other.request()]
    for talk in talks:
        await until(talk.left.is_set, what="the end of the engine's request")
    await serving.settled()
    assert serving.outcomes() == {"served": ENOUGH, "client_gone": 1}


async def test_nothing_is_hedged_after_the_first_token(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    serving = await gateway(two(engine, other))
    await learn(serving, engine, other)
    first_tokens = serving.plane.asked["m"].hedge
    assert first_tokens is not None
    for _ in range(256):
        first_tokens.note(PATIENCE)
    begin, go = asyncio.Event(), asyncio.Event()
    first, *rest = deltas("a", "b")

    async def slow(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(first, rest[0])
        begin.set()
        await go.wait()
        await talk.chunk(*rest[1:], DONE)
        await talk.end_chunks()

    engine.answer(slow)
    asking = asyncio.ensure_future(ask(serving))
    await begin.wait()
    began = serving.plane.loop.time()
    await until(lambda: serving.plane.loop.time() > began + 2 * PATIENCE, what="more than the patience")
    go.set()

    assert (await asking).header("x-turnout-attempts") == "1"
    assert other.requests == []
    await serving.settled()


@pytest.mark.parametrize(("hedge", "body"), [(None, STREAM), ("p95", HELLO)], ids=["off", "whole answer"])
async def test_without_the_setting_and_for_whole_answers_nobody_else_is_asked(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine, hedge: str | None, body: Json
) -> None:
    settings = two(engine, other, hedge)
    settings["models"]["m"]["timeouts"] = {"first_token": 0.5}
    serving = await gateway(settings)
    await learn(serving, engine, other)
    engine.answer(silent)

    assert (await ask(serving, body)).status == 504
    assert other.requests == []
    await serving.settled()


async def test_hedges_are_paid_for_by_the_retry_budget(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """Ten a second are always granted; sixty at once are not all doubled."""
    serving = await gateway(two(engine, other, retry={"budget": "0%"}))
    await learn(serving, engine, other)
    go = asyncio.Event()
    talks: list[Talk] = []
    for one in (engine, other):
        one.answer(held(talks, go))
    asking = [asyncio.ensure_future(ask(serving)) for _ in range(60)]
    await until(lambda: len(talks) >= 70, what="the hedges")
    go.set()
    answers = await asyncio.gather(*asking)

    assert {answer.status for answer in answers} == {200}
    assert len(talks) <= 60 + 25
    await serving.settled()
