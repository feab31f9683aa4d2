"""Limits that several gateways share through a real Redis."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.app import Gateway as RunningGateway
from gateway.background.shared.store import SharedAccounts
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.keys import KEY, bearer, key_entry
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, completion, deltas
from tests.support.redis_server import RedisServer
from tests.support.scripted import ScriptedEngine, Talk, reply, silent, stream
from tests.support.serving import Serving
from tests.support.waiting import until

USAGE = {"prompt_tokens": 300, "completion_tokens": 200, "total_tokens": 500}


@pytest.fixture
async def redis(tmp_path: Path) -> AsyncIterator[RedisServer]:
    server = RedisServer(tmp_path)
    await server.start()
    yield server
    await server.stop()


def settings(engine: ScriptedEngine, server: RedisServer, own: Json, **state: Json) -> dict[str, Json]:
    return one_engine(engine) | {
        "keys": [key_entry("team-a", limits=own), key_entry("free", "sk-free")],
        "state": {"redis": server.url, **state},
    }


def shared(serving: Serving) -> SharedAccounts:
    source = serving._source
    assert isinstance(source, RunningGateway)
    return source.shared


async def ask(serving: Serving, body: Json = HELLO, key: str = KEY) -> Answer:
    async with await serving.connect() as client:
        await client.post(CHAT, body, bearer(key))
        return await client.answer()


async def test_gateways_share_one_allowance(gateway: Gateway, engine: ScriptedEngine, redis: RedisServer) -> None:
    engine.answer(reply(completion()))
    one = await gateway(settings(engine, redis, {"rpm": 5}), whole=True)
    other = await gateway(settings(engine, redis, {"rpm": 5}), whole=True)

    answers = [await ask((one, other)[turn % 2]) for turn in range(7)]
    assert [answer.status for answer in answers] == [200] * 5 + [429] * 2
    assert [answer.header("x-ratelimit-remaining-requests") for answer in answers[:5]] == ["4", "3", "2", "1", "0"]
    assert answers[-1].header("x-ratelimit-remaining-requests") == "0"
    assert answers[-1].header("retry-after") == "12"
    assert 11_000 < int(answers[-1].header("retry-after-ms") or 0) <= 12_000


async def test_tokens_are_reserved_and_settled_for_all(
    gateway: Gateway, engine: ScriptedEngine, redis: RedisServer
) -> None:
    engine.answer(reply(completion(usage=USAGE)))
    one = await gateway(settings(engine, redis, {"tpm": 1_000}), whole=True)
    other = await gateway(settings(engine, redis, {"tpm": 1_000}), whole=True)

    body = HELLO | {"max_tokens": 5}
    first, second = await ask(one, body), await ask(other, body)
    await until(lambda: not shared(one).unsettled and not shared(other).unsettled)
    third = await ask(one, body)
    assert [first.status, second.status, third.status] == [200, 200, 429]
    assert int(first.header("x-ratelimit-remaining-tokens") or 0) > 900


async def test_requests_at_once_are_counted_over_all_gateways(
    gateway: Gateway, engine: ScriptedEngine, redis: RedisServer
) -> None:
    go_on = asyncio.Event()

    async def wait(talk: Talk) -> None:
        await go_on.wait()
        await reply(completion())(talk)

    engine.answer(wait)
    both = [await gateway(settings(engine, redis, {"parallel": 3}), whole=True) for _ in range(2)]
    waiting = [asyncio.ensure_future(ask(both[turn % 2])) for turn in range(12)]
    await engine.request(3)
    await until(lambda: sum(one.done() for one in waiting) == 9)
    assert len(engine.requests) == 3
    go_on.set()
    statuses = sorted(answer.status for answer in await asyncio.gather(*waiting))
    assert statuses == [200] * 3 + [429] * 9
    await until(lambda: not any(shared(one).unsettled for one in both))
    assert [(await ask(one)).status for one in both] == [200, 200]


async def test_budgets_are_shared_and_end_at_midnight(
    gateway: Gateway, engine: ScriptedEngine, redis: RedisServer
) -> None:
    engine.answer(reply(completion(usage=USAGE)))
    both = [await gateway(settings(engine, redis, {"tokens_per_day": 1_000}), whole=True) for _ in range(2)]

    answers = []
    for turn in range(3):
        answers.append(await ask(both[turn % 2]))
        await until(lambda: not any(shared(one).unsettled for one in both))
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert answers[-1].error["code"] == "insufficient_quota"
    assert 0 < int(answers[-1].header("retry-after") or 0) <= 86_400


async def readiness(serving: Serving) -> dict[str, Json]:
    async with await serving.connect() as client:
        await client.send(b"GET /readyz HTTP/1.1\r\nhost: g\r\n\r\n")
        found: dict[str, Json] = (await client.answer()).json
        return found


@pytest.mark.parametrize("policy", ["open", "closed"])
async def test_redis_dies_and_comes_back(
    gateway: Gateway, engine: ScriptedEngine, redis: RedisServer, policy: str
) -> None:
    """Open: each process holds the limits by itself. Closed: what is limited is refused, and nothing else."""
    engine.answer(reply(completion()))
    serving = await gateway(settings(engine, redis, {"rpm": 3}, when_away=policy), whole=True)
    assert (await ask(serving)).status == 200
    redis.kill()
    await until(lambda: not shared(serving).availability.up)

    answers = [await ask(serving) for _ in range(4)]
    found = await readiness(serving)
    assert found["status"] == "degraded"
    assert found["reasons"][0].startswith(f"redis: away (127.0.0.1:{redis.port}: ")
    assert (await ask(serving, key="sk-free")).status == 200
    if policy == "open":
        assert [answer.status for answer in answers] == [200, 200, 200, 429]
    else:
        assert [answer.status for answer in answers] == [503] * 4
        assert answers[0].error["code"] == "limits_unavailable"
        assert answers[0].header("retry-after") == "1"

    await redis.start()
    await until(lambda: shared(serving).availability.up)
    assert [(await ask(serving)).status for _ in range(4)] == [200, 200, 200, 429]
    assert (await readiness(serving))["status"] == "ready"
    events = {(name, labels): count for (name, labels), count in serving.meters._events.items()}
    assert events["state_changes", ("away",)] == 1
    assert events["state_changes", ("back",)] == 2


async def test_a_gateway_starts_without_redis_and_finds_it_later(
    gateway: Gateway, engine: ScriptedEngine, tmp_path: Path
) -> None:
    engine.answer(reply(completion()))
    server = RedisServer(tmp_path)
    serving = await gateway(settings(engine, server, {"rpm": 2}), whole=True)
    assert (await ask(serving)).status == 200
    assert (await readiness(serving))["status"] == "degraded"
    await server.start()
    await until(lambda: shared(serving).availability.up)
    assert [(await ask(serving)).status for _ in range(3)] == [200, 200, 429]
    await server.stop()


@pytest.mark.parametrize("how", ["DEBUG SLEEP 2", "CLIENT PAUSE 2000 ALL"])
async def test_nobody_waits_for_a_redis_that_does_not_answer(
    gateway: Gateway, engine: ScriptedEngine, redis: RedisServer, how: str
) -> None:
    """A few requests wait for their batch, until two batches have failed; later ones wait for nothing."""
    engine.answer(reply(completion()))
    serving = await gateway(settings(engine, redis, {"rpm": 1_000}), whole=True)
    await ask(serving)
    paused = asyncio.ensure_future(redis.command(*how.split()))

    first = await asyncio.gather(*(ask(serving) for _ in range(10)))
    await until(lambda: not shared(serving).availability.up)
    later = [await ask(serving) for _ in range(10)]
    assert {answer.status for answer in (*first, *later)} == {200}
    assert "no answer within 50 ms" in (await readiness(serving))["reasons"][0]
    await paused
    await until(lambda: shared(serving).availability.up)
    assert (await ask(serving)).status == 200


async def test_a_flushed_redis_starts_afresh_with_what_runs(
    gateway: Gateway, engine: ScriptedEngine, redis: RedisServer
) -> None:
    """Rates begin anew; requests at once are told again within a beat."""
    go_on = asyncio.Event()

    async def wait(talk: Talk) -> None:
        await go_on.wait()
        await reply(completion())(talk)

    engine.answer(wait)
    serving = await gateway(settings(engine, redis, {"parallel": 2}), whole=True)
    running = [asyncio.ensure_future(ask(serving)) for _ in range(2)]
    await engine.request(2)
    await redis.cli.flushall()
    await redis.command("SCRIPT", "FLUSH")

    assert (await ask(serving)).status == 429
    counted = await redis.cli.hgetall("{turnout}:p:key 'team-a'")
    assert [str(value).split()[0] for value in counted.values()] == ["2"]
    go_on.set()
    assert {answer.status for answer in await asyncio.gather(*running)} == {200}


async def test_a_full_redis_counts_as_away(gateway: Gateway, engine: ScriptedEngine, redis: RedisServer) -> None:
    engine.answer(reply(completion()))
    serving = await gateway(settings(engine, redis, {"rpm": 100}), whole=True)
    await ask(serving)
    await redis.cli.config_set("maxmemory", "1")
    await until(lambda: not shared(serving).availability.up)
    assert (
        "OOM" in (await readiness(serving))["reasons"][0] or "OutOfMemory" in (await readiness(serving))["reasons"][0]
    )
    assert (await ask(serving)).status == 200
    await redis.cli.config_set("maxmemory", "0")
    await until(lambda: shared(serving).availability.up)


async def test_the_password_is_needed_and_never_told(
    gateway: Gateway, engine: ScriptedEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = RedisServer(tmp_path, "--requirepass", "s3cret-word")
    server.cli = type(server.cli)(port=server.port, password="s3cret-word", decode_responses=True)
    await server.start()
    engine.answer(reply(completion()))
    right = await gateway(settings(engine, server, {"rpm": 9}, password="s3cret-word"), whole=True)
    in_url = settings(engine, server, {"rpm": 9}, redis=f"redis://:s3cret-word@127.0.0.1:{server.port}/0")
    also_right = await gateway(in_url, whole=True)
    wrong = await gateway(settings(engine, server, {"rpm": 9}, password="wrong-s3cret-word"), whole=True)

    assert [shared(one).availability.up for one in (right, also_right, wrong)] == [True, True, False]
    said = capsys.readouterr()
    assert "s3cret-word" not in said.out + said.err + str(await readiness(wrong))
    await server.stop()


async def test_redis_is_taken_into_use_and_left_while_serving(
    gateway: Gateway, engine: ScriptedEngine, redis: RedisServer
) -> None:
    engine.answer(reply(completion()))
    with_redis = settings(engine, redis, {"rpm": 3})
    without = {name: section for name, section in with_redis.items() if name != "state"}
    serving = await gateway(without, whole=True)
    assert [(await ask(serving)).status for _ in range(4)] == [200, 200, 200, 429]
    serving.apply(with_redis)
    await until(lambda: shared(serving).availability.up)
    assert [(await ask(serving)).status for _ in range(4)] == [200, 200, 200, 429]
    serving.apply(with_redis | {"state": {"redis": redis.url, "prefix": "another"}})
    await until(lambda: shared(serving).availability.up)
    assert [(await ask(serving)).status for _ in range(4)] == [200, 200, 200, 429]
    serving.apply(without)

    assert shared(serving).trouble == ""
    assert (await ask(serving)).status in (200, 429)
    assert {str(key).partition("}")[0] for key in await redis.cli.keys()} == {"{turnout", "{another"}


async def test_a_stream_that_redis_let_pass_is_hedged(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine, redis: RedisServer
) -> None:
    """As one that nobody had to be asked for."""
    late: list[Talk] = []

    async def answer(talk: Talk) -> None:
        late.append(talk)
        await (silent if len(late) == 1 else stream(*deltas("a"), DONE))(talk)

    for one in (engine, other):
        one.answer(answer)
    own = settings(engine, redis, {"rpm": 100})
    own["engines"]["e"]["urls"].append(other.url)
    own["models"]["m"]["hedge"] = "p95"
    serving = await gateway(own, whole=True)
    first_tokens = serving.plane.asked["m"].hedge
    assert first_tokens is not None
    for _ in range(20):
        first_tokens.note(0.2)

    answered = await ask(serving, STREAM)
    assert answered.events[-1] == b"[DONE]"
    assert answered.header("x-turnout-attempts") == "2"
    assert serving.retries() == {"hedge": 1}
    await serving.settled()
