"""One model on engines of several kinds: whose dialect a request is put into, and who refuses it."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from engines.profile import EngineKind
from engines.simulator import SimulatedModel, build_app, start
from tests.integration.conftest import Gateway
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, HELLO, completion
from tests.support.scripted import ScriptedEngine, Talk, hang_up, reply
from tests.support.waiting import until


@pytest.fixture
async def stack() -> AsyncIterator[contextlib.AsyncExitStack]:
    async with contextlib.AsyncExitStack() as opened:
        yield opened


async def asked_in_turn(
    gateway: Gateway, stack: contextlib.AsyncExitStack, **more: Json
) -> list[tuple[str, int, str | None, str | None]]:
    """Engine, status, refused parameter and dropped ones of four requests to a vLLM and a Triton in turn."""
    running = {}
    for kind in (EngineKind.VLLM, EngineKind.TRITON):
        running[kind] = await start(build_app(kind, [SimulatedModel("tiny")]))
        stack.push_async_callback(running[kind].stop)
    serving = await gateway(
        {
            "engines": {kind.value: {"kind": kind.value, "urls": [engine.url]} for kind, engine in running.items()},
            "models": {
                "m": {
                    "targets": [{"engine": kind.value, "model": "tiny"} for kind in running],
                    "policy": "round_robin",
                }
            },
        }
    )
    heard = []
    async with await serving.connect() as client:
        for _ in range(4):
            await client.post(CHAT, HELLO | more)
            answer = await client.answer()
            error = json.loads(answer.body).get("error") or {}
            engine = answer.header("x-turnout-engine") or ""
            heard.append((engine, answer.status, error.get("param"), answer.header("x-turnout-dropped")))
    return heard


async def test_the_chosen_target_s_table_counts(gateway: Gateway, stack: contextlib.AsyncExitStack) -> None:
    """What one engine needs dropped is passed to the other."""
    heard = await asked_in_turn(gateway, stack, store=True)
    assert set(heard) == {("vllm", 200, None, None), ("triton", 200, None, "store")}


@pytest.mark.parametrize(
    "wish",
    [
        {"logit_bias": {"5": 1}},
        {"response_format": {"type": "json_object"}},
        {"messages": [{"role": "system", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
    ],
    ids=lambda wish: next(iter(wish)),
)
async def test_a_target_that_can_serve_the_request_is_found(
    wish: dict[str, Json], gateway: Gateway, stack: contextlib.AsyncExitStack
) -> None:
    """What Triton's table refuses goes to the vLLM, whichever had its turn."""
    heard = await asked_in_turn(gateway, stack, **wish)
    assert {engine for engine, _, _, _ in heard} == {"vllm"}


async def test_a_refusal_is_the_answer_when_no_target_can_serve(
    gateway: Gateway, stack: contextlib.AsyncExitStack
) -> None:
    """It names the parameter as the first target that was chosen does."""
    heard = await asked_in_turn(gateway, stack, audio={"voice": "alloy", "format": "wav"})
    assert {(status, param) for _, status, param, _ in heard} == {(400, "audio")}


def mixed(fit: ScriptedEngine, unfit: ScriptedEngine, **more: Json) -> dict[str, Json]:
    """Settings of a model on a vLLM that takes `logit_bias` and a Triton that does not."""
    return {
        "engines": {
            "fit": {"kind": "vllm", "urls": [fit.url], **more},
            "unfit": {"kind": "triton", "urls": [unfit.url]},
        },
        "models": {"m": {"targets": [{"engine": "fit"}, {"engine": "unfit"}], "policy": "round_robin"}},
    }


BIASED = HELLO | {"logit_bias": {"5": 1}}


async def test_a_target_that_would_refuse_is_no_refuge(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """While the only target that can serve the request fails, it is that target's failure that is told, not a 400."""
    serving = await gateway(mixed(engine, other))
    engine.answer(hang_up)
    other.answer(reply(completion()))
    async with await serving.connect() as client:
        for _ in range(4):
            await client.post(CHAT, BIASED)
            answer = await client.answer()
            assert answer.status in (502, 503)
    assert other.requests == []


async def test_a_target_without_room_is_waited_for(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """The request does not go to the target that has room and would refuse it."""
    serving = await gateway(mixed(engine, other, max_in_flight=1))
    release = asyncio.Event()

    async def held(talk: Talk) -> None:
        await release.wait()
        await reply(completion())(talk)

    engine.answer(held)
    async with await serving.connect() as first, await serving.connect() as second:
        await first.post(CHAT, BIASED)
        await engine.request(1)
        await second.post(CHAT, BIASED)
        await until(lambda: serving.plane.queues["m"].waiting == 1, what="the second request in the queue")
        release.set()
        for client in (first, second):
            assert (await client.answer()).status == 200
    assert other.requests == []
    await serving.settled()


async def test_several_choices_go_to_targets_that_can_serve_them(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """A request that one engine would serve in parts, and refuses for another reason, goes whole to the other."""
    serving = await gateway(mixed(engine, other))
    engine.answer(reply(completion()))
    async with await serving.connect() as client:
        for _ in range(2):
            await client.post(CHAT, BIASED | {"n": 2})
            assert (await client.answer()).status == 200
    assert [request.json["n"] for request in engine.requests] == [2, 2]
    assert other.requests == []
