"""One model on engines of several kinds: whose dialect a request is put into, and who refuses it."""

import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from engines.profile import EngineKind
from engines.simulator import SimulatedModel, build_app, start
from tests.integration.conftest import Gateway
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, HELLO


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


async def test_a_refusal_of_the_chosen_target_is_the_answer(gateway: Gateway, stack: contextlib.AsyncExitStack) -> None:
    """Targets are chosen by load and weight, whatever the parameters; no other target is asked instead."""
    heard = await asked_in_turn(gateway, stack, logit_bias={"5": 1})
    assert sorted(status for _, status, _, _ in heard) == [200, 200, 400, 400]
    assert {param for _, status, param, _ in heard if status == 400} == {"logit_bias"}
