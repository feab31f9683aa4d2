"""A new gateway takes over the port of a running one: nobody is refused or reset, and the old one ends its streams."""

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from gateway.cli.failing import Failure
from gateway.cli.listening import Waiting, bind
from gateway.settings import Server
from tests.support.client import Client
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, completion, delta, event
from tests.support.process import Process
from tests.support.scripted import ScriptedEngine, Talk, reply
from tests.support.waiting import until, within

Start = Callable[..., Awaitable[tuple[Process, int]]]


@pytest.fixture(params=["protocol", "asgi"])
async def start(tmp_path: Path, engine: ScriptedEngine, request: pytest.FixtureRequest) -> AsyncIterator[Start]:
    """Starts `turnout serve` in front of the scripted engine; gives the process and its port."""
    started: list[Process] = []
    settings = {
        "server": {"port": 0, "drain": "60s"},
        "engines": {"e": {"kind": "vllm", "urls": [engine.url]}},
        "models": {"m": {"engine": "e"}},
    }
    (tmp_path / "turnout.yaml").write_text(json.dumps(settings))

    async def begin(*arguments: str) -> tuple[Process, int]:
        folder = tmp_path / str(len(started))
        folder.mkdir()
        options = ("--config", str(tmp_path / "turnout.yaml"), "--carrier", request.param)
        process = Process(folder, "serve", *options, *arguments)
        started.append(process)
        return process, await process.listening()

    yield begin
    for process in started:
        process.kill()


async def ask(port: int) -> int:
    """One request on a connection of its own; the status of its answer."""
    async with await Client.open(port) as client:
        await client.post(CHAT, HELLO | {"model": "m"})
        return (await within(client.answer(), what="an answer")).status


async def ask_until(ended: asyncio.Event, port: int, statuses: list[int]) -> None:
    """Asks again and again; every refused or broken connection is a failure of the test."""
    while not ended.is_set():
        statuses.append(await ask(port))


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_nobody_is_refused_while_another_gateway_takes_over(
    start: Start, engine: ScriptedEngine, workers: str
) -> None:
    go = asyncio.Event()

    async def script(talk: Talk) -> None:
        if not talk.request.json.get("stream"):
            await reply(completion(model="m"))(talk)
            return
        await talk.start_stream()
        await talk.chunk(event(delta("one")))
        await go.wait()
        await talk.chunk(event(delta(finish="stop")), DONE)
        await talk.end_chunks()  # and the connection is free for the next request

    engine.answer(script)
    old, port = await start("--workers", workers)
    async with await Client.open(port) as streaming:
        await streaming.post(CHAT, STREAM | {"model": "m"})
        opening = await streaming.head()
        statuses: list[int] = []
        ended = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(ask_until(ended, port, statuses))
            _, same = await start("--port", str(port), "--take-over", "--workers", workers)
            old.interrupt(signal.SIGTERM)
            await until(lambda: bool(old.logged("draining") or old.logged("stopping")), what="the drain")
            asked = len(statuses)
            await until(lambda: len(statuses) > asked + 100, 60, what="requests meanwhile")
            assert old.popen.poll() is None  # its stream is not complete
            go.set()
            answer = await within(streaming.body(opening), what="the end of the stream")
            assert await old.ended() == 0
            asked = len(statuses)
            await until(lambda: len(statuses) > asked + 50, 60, what="requests afterwards")
            ended.set()

    assert same == port
    assert set(statuses) == {200}
    assert answer.whole
    assert answer.events[-1] == b"[DONE]"


async def test_a_connection_that_has_asked_nothing_yet_may_still_do_so(start: Start, engine: ScriptedEngine) -> None:
    """Its client cannot know that it came a moment too late."""
    engine.answer(reply(completion(model="m")))
    old, port = await start()
    assert await ask(port) == 200
    async with await Client.open(port) as new, await Client.open(port) as control:
        await until(lambda: old.popen.poll() is None, what="life")
        assert await ask(port) == 200  # so the other two are accepted as well
        old.interrupt()
        await until(lambda: bool(old.logged("draining")), what="the drain")
        await new.post(CHAT, HELLO | {"model": "m"})
        await control.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        first, second = await new.answer(), await control.answer()
        assert await new.closed()
        assert await control.closed()

    assert (first.status, second.status) == (200, 200)
    assert (first.header("connection"), second.header("connection")) == ("close", "close")
    assert await old.ended() == 0


async def test_a_connection_that_never_asks_holds_the_end_up_for_a_moment_only(
    start: Start, engine: ScriptedEngine
) -> None:
    engine.answer(reply(completion(model="m")))
    old, port = await start()
    async with await Client.open(port) as silent:
        assert await ask(port) == 200
        old.interrupt()
        assert await within(silent.closed(), 20, what="its end")
        assert await old.ended(20) == 0
    assert old.logged("cutting what has not ended") == []


def test_connections_that_the_kernel_has_accepted_are_taken_before_the_port_is_let_go() -> None:
    (listener,) = bind(Server(port=0))
    waiting = Waiting([listener])
    address = listener.getsockname()
    clients = [socket.create_connection(address, timeout=5) for _ in range(3)]
    listener.close()

    taken = waiting.take()

    assert len(taken) == len(clients)
    for server in taken:
        server.settimeout(5)
        server.sendall(b"hello")
    assert {client.recv(5) for client in clients} == {b"hello"}
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=5)
    for one in (*clients, *taken):
        one.close()


def test_a_port_is_shared_only_with_who_asks_for_it() -> None:
    (first,) = bind(Server(port=0))
    port = first.getsockname()[1]
    try:
        with pytest.raises(Failure, match="--take-over shares it"):
            bind(Server(port=port))
        (second,) = bind(Server(port=port), take_over=True)
        second.close()
    finally:
        first.close()
