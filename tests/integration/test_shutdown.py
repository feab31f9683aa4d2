"""How `turnout serve` ends: streams finish, and what cannot finish is told so."""

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from gateway.cli.server import ONE_KEYSTROKE
from tests.support.client import Client
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, completion, delta, event
from tests.support.process import Process
from tests.support.scripted import ScriptedEngine, Talk, reply, silent
from tests.support.waiting import until

Serve = Callable[..., Awaitable[tuple[Process, int]]]


@pytest.fixture
async def serve(tmp_path: Path, engine: ScriptedEngine) -> AsyncIterator[Serve]:
    """Starts `turnout serve` in front of the scripted engine; gives the process and its port."""
    started: list[Process] = []

    async def start(drain: str) -> tuple[Process, int]:
        settings = {
            "server": {"port": 0, "drain": drain},
            "engines": {"e": {"kind": "vllm", "urls": [engine.url]}},
            "models": {"m": {"engine": "e"}},
        }
        (tmp_path / "turnout.yaml").write_text(json.dumps(settings))
        process = Process(tmp_path, "serve")
        started.append(process)
        return process, await process.listening()

    yield start
    for process in started:
        process.kill()


def held_stream(engine: ScriptedEngine) -> list[Talk]:
    """Lets the engine begin a stream and hold the rest of it; the talk appears in the list."""
    talks: list[Talk] = []

    async def script(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(event(delta("one")))
        talks.append(talk)
        await talk.stall()

    engine.answer(script)
    return talks


async def finish(talk: Talk) -> None:
    await talk.chunk(event(delta("two")), event(delta(finish="stop")), DONE)
    await talk.end_chunks()


def asked(engine: ScriptedEngine) -> list[Talk]:
    """The engine's talks that are not about its health."""
    return [talk for talk in engine.talks if talk.request.method == b"POST"]


async def refused(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return True
    writer.transport.abort()
    return False


async def test_a_stream_finishes_while_nobody_new_is_let_in(serve: Serve, engine: ScriptedEngine) -> None:
    process, port = await serve("30s")
    talks = held_stream(engine)
    async with await Client.open(port) as client, await Client.open(port) as idle:
        await client.post(CHAT, STREAM | {"model": "m"})
        answer = await client.head()
        answer.body += await client.chunk()
        process.interrupt()
        await until(lambda: bool(process.logged("draining")), what="the drain")
        assert await idle.closed()
        assert await refused(port)
        await finish(talks[0])
        await client.body(answer)
        assert await client.closed()

    assert answer.whole
    assert answer.events[-1] == b"[DONE]"
    assert [json.loads(data)["choices"][0]["delta"].get("content") for data in answer.events[:-1]] == [
        "one",
        "two",
        None,
    ]
    assert await process.ended() == 0
    assert [line["event"] for line in process.logs][-2:] == ["draining", "stopped"]


async def test_a_stream_that_does_not_finish_in_time_is_cut_with_an_error(serve: Serve, engine: ScriptedEngine) -> None:
    """One error event, no `[DONE]`, no last chunk; the exit code is 0 all the same."""
    process, port = await serve("300ms")
    talks = held_stream(engine)
    async with await Client.open(port) as client:
        await client.post(CHAT, STREAM | {"model": "m"})
        answer = await client.head()
        answer.body += await client.chunk()
        process.interrupt()
        await client.body(answer)

    assert not answer.whole
    assert json.loads(answer.events[-1])["error"]["code"] == "shutting_down"
    assert await process.ended() == 0
    await until(talks[0].left.is_set, what="the end of the engine's request")
    assert {line["level"] for line in process.logs} == {"info", "warning"}
    assert "Traceback" not in process.stderr


async def test_an_answer_that_does_not_come_in_time_is_refused(serve: Serve, engine: ScriptedEngine) -> None:
    process, port = await serve("300ms")
    engine.answer(silent)
    async with await Client.open(port) as client:
        await client.post(CHAT, HELLO | {"model": "m"})
        await until(lambda: bool(asked(engine)), what="the request at the engine")
        talk = asked(engine)[0]
        process.interrupt()
        answer = await client.answer()
        assert await client.closed()

    assert answer.status == 503
    assert answer.error["type"] == "server_error"
    assert await process.ended() == 0
    await until(talk.left.is_set, what="the end of the engine's request")


async def test_a_second_interrupt_a_little_later_ends_the_drain(serve: Serve, engine: ScriptedEngine) -> None:
    process, port = await serve("60s")
    held_stream(engine)
    async with await Client.open(port) as client:
        await client.post(CHAT, STREAM | {"model": "m"})
        await client.head()

        process.interrupt(signal.SIGINT)
        await until(lambda: bool(process.logged("draining")), what="the drain")
        asked_at = time.monotonic()
        await until(lambda: time.monotonic() > asked_at + 2 * ONE_KEYSTROKE, what="a second thought")
        process.interrupt(signal.SIGINT)
        code = await process.ended(20)

    assert code == 0
    assert process.logged("stopped")
    assert "Traceback" not in process.stderr


async def test_without_requests_it_ends_at_once(serve: Serve, engine: ScriptedEngine) -> None:
    """An idle connection does not hold it up, whatever the drain."""
    process, port = await serve("60s")

    engine.answer(reply(completion(model="m")))
    async with await Client.open(port) as client:
        await client.post(CHAT, HELLO | {"model": "m"})
        assert (await client.answer()).status == 200
        process.interrupt()
        assert await client.closed()
        assert await process.ended(5) == 0
    assert process.logged("draining") == []
