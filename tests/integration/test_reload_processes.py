"""A configuration that changes under `turnout serve`: by an edit, by SIGHUP, in one process and in several."""

import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import httpx2
import pytest

from tests.integration.test_workers import Group, Serve, alive, get, post, serve
from tests.support.client import Client
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, DONE, STREAM, completion, delta, event
from tests.support.process import START, Process
from tests.support.scripted import ScriptedEngine, Talk, reply
from tests.support.waiting import until

__all__ = ["serve"]

BAD = "engines: [\n"


def settings(engine: ScriptedEngine, *models: str, **server: Json) -> dict[str, Json]:
    return {
        "server": {"port": 0, "workers": 2, **server},
        "engines": {"e": {"kind": "vllm", "urls": [engine.url]}},
        "models": {name: {"engine": "e"} for name in models},
    }


def write(folder: Path, text: str | dict[str, Json]) -> None:
    """Changes the file as an editor does."""
    new = folder / "turnout.yaml.new"
    new.write_text(text if isinstance(text, str) else json.dumps(text))
    new.rename(folder / "turnout.yaml")


async def everywhere(group: Group, pids: Sequence[int], path: str) -> list[Json]:
    """What each process says at a path."""
    async with AsyncExitStack() as stack:
        return [(await get(await group.connect_to(pid, stack), path)).json for pid in pids]


def models_of(listings: Sequence[Json]) -> list[list[str]]:
    return [[one["id"] for one in listing["data"]] for listing in listings]


@pytest.fixture
async def alone(tmp_path: Path, engine: ScriptedEngine) -> AsyncIterator[Process]:
    """A gateway in one process, with the model `m`."""
    engine.answer(reply(completion()))
    write(tmp_path, settings(engine, "m", workers=1))
    process = Process(tmp_path, "serve")
    yield process
    process.kill()


async def test_one_process_follows_edits_and_hang_ups(alone: Process, tmp_path: Path, engine: ScriptedEngine) -> None:
    """A bad file ends nothing, and is named in the log; SIGHUP reads at once."""
    port = await alone.listening()
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        write(tmp_path, settings(engine, "m", "n", workers=1))
        alone.interrupt(signal.SIGHUP)
        await until(lambda: len(alone.logged("configuration read")) == 1, what="the reading")
        listed = (await client.get("/v1/models")).json()
        assert models_of([listed]) == [["m", "n"]]
        write(tmp_path, BAD)
        alone.interrupt(signal.SIGHUP)
        said = "the configuration's file cannot be used, the one before stays in force"
        await until(lambda: bool(alone.logged(said)), what="the complaint")
        assert (await client.get("/readyz")).json()["status"] == "degraded"
        assert models_of([(await client.get("/v1/models")).json()]) == [["m", "n"]]
        write(tmp_path, settings(engine, "o", workers=1))
        await until(lambda: len(alone.logged("configuration read")) == 2, what="the good file")
        assert models_of([(await client.get("/v1/models")).json()]) == [["o"]]
    (problem,) = alone.logged(said)[0]["problems"]

    assert problem.startswith(f"{tmp_path}/turnout.yaml:2:1: not YAML")
    alone.interrupt()
    assert await alone.ended() == 0


async def test_an_edit_reaches_every_process(serve: Serve, tmp_path: Path, engine: ScriptedEngine) -> None:
    """It is read once, so all have the same."""
    group = await serve()
    pids = await group.all_serving()
    before = await everywhere(group, pids, "/admin/config")
    write(tmp_path, settings(engine, "m", "n"))
    await until(lambda: bool(group.logged("configuration read")), what="the reading")
    async with await Client.open(group.port) as client:
        after = (await post(client, "/admin/reload")).json

    assert models_of(await everywhere(group, pids, "/v1/models")) == [["m", "n"]] * 2
    shown = await everywhere(group, pids, "/admin/config")
    assert shown[0] == shown[1] == after
    assert before[0] == before[1]
    assert after["hash"] != before[0]["hash"]
    assert group.serving == pids


async def test_a_bad_file_changes_no_process_and_those_that_start_later_know(
    serve: Serve, tmp_path: Path, engine: ScriptedEngine
) -> None:
    """A process that takes the place of another begins with what is in force, whatever the file says by then."""
    group = await serve()
    pids = await group.all_serving()
    write(tmp_path, settings(engine, "m", "n"))
    async with await Client.open(group.port) as client:
        good = (await post(client, "/admin/reload")).json
        write(tmp_path, BAD)
        refused = await post(client, "/admin/reload")
        assert (refused.status, refused.error["code"]) == (400, "invalid_config")
    os.kill(pids[0], signal.SIGKILL)
    now = [await group.replaced(pids[0]), pids[1]]

    for shown in await everywhere(group, now, "/admin/config"):
        assert shown["hash"] == good["hash"]
        assert "not YAML" in shown["error"]
    assert [one["status"] for one in await everywhere(group, now, "/readyz")] == ["degraded"] * 2
    assert models_of(await everywhere(group, now, "/v1/models")) == [["m", "n"]] * 2
    write(tmp_path, settings(engine, "m", "o"))
    group.interrupt(signal.SIGHUP)
    await until(lambda: len(group.logged("configuration read")) == 2, what="the good file")
    async with await Client.open(group.port) as client:
        assert (await post(client, "/admin/reload")).json["error"] is None
    assert models_of(await everywhere(group, now, "/v1/models")) == [["m", "o"]] * 2


async def test_streams_go_on_in_every_process_while_it_changes(
    serve: Serve, tmp_path: Path, engine: ScriptedEngine
) -> None:
    group = await serve()
    pids = await group.all_serving()
    waiting: list[Talk] = []

    async def talk(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(event(delta("a")))
        waiting.append(talk)

    async with AsyncExitStack() as stack:
        clients = [await group.connect_to(pid, stack) for pid in pids]
        engine.answer(talk)
        for client in clients:
            await client.post(CHAT, STREAM)
        await until(lambda: len(waiting) == 2, what="two streams")
        write(tmp_path, settings(engine, "m", "o"))
        async with await Client.open(group.port) as client:
            assert (await post(client, "/admin/reload")).status == 200
        for one in waiting:
            await one.chunk(event(delta("b", finish="stop")), DONE)
            await one.end_chunks()
        answers = [await client.answer() for client in clients]

    assert [answer.events[-1] for answer in answers] == [b"[DONE]"] * 2


async def test_the_number_of_processes_stays_until_a_restart(
    serve: Serve, tmp_path: Path, engine: ScriptedEngine
) -> None:
    group = await serve()
    pids = await group.all_serving()
    with ExitStack() as stack:
        taken = stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        write(tmp_path, settings(engine, "m", "o", workers=3, port=taken))
        async with await Client.open(group.port) as client:
            answer = await post(client, "/admin/reload")

    assert answer.json["restart_needed"] == [
        f"server.port: 0 until a restart, then {taken}",
        "server.workers: 2 until a restart, then 3",
    ]
    assert models_of(await everywhere(group, pids, "/v1/models")) == [["m", "o"]] * 2
    assert group.serving == pids


async def test_a_new_drain_time_holds_for_the_next_end(serve: Serve, tmp_path: Path, engine: ScriptedEngine) -> None:
    """Also for the supervisor, which would kill what takes longer."""
    group = await serve(drain="60s")
    await group.all_serving()
    waiting: list[Talk] = []

    async def talk(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(event(delta("a")))
        waiting.append(talk)

    engine.answer(talk)
    async with await Client.open(group.port) as client:
        write(tmp_path, settings(engine, "m", drain="0s"))
        assert (await post(client, "/admin/reload")).status == 200
        await client.post(CHAT, STREAM | {"model": "m"})
        await until(lambda: len(waiting) == 1, what="the stream")
        group.interrupt()
        assert await group.ended(START) == 0
        answer = await client.answer()

    assert b"shutting_down" in answer.events[-1]


async def test_errors_and_the_level_of_the_log_are_those_of_all_processes(
    serve: Serve, tmp_path: Path, engine: ScriptedEngine
) -> None:
    """One that takes the place of another writes as much as the others."""
    group = await serve()
    pids = await group.all_serving()
    async with AsyncExitStack() as stack:
        clients = [await group.connect_to(pid, stack) for pid in pids]
        for number, client in enumerate(clients):
            await client.post(CHAT, STREAM | {"model": f"nobody-{number}"})
            assert (await client.answer()).status == 404
        shown = (await get(clients[0], "/admin/errors")).json
        assert [one["code"] for one in shown] == ["model_not_found"] * 2
        assert shown[0]["at"] >= shown[1]["at"]
        body = b'{"level": "error"}'
        head = f"PUT /admin/log-level HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
        await clients[0].send(head.encode() + body)
        assert (await clients[0].answer()).status == 200
    os.kill(pids[0], signal.SIGKILL)
    await until(lambda: not alive(pids[0]), what="the end of a process")
    found: list[Json] = []
    while len(found) < 4:
        async with await Client.open(group.port) as client:
            found.append((await get(client, "/admin/log-level")).json["level"])

    assert set(found) == {"error"}
