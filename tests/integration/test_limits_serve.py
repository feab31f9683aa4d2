"""What `turnout serve` says about keys and limits, and how several processes hold them without Redis."""

import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.client import Client
from tests.support.json_type import Json
from tests.support.keys import bearer, key_entry
from tests.support.openai_bytes import CHAT, HELLO, completion
from tests.support.process import Process
from tests.support.scripted import ScriptedEngine, reply
from tests.support.waiting import until, until_told


@pytest.fixture
async def engine() -> AsyncIterator[ScriptedEngine]:
    async with ScriptedEngine() as started:
        started.answer(reply(completion()))
        yield started


def write(folder: Path, engine: ScriptedEngine, **more: Json) -> None:
    settings = {
        "server": {"port": 0},
        "engines": {"e": {"kind": "vllm", "urls": [engine.url]}},
        "models": {"m": {"engine": "e", "model": "org/m"}},
        **more,
    }
    (folder / "turnout.yaml").write_text(json.dumps(settings))


async def test_several_processes_divide_the_limits_and_say_so(tmp_path: Path, engine: ScriptedEngine) -> None:
    write(tmp_path, engine, keys=[key_entry("team-a", limits={"rpm": 8})])
    process = Process(tmp_path, "serve", "--workers", "2")
    try:
        port = await process.listening()
        statuses = []
        for _ in range(24):
            async with await Client.open(port) as client:
                await client.post(CHAT, HELLO, bearer())
                statuses.append((await client.answer()).status)
    finally:
        process.interrupt()
        assert await process.ended() == 0

    assert 4 <= statuses.count(200) <= 8
    assert statuses.count(200) + statuses.count(429) == 24
    (said,) = [line for line in process.logs if "share of every limit" in line["event"]]
    assert (said["level"], said["processes"]) == ("warning", 2)
    assert not [line for line in process.logs if "no key is asked for" in line["event"]]


async def test_where_nobody_needs_a_key_the_log_says_so(tmp_path: Path, engine: ScriptedEngine) -> None:
    write(tmp_path, engine)
    process = Process(tmp_path, "serve")
    try:
        await process.listening()
    finally:
        process.interrupt()
        await process.ended()

    assert len([line for line in process.logs if "no key is asked for" in line["event"]]) == 1


@pytest.mark.parametrize("processes", [1, 2])
async def test_a_reload_that_takes_away_all_keys_says_so_as_a_start_does(
    tmp_path: Path, engine: ScriptedEngine, processes: int
) -> None:
    """Once for all processes, and not again with the next edit."""
    said = "no key is asked for: whoever reaches the port may call every model"
    write(tmp_path, engine, server={"port": 0, "workers": processes}, keys=[key_entry("first", "sk-1")])
    process = Process(tmp_path, "serve")
    try:
        await process.listening()
        assert process.logged(said) == []
        write(tmp_path, engine, server={"port": 0, "workers": processes})
        process.interrupt(signal.SIGHUP)
        await until(lambda: len(process.logged(said)) == 1, what="the word about keys")
        write(tmp_path, engine, server={"port": 0, "workers": processes, "max_body": "1MiB"})
        process.interrupt(signal.SIGHUP)
        await until(
            lambda: len({one["hash"] for one in process.logged("configuration read")}) == 2, what="the next edit"
        )
    finally:
        process.interrupt()
        await process.ended()

    assert len(process.logged(said)) == 1


async def test_a_changed_keys_file_is_taken_while_serving(tmp_path: Path, engine: ScriptedEngine) -> None:
    """A key that is added lets in, one that is gone does not any more, on connections that live too; a bad file changes
    nothing."""
    keys = tmp_path / "keys.yaml"
    keys.write_text(json.dumps([key_entry("first", "sk-1")]))
    write(tmp_path, engine, keys_file="keys.yaml")
    process = Process(tmp_path, "serve")
    try:
        port = await process.listening()
        async with await Client.open(port) as client:

            async def status(key: str) -> int:
                await client.post(CHAT, HELLO, bearer(key))
                return (await client.answer()).status

            async def changed() -> bool:
                return await status("sk-2") == 200

            assert [await status("sk-1"), await status("sk-2")] == [200, 401]
            keys.write_text(json.dumps([key_entry("second", "sk-2")]))
            await until_told(changed, what="the new key")
            assert await status("sk-1") == 401
            keys.write_text("- {name: third, hash: sk-3}\n")
            await until(lambda: "keys.yaml" in process.stderr, what="a word about the bad file")
            assert await status("sk-2") == 200
            assert "sk-3" not in process.stderr
    finally:
        process.interrupt()
        await process.ended()
