"""What happens to requests while Redis is asked whether they may pass: each place is given back once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.app import Gateway as RunningGateway
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.keys import bearer, key_entry
from tests.support.openai_bytes import CHAT, HELLO, completion
from tests.support.redis_server import RedisServer
from tests.support.scripted import ScriptedEngine, reply
from tests.support.serving import Serving
from tests.support.waiting import until


@pytest.fixture
async def redis(tmp_path: Path) -> AsyncIterator[RedisServer]:
    server = RedisServer(tmp_path)
    await server.start()
    yield server
    await server.stop()


def settings(engine: ScriptedEngine, server: RedisServer) -> dict[str, Json]:
    return one_engine(engine) | {
        "keys": [key_entry("team-a", "sk-a", limits={"parallel": 2, "tpm": 100_000})],
        "state": {"redis": server.url},
    }


def running(serving: Serving) -> list[int]:
    guard = serving.plane.guard
    assert guard is not None
    return [account.running for account in guard.limiter.accounts]


def requests(serving: Serving) -> int:
    return sum(row.requests for row in serving.meters.usage)


def up(serving: Serving) -> bool:
    assert isinstance(serving._source, RunningGateway)
    return serving._source.shared.availability.up


async def ask(serving: Serving) -> Answer:
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO, bearer("sk-a"))
        return await client.answer()


async def ask_and_leave(serving: Serving) -> None:
    """Leaves as soon as the gateway has begun with it."""
    begun = serving.plane.ids._next
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO, bearer("sk-a"))
        await until(lambda: serving.plane.ids._next > begun, what="the request")


@pytest.mark.parametrize("then", ["away", "other settings", "no Redis any more"])
async def test_clients_that_leave_before_redis_has_answered_leave_no_place_taken(
    gateway: Gateway, engine: ScriptedEngine, redis: RedisServer, then: str
) -> None:
    """Whatever the answer is, and whichever configuration is in force when it comes."""
    engine.answer(reply(completion()))
    serving = await gateway(settings(engine, redis), whole=True)
    assert (await ask(serving)).status == 200
    paused = asyncio.ensure_future(redis.command("CLIENT", "PAUSE", "1000", "ALL"))
    for _ in range(2):
        await ask_and_leave(serving)
    if then == "other settings":
        serving.apply(settings(engine, redis) | {"retry": {"attempts": 2}})
    elif then == "no Redis any more":
        serving.apply({name: one for name, one in settings(engine, redis).items() if name != "state"})
    await until(lambda: requests(serving) == 3, what="the end of both permits")
    await paused
    if then != "no Redis any more":
        await until(lambda: up(serving), what="Redis")
    assert set(running(serving)) == {0}
    assert [(await ask(serving)).status for _ in range(3)] == [200] * 3
    await serving.settled()
