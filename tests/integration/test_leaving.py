"""A client that leaves ends the engine's request within a second, at any moment, in both modes."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.proxy.guarded import LOOK_EVERY
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Client
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, compact, completion, deltas
from tests.support.scripted import ScriptedEngine, Talk, reply, silent, stream, stream_head
from tests.support.serving import CARRIERS, SERVERS, Serving
from tests.support.waiting import until, within

SECOND = 1.0
EVENTS = deltas("a", "b", "c", model="m")


@pytest.fixture(params=list(SERVERS))
def carrier(request: pytest.FixtureRequest) -> str:
    """What carries the exchanges: other ASGI servers too."""
    return str(request.param)


def passed(serving: Serving, seconds: float) -> Callable[[], bool]:
    """The condition that so much time has passed on the gateway's clock, for what must not happen in it."""
    end = serving.plane.loop.time() + seconds
    return lambda: serving.plane.loop.time() > end


async def head_only(talk: Talk) -> None:
    await talk.send(stream_head())
    await talk.stall()


async def role_only(talk: Talk) -> None:
    await talk.start_stream()
    await talk.chunk(EVENTS[0])
    await talk.stall()


async def some_events(talk: Talk) -> None:
    await talk.start_stream()
    await talk.chunk(*EVENTS[:3])
    await talk.stall()


async def half_an_answer(talk: Talk) -> None:
    await talk.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n", b"{")
    await talk.stall()


MOMENTS: dict[str, Json] = {
    "before the answer": (HELLO, silent),
    "in the middle of a whole answer": (HELLO, half_an_answer),
    "before the stream's head": (STREAM, silent),
    "between head and first event": (STREAM, head_only),
    "after the role, before the first token": (STREAM, role_only),
    "in the middle of the stream": (STREAM, some_events),
}


@pytest.mark.parametrize("how", ["fin", "reset"])
@pytest.mark.parametrize(("body", "script"), MOMENTS.values(), ids=MOMENTS)
async def test_the_engine_sees_its_request_end(
    serving: Serving, engine: ScriptedEngine, body: Json, script: Json, how: str
) -> None:
    engine.answer(script)
    async with await serving.connect() as client:
        await client.post(CHAT, body)
        talk = await engine.request()
        if script is some_events:
            answer = await client.head()
            while EVENTS[2] not in answer.body:
                answer.body += await client.chunk()
        client.leave() if how == "fin" else client.reset()
        await until(talk.left.is_set, SECOND, "the end of the engine's request")
    await serving.settled()
    assert serving.outcomes() == {"client_gone": 1}
    assert engine.lines == []

    # What the client did is no mark against the engine, and nothing is left over from it.
    engine.answer(reply(completion()))
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO)
        assert (await client.answer()).status == 200


async def test_leaving_during_a_long_wait_is_seen_too(serving: Serving, engine: ScriptedEngine) -> None:
    """Not only in the first moments: the watching begins a little after the request does."""
    engine.answer(silent)
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO)
        talk = await engine.request()
        await until(passed(serving, 0.5))
        assert not talk.left.is_set()
        client.leave()
        await until(talk.left.is_set, SECOND, "the end of the engine's request")
    await serving.settled()


async def test_leaving_before_the_request_is_whole(serving: Serving, engine: ScriptedEngine) -> None:
    async with await serving.connect() as client:
        await client.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\n{")
        client.leave()
    async with await serving.connect() as client:
        await client.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-le")
        client.leave()
    await serving.settled()
    assert engine.requests == []
    assert serving.outcomes() == {}


async def test_leaving_while_the_connection_is_being_made(gateway: Gateway, engine: ScriptedEngine) -> None:
    """A listener whose queue is full takes no connection; the attempt must not outlive its client."""
    settings = one_engine(engine)
    serving = await gateway(settings)
    engine.answer(reply(completion()))
    async with await serving.connect() as client:
        # The request and the end come in one packet, so that the client is gone before the connection is there.
        await client.post(CHAT, HELLO)
        client.reset()
    await serving.settled()
    await until(lambda: all(line.served == 0 or line.gone.is_set() for line in engine.lines))
    # The connection may have come about; then it waits for others, and serves them.
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO)
        assert (await client.answer()).status == 200
    await serving.settled()


async def test_leaving_while_the_engine_takes_no_connection(gateway: Gateway, full_listener: int) -> None:
    serving = await gateway(
        {
            "engines": {"e": {"kind": "vllm", "urls": [f"http://127.0.0.1:{full_listener}"]}},
            "models": {"m": {"engine": "e"}},
        }
    )
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO)
        await until(lambda: any(serving.in_flight), what="the attempt")
        client.leave()
        await until(lambda: not any(serving.in_flight), SECOND, "the end of the attempt")
    await serving.settled()
    assert serving.outcomes() == {"client_gone": 1}


async def test_gauges_return_to_zero_after_many_of_every_kind(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """50 failing, 50 left, 50 served, all at once (cases E57)."""
    settings = one_engine(engine)
    settings["engines"]["e"]["urls"].append(other.url)
    serving = await gateway(settings)
    kinds = {b"served": stream(*EVENTS, DONE), b"failed": reply(b"", status=500), b"left": some_events}

    async def by_content(talk: Talk) -> None:
        await kinds[talk.request.json["messages"][0]["content"].encode()](talk)

    for one in (engine, other):
        one.answer(by_content)

    async def one_request(kind: str) -> None:
        async with await serving.connect() as client:
            await client.post(CHAT, STREAM | {"messages": [{"role": "user", "content": kind}]})
            answer = await client.head()
            if kind != "left":
                await client.body(answer)
                assert answer.status == (200 if kind == "served" else 502)

    async with asyncio.TaskGroup() as group:
        for _ in range(50):
            for kind in ("served", "failed", "left"):
                group.create_task(one_request(kind))
    await serving.settled()
    outcomes = serving.outcomes()
    assert outcomes["served"] == 50
    assert outcomes["client_gone"] == 50
    assert sum(outcomes.values()) == 150
    assert all(endpoint.in_flight == 0 for endpoint in serving.plane.endpoints)


async def test_health_checks_do_not_reset_gauges(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, health={"interval": 0.2}), whole=True)
    engine.answer(some_events)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(10):
            client = await stack.enter_async_context(await serving.connect())
            await client.post(CHAT, STREAM)
            await client.head()
        checks = asyncio.Event()
        engine.on("/health", count_to(3, checks))
        await within(checks.wait(), what="three health checks")
        assert [endpoint.in_flight for endpoint in serving.plane.endpoints] == [10]
    await serving.settled()


def count_to(number: int, reached: asyncio.Event) -> Json:
    seen: list[Talk] = []

    async def script(talk: Talk) -> None:
        seen.append(talk)
        if len(seen) >= number:
            reached.set()
        await reply(b"")(talk)

    return script


# ---- a client that does not read


BIG = compact({"x": "y" * 60_000})
KERNEL_BUFFERS = sum(int(Path(f"/proc/sys/net/ipv4/tcp_{way}mem").read_text().split()[2]) for way in "rw")
"""The most bytes that the kernel holds back for one connection, on both of its sides."""


async def flood(talk: Talk) -> None:
    """Never stops, except where it is stopped."""
    await talk.start_stream()
    await talk.chunk(*EVENTS[:2])
    while not talk.left.is_set():
        await talk.chunk(b"data: " + BIG + b"\n\n")


async def test_a_client_that_does_not_read_stops_the_engine_and_then_loses_it(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    """Back-pressure first, in bounded memory; then the write timeout (cases E56)."""
    serving = await gateway(one_engine(engine, server={"write_timeout": 1.0}))
    engine.answer(flood)
    client = await serving.connect(receive=4096)
    await client.post(CHAT, STREAM)
    client.stop_reading()
    talk = await engine.request()
    await until(lambda: not talk.line.drained.is_set(), what="back-pressure at the engine")
    assert not talk.left.is_set()
    await until(talk.left.is_set, 3.0, "the end of the engine's request")
    await until(lambda: not any(serving.in_flight), what="gauges at zero")
    client.reset()
    await serving.settled()


@pytest.mark.parametrize("carrier", list(CARRIERS), indirect=True)  # others know no such limit
async def test_the_connection_of_a_client_that_does_not_read_is_given_up(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    """It cannot be closed in peace: what was written for it will never be read."""
    serving = await gateway(one_engine(engine, server={"write_timeout": 0.5}))
    engine.answer(flood)
    client = await serving.connect(receive=4096)
    await client.post(CHAT, STREAM)
    client.stop_reading()
    talk = await engine.request()
    await until(talk.left.is_set, what="the end of the engine's request")
    await until(lambda: serving.connections == 0, 3 * LOOK_EVERY, "the end of the client's connection")
    client.reset()
    await serving.settled()


async def test_a_slow_client_gets_everything(gateway: Gateway, engine: ScriptedEngine) -> None:
    """Pausing and resuming loses nothing, and the pause does not count as silence of the engine."""
    serving = await gateway(one_engine(engine, timeouts={"idle": 0.5}))
    events = [b"data: " + compact({"n": number, "x": "y" * 60_000}) + b"\n\n" for number in range(300)]
    engine.answer(stream(*EVENTS[:2], *events, *EVENTS[-1:], DONE))
    client = await serving.connect(receive=16_384)
    await client.post(CHAT, STREAM)
    client.stop_reading()
    talk = await engine.request()
    await until(lambda: not talk.line.drained.is_set(), what="back-pressure at the engine")
    await until(passed(serving, 1.0))
    client.go_on_reading()
    async with client:
        answer = await client.answer()
    assert answer.whole
    assert answer.body.count(b'"x":"y') == 300
    assert answer.events[-1] == b"[DONE]"
    await serving.settled()
    assert serving.outcomes() == {"served": 1}


async def test_the_buffer_for_a_client_that_does_not_read_is_bounded(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine))
    sent = 0

    async def counted(talk: Talk) -> None:
        nonlocal sent
        await talk.start_stream()
        await talk.chunk(*EVENTS[:2])
        while not talk.left.is_set():
            await talk.chunk(b"data: " + BIG + b"\n\n")
            sent += len(BIG)

    engine.answer(counted)
    client = await serving.connect(receive=4096)
    await client.post(CHAT, STREAM)
    client.stop_reading()
    talk = await engine.request()
    await until(lambda: not talk.line.drained.is_set(), what="back-pressure at the engine")
    before = -1
    while before != sent:  # the kernel's buffers grow for a while
        before = sent
        await until(passed(serving, 0.4))

    # Ours are at most 1 MiB; the kernel's buffers of two connections are the rest, and grow as it likes.
    assert sent <= 2**20 + 2 * KERNEL_BUFFERS
    client.reset()
    await until(talk.left.is_set, SECOND, "the end of the engine's request")
    await serving.settled()


async def test_a_client_that_leaves_after_done_was_served(serving: Serving, engine: ScriptedEngine) -> None:
    """Clients stop reading at [DONE]; that is a success, not a client that left."""
    hold = asyncio.Event()

    async def late_end(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*EVENTS, DONE)
        await hold.wait()

    engine.answer(late_end)
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM)
        answer = await client.head()
        while not answer.body.endswith(DONE):
            answer.body += await client.chunk()
        client.leave()
        await serving.settled()
    hold.set()
    assert serving.outcomes() == {"served": 1}


async def test_many_clients_leaving_at_once(serving: Serving, engine: ScriptedEngine) -> None:
    engine.answer(some_events)
    clients: list[Client] = []
    for _ in range(100):
        clients.append(await serving.connect())
        await clients[-1].post(CHAT, STREAM)
    for client in clients:
        await client.head()
    for client in clients:
        client.reset()
    await until(lambda: all(talk.left.is_set() for talk in engine.talks), 2.0, "the end of all requests")
    await serving.settled()
    assert serving.outcomes() == {"client_gone": 100}
