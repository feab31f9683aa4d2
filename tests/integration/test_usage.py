"""What keys have used: counted per key, model and day, told by `/admin/usage` and `turnout usage`."""

import asyncio
import csv
import io
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.app import Gateway as RunningGateway
from gateway.background.shared.store import SharedAccounts
from gateway.balance.limits.windows import today
from gateway.cli import main
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer, Client
from tests.support.json_type import Json
from tests.support.keys import bearer, key_entry
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, completion, deltas
from tests.support.process import Process
from tests.support.redis_server import RedisServer
from tests.support.scripted import ScriptedEngine, hang_up, reply, stream
from tests.support.serving import Serving
from tests.support.waiting import until

USAGE = {"prompt_tokens": 30, "completion_tokens": 20, "total_tokens": 50}
KEYS = [key_entry("team-a", "sk-a", tags=["x", "y"]), key_entry("=cmd", "sk-b")]


def settings(engine: ScriptedEngine, **more: Json) -> dict[str, Json]:
    return one_engine(engine) | {"keys": KEYS, **more}


async def get(port: int, path: str) -> Answer:
    async with await Client.open(port) as client:
        await client.send(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode())
        return await client.answer()


async def ask(port: int, key: str = "sk-a", body: Json = HELLO) -> int:
    async with await Client.open(port) as client:
        await client.post(CHAT, body, bearer(key))
        return (await client.answer()).status


async def test_usage_is_told_per_key_model_and_day(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(settings(engine), whole=True)
    engine.answer(reply(completion(usage=USAGE)))
    for key, model in (("sk-a", "m"), ("sk-a", "gpt-4o"), ("sk-a", "same"), ("sk-b", "m")):
        assert await ask(serving.port, key, HELLO | {"model": model}) == 200
    engine.answer(stream(*deltas("a"), DONE))
    assert await ask(serving.port, "sk-b", STREAM) == 200
    engine.answer(hang_up)
    assert await ask(serving.port, "sk-b") == 502

    rows = (await get(serving.port, "/admin/usage")).json
    day = today(time.time()).date
    assert [(row["day"], row["key"], row["model"], row["requests"]) for row in rows] == [
        (day, "=cmd", "m", 3),
        (day, "team-a", "m", 2),
        (day, "team-a", "same", 1),
    ]
    assert (rows[1]["prompt_tokens"], rows[1]["answer_tokens"], rows[1]["estimated"]) == (60, 40, 0)
    assert rows[1]["tags"] == ["x", "y"]
    assert rows[0]["estimated"] == 1


async def test_usage_as_csv_opens_in_a_spreadsheet_without_running_anything(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    serving = await gateway(settings(engine), whole=True)
    engine.answer(reply(completion(usage=USAGE)))
    await ask(serving.port, "sk-b")

    answer = await get(serving.port, "/admin/usage?format=csv")
    assert answer.header("content-type") == "text/csv; charset=utf-8"
    (row,) = csv.DictReader(io.StringIO(answer.body.decode()))
    assert (row["key"], row["prompt_tokens"]) == ("'=cmd", "30")


@pytest.mark.parametrize(
    ("query", "count"), [("since=2020-01-01", 1), ("until=2020-01-01", 0), ("since=9999-01-01", 0)]
)
async def test_usage_can_be_asked_for_some_days(
    gateway: Gateway, engine: ScriptedEngine, query: str, count: int
) -> None:
    serving = await gateway(settings(engine), whole=True)
    engine.answer(reply(completion(usage=USAGE)))
    await ask(serving.port)

    assert len((await get(serving.port, f"/admin/usage?{query}")).json) == count


async def test_days_must_be_days(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(settings(engine), whole=True)

    assert (await get(serving.port, "/admin/usage?since=yesterday")).status == 400


@pytest.fixture
async def redis(tmp_path: Path) -> AsyncIterator[RedisServer]:
    server = RedisServer(tmp_path)
    await server.start()
    yield server
    await server.stop()


def shared(serving: Serving) -> SharedAccounts:
    assert isinstance(serving._source, RunningGateway)
    return serving._source.shared


async def test_gateways_keep_one_book_in_redis(gateway: Gateway, engine: ScriptedEngine, redis: RedisServer) -> None:
    engine.answer(reply(completion(usage=USAGE)))
    both = [await gateway(settings(engine, state={"redis": redis.url}), whole=True) for _ in range(2)]
    for turn in range(5):
        await ask(both[turn % 2].port)
    await until(lambda: not any(shared(one).unsettled for one in both))
    (row,) = (await get(both[1].port, "/admin/usage")).json
    assert (row["requests"], row["prompt_tokens"], row["answer_tokens"]) == (5, 150, 100)


async def test_usage_of_an_outage_is_told_when_redis_is_back_and_counted_once(
    gateway: Gateway, engine: ScriptedEngine, redis: RedisServer
) -> None:
    engine.answer(reply(completion(usage=USAGE)))
    serving = await gateway(settings(engine, state={"redis": redis.url}), whole=True)
    await ask(serving.port)
    redis.kill()
    await until(lambda: not shared(serving).availability.up)
    await ask(serving.port)
    assert (await get(serving.port, "/admin/usage")).error["code"] == "usage_unavailable"
    await redis.start()
    await until(lambda: shared(serving).availability.up and not shared(serving).unsettled)

    (row,) = (await get(serving.port, "/admin/usage")).json
    assert row["requests"] in (1, 2), "what redis had before it died is lost with it"
    assert row["prompt_tokens"] == row["requests"] * 30


async def test_several_processes_without_redis_are_added_up_and_the_command_shows_it(
    tmp_path: Path, engine: ScriptedEngine
) -> None:
    engine.answer(reply(completion(usage=USAGE)))
    (tmp_path / "turnout.yaml").write_text(json.dumps(settings(engine, server={"port": 0, "workers": 2})))
    process = Process(tmp_path, "serve")
    try:
        port = await process.listening()
        assert [await ask(port) for _ in range(6)] == [200] * 6
        (row,) = (await get(port, "/admin/usage")).json
        assert (row["requests"], row["prompt_tokens"]) == (6, 180)

        shown = {}
        for form in ("table", "json", "csv"):
            folder = tmp_path / form
            folder.mkdir()
            command = Process(folder, "usage", "--url", f"http://127.0.0.1:{port}", "--format", form)
            assert await command.ended() == 0, command.stderr
            shown[form] = command.stdout
        assert "team-a" in shown["table"]
        assert json.loads(shown["json"])[0]["answer_tokens"] == 120
        (listed,) = csv.DictReader(io.StringIO(shown["csv"]))
        assert listed["tags"] == "x y"
    finally:
        process.interrupt()
        await process.ended()


@pytest.mark.parametrize("option", ["--since", "--until"])
@pytest.mark.parametrize("day", ["yesterday", "2026-13-45", "2026-02-30", "20261231", ""])
def test_what_is_no_day_is_answered_with_an_example(option: str, day: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["usage", "--url", "http://127.0.0.1:1", option, day]) == 2

    assert f"{option} {day}: expected a day, such as 2026-12-31" in capsys.readouterr().err


def test_days_stand_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["usage", "--url", "http://127.0.0.1:1", "--since", "2026-12-31", "--until", "2026-12-01"]) == 2

    assert "--until 2026-12-01 is before --since 2026-12-31" in capsys.readouterr().err


async def test_the_commands_csv_opens_in_a_spreadsheet_without_running_anything(
    engine: ScriptedEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = {"requests": 1, "prompt_tokens": 2, "answer_tokens": 3, "estimated": 0}
    row: Json = {"day": "2026-12-01", "key": "=cmd", "tags": ["+x", "y"], "model": "@m", **counts}
    engine.on("/admin/usage", reply(json.dumps([row]).encode()))
    code = await asyncio.to_thread(main, ["usage", "--url", engine.url, "--format", "csv"])

    assert code == 0
    assert capsys.readouterr().out.splitlines()[1] == "2026-12-01,'=cmd,'+x y,'@m,1,2,3,0"
