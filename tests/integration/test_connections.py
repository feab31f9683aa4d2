"""Connections to engines are made when needed, used again while fresh, and never trusted to be alive."""

import asyncio
import contextlib
import socket
from collections.abc import Callable

import pytest

from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Client, post
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, completion, deltas
from tests.support.scripted import ScriptedEngine, Talk, hang_up, in_turn, reply, reset, stream
from tests.support.serving import Serving
from tests.support.waiting import until

ANSWER = reply(completion())
STREAMED = stream(*deltas("a"), DONE)


async def ask(client: Client, body: Json = HELLO) -> int:
    await client.post(CHAT, body)
    answer = await client.answer()
    assert answer.whole
    return answer.status


def closed_port() -> int:
    with contextlib.closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


async def test_one_connection_serves_many_requests(client: Client, engine: ScriptedEngine, serving: Serving) -> None:
    engine.answer(in_turn(ANSWER, STREAMED, reply(b"{}", status=400), ANSWER, STREAMED, reply(b"", status=500), ANSWER))
    bodies = [HELLO, STREAM, STREAM, HELLO, STREAM, HELLO, HELLO]

    assert [await ask(client, body) for body in bodies] == [200, 200, 400, 200, 200, 502, 200]
    assert engine.accepted == 1
    assert [link.pool.idle for link in serving.plane.endpoints.values()] == [1]


async def test_no_connection_outlives_what_the_engine_is_said_to_keep(gateway: Gateway, engine: ScriptedEngine) -> None:
    """With a second less than that; here nothing is left, so that each request gets a connection of its own."""
    engine.answer(ANSWER)
    serving = await gateway(one_engine(engine, keep_alive="1s"))
    async with await serving.connect() as client:
        assert [await ask(client) for _ in range(3)] == [200, 200, 200]
    assert engine.accepted == 3


async def test_no_more_connections_than_requests_at_once(serving: Serving, engine: ScriptedEngine) -> None:
    gate = asyncio.Event()

    async def gated(talk: Talk) -> None:
        await gate.wait()
        await ANSWER(talk)

    engine.answer(gated)

    async def some(number: int) -> None:
        async with await serving.connect() as client:
            for _ in range(number):
                assert await ask(client) == 200

    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(some(5))
        await engine.request(10)
        gate.set()
    assert len(engine.requests) == 50
    assert engine.accepted <= 10
    await serving.settled()


async def test_a_connection_that_the_engine_closed_while_idle_is_noticed(
    client: Client, engine: ScriptedEngine, serving: Serving
) -> None:
    engine.answer(ANSWER)
    assert await ask(client) == 200
    engine.lines[0].transport.close()
    await until(lambda: [link.pool.open for link in serving.plane.endpoints.values()] == [0])

    assert await ask(client) == 200
    assert engine.accepted == 2
    assert serving.retries() == {}


@pytest.mark.parametrize("death", [hang_up, reset], ids=["fin", "reset"])
@pytest.mark.parametrize("body", [HELLO, STREAM], ids=["whole", "streamed"])
async def test_a_request_lost_on_a_stale_connection_is_sent_again(
    client: Client, engine: ScriptedEngine, serving: Serving, death: Json, body: Json
) -> None:
    """The engine closes its idle connection just when the request is on its way: nobody has worked on it."""
    good = STREAMED if body is STREAM else ANSWER
    engine.answer(in_turn(good, death, good))
    assert await ask(client, body) == 200
    await client.post(CHAT, body)
    answer = await client.answer()

    assert answer.status == 200
    assert answer.whole
    assert answer.header("x-turnout-attempts") == "1"
    assert [request.connection for request in engine.requests] == [1, 1, 2]
    assert serving.retries() == {"stale": 1}
    await serving.settled()


async def test_a_request_is_sent_again_for_staleness_only_once(
    client: Client, engine: ScriptedEngine, serving: Serving
) -> None:
    engine.answer(in_turn(ANSWER, hang_up, hang_up, hang_up))
    assert await ask(client) == 200

    assert await ask(client) == 502
    assert len(engine.requests) == 3
    await serving.settled()


async def test_a_new_connection_that_dies_is_not_stale(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(hang_up)

    assert await ask(client) == 502
    assert len(engine.requests) == 1


async def test_a_connection_that_dies_after_its_first_byte_is_not_stale(client: Client, engine: ScriptedEngine) -> None:
    async def one_byte(talk: Talk) -> None:
        await talk.send(b"H")
        talk.fin()

    engine.answer(in_turn(ANSWER, one_byte))
    assert await ask(client) == 200

    assert await ask(client) == 502
    assert len(engine.requests) == 2


async def test_a_connection_stays_open_both_ways_while_the_engine_works(
    serving: Serving, engine: ScriptedEngine
) -> None:
    """vLLM takes a sender that closes its half for one that has left, and drops the request."""
    finish = asyncio.Event()

    async def slow(talk: Talk) -> None:
        await finish.wait()
        await ANSWER(talk)

    engine.answer(in_turn(slow, ANSWER))
    async with await serving.connect() as waiting, await serving.connect() as quick:
        await waiting.post(CHAT, HELLO)
        first = await engine.request(1)
        await quick.post(CHAT, HELLO)
        assert (await quick.answer()).status == 200  # time enough for a close to arrive
        assert not first.left.is_set()
        finish.set()
        assert (await waiting.answer()).status == 200


async def test_an_engine_that_closes_after_each_answer(client: Client, engine: ScriptedEngine) -> None:
    async def closing(talk: Talk) -> None:
        await reply(completion(), headers=[b"Connection: close"])(talk)
        talk.fin()

    engine.answer(closing)

    assert [await ask(client) for _ in range(3)] == [200] * 3
    assert engine.accepted == 3


async def test_an_engine_that_says_close_but_does_not_is_believed(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion(), headers=[b"Connection: close"]))

    assert [await ask(client) for _ in range(2)] == [200] * 2
    assert engine.accepted == 2


async def test_a_connection_is_given_up_before_the_engine_would(
    client: Client, engine: ScriptedEngine, serving: Serving
) -> None:
    """All three engines close after 5 idle seconds; ours is gone a second before."""
    engine.answer(ANSWER)
    assert await ask(client) == 200
    begun = serving.plane.loop.time()
    await until(lambda: engine.closed == 1, 5.0, "the end of the idle connection")

    assert 3.5 < serving.plane.loop.time() - begun < 4.9


async def test_bytes_on_an_idle_connection_end_it(client: Client, engine: ScriptedEngine, serving: Serving) -> None:
    engine.answer(ANSWER)
    assert await ask(client) == 200
    engine.lines[0].transport.write(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
    await until(lambda: [link.pool.open for link in serving.plane.endpoints.values()] == [0])

    assert await ask(client) == 200


async def test_nobody_listens(gateway: Gateway) -> None:
    serving = await gateway(
        {
            "engines": {"e": {"kind": "vllm", "urls": [f"http://127.0.0.1:{closed_port()}"]}},
            "models": {"m": {"engine": "e"}},
        }
    )
    for body in (HELLO, STREAM):
        async with await serving.connect() as client:
            await client.post(CHAT, body)
            answer = await client.answer()
        assert answer.status == 503
        assert (answer.error["type"], answer.error["code"]) == ("server_error", "engine_unavailable")
        assert int(answer.header("retry-after") or "") >= 1
        assert answer.header("x-should-retry") == "true"
        assert "127.0.0.1" not in answer.body.decode()
    await serving.settled()
    assert serving.outcomes() == {"unavailable": 2}


async def test_an_address_that_does_not_resolve(gateway: Gateway, engine: ScriptedEngine) -> None:
    settings = one_engine(engine)
    settings["engines"]["e"]["urls"].insert(0, "http://no-such-host.invalid:1")
    serving = await gateway(settings)
    engine.answer(ANSWER)
    async with await serving.connect() as client:
        assert [await ask(client) for _ in range(3)] == [200] * 3
    await serving.settled()


async def test_a_refused_replica_is_never_the_answer(gateway: Gateway, engine: ScriptedEngine) -> None:
    """The first request already is answered by the other one (cases D53)."""
    settings = one_engine(engine)
    dead = f"http://127.0.0.1:{closed_port()}"
    settings["engines"]["e"]["urls"] = [dead, engine.url]
    settings["models"]["m"]["policy"] = "round_robin"
    settings["retry"] = {"attempts": 2}
    serving = await gateway(settings)
    engine.answer(in_turn(*[ANSWER, STREAMED] * 5))
    async with await serving.connect() as client:
        assert [await ask(client, body) for body in [HELLO, STREAM] * 5] == [200] * 10
    await serving.settled()
    assert serving.retries()["refused"] >= 1


async def test_every_refused_replica_is_tried_whatever_the_number_of_attempts(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    """A refused connection costs no attempt: no work was done (CONTRACT, section 5)."""
    settings = one_engine(engine)
    settings["engines"]["e"]["urls"] = [f"http://127.0.0.1:{closed_port()}" for _ in range(5)] + [engine.url]
    settings["retry"] = {"attempts": 1}
    serving = await gateway(settings)
    engine.answer(ANSWER)
    async with await serving.connect() as client:
        assert [await ask(client) for _ in range(6)] == [200] * 6
    await serving.settled()


async def test_replicas_take_turns(gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine) -> None:
    settings = one_engine(engine)
    settings["engines"]["e"]["urls"].append(other.url)
    settings["models"]["m"]["policy"] = "round_robin"
    serving = await gateway(settings)
    for one in (engine, other):
        one.answer(ANSWER)
    async with await serving.connect() as client:
        for _ in range(10):
            assert await ask(client) == 200

    assert len(engine.requests) == len(other.requests) == 5


async def test_a_full_replica_is_left_alone_and_a_full_engine_says_so(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """Where nobody may wait for room."""
    settings = one_engine(engine, max_in_flight=1) | {"admission": {"queue": 0}}
    settings["engines"]["e"]["urls"].append(other.url)
    serving = await gateway(settings)
    gate = asyncio.Event()

    async def gated(talk: Talk) -> None:
        await gate.wait()
        await ANSWER(talk)

    for one in (engine, other):
        one.answer(gated)
    async with await serving.connect() as first, await serving.connect() as second, await serving.connect() as third:
        for client in (first, second):
            await client.post(CHAT, HELLO)
        await engine.request()
        await other.request()
        await third.post(CHAT, HELLO)
        answer = await third.answer()
        assert answer.status == 503
        assert answer.error["code"] == "engine_overloaded"
        assert int(answer.header("retry-after") or "") >= 1
        gate.set()
        assert [(await client.answer()).status for client in (first, second)] == [200, 200]
    await serving.settled()


# ---- the client's connection


async def test_a_client_keeps_its_connection_through_errors(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(in_turn(ANSWER, reply(b"", status=500), STREAMED, reply(b"{}", status=400), ANSWER))
    statuses = []
    for body in (HELLO, {"model": "nope"}, HELLO, b"{", STREAM, HELLO, {"model": "vectors"}, HELLO):
        await client.post(CHAT, body)
        answer = await client.answer()
        assert answer.header("connection") is None
        statuses.append(answer.status)

    assert statuses == [200, 404, 502, 400, 200, 400, 400, 200]


async def test_a_client_may_ask_for_the_end_of_its_connection(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(ANSWER)
    await client.post(CHAT, HELLO, [("connection", "close")])
    answer = await client.answer()

    assert answer.status == 200
    assert answer.header("connection") == "close"
    assert await client.closed()


@pytest.mark.parametrize("bodies", [[HELLO] * 5, [STREAM] * 3, [HELLO, STREAM, {"model": "nope"}, HELLO]])
async def test_pipelined_requests_are_answered_in_order(
    client: Client, engine: ScriptedEngine, serving: Serving, bodies: list[Json]
) -> None:
    async def by_kind(talk: Talk) -> None:
        await (STREAMED if talk.request.json.get("stream") else ANSWER)(talk)

    engine.answer(by_kind)
    ids = [f"request-{number}" for number in range(len(bodies))]
    requests = [post(CHAT, body, [("x-request-id", one)]) for body, one in zip(bodies, ids, strict=True)]
    await client.send(b"".join(requests))
    answers = [await client.answer() for _ in bodies]

    assert [answer.header("x-request-id") for answer in answers] == ids
    assert [answer.status for answer in answers] == [200 if body["model"] == "m" else 404 for body in bodies]
    await serving.settled()


async def test_a_pipelined_request_waits_for_the_one_before(client: Client, engine: ScriptedEngine) -> None:
    gate = asyncio.Event()

    async def gated(talk: Talk) -> None:
        await gate.wait()
        await ANSWER(talk)

    engine.answer(gated)
    await client.send(post(CHAT, HELLO) + post(CHAT, HELLO | {"model": "nope"}))
    await engine.request()
    gate.set()

    assert [(await client.answer()).status for _ in range(2)] == [200, 404]


async def test_a_client_that_reads_no_answers_gets_no_more_requests_served(
    serving: Serving, engine: ScriptedEngine
) -> None:
    """Small requests with large answers, thousands of them in advance: memory stays bounded."""
    engine.answer(reply(completion("x" * 1_000_000)))
    client = await serving.connect(receive=4096)
    client.stop_reading()
    pipeline = post(CHAT, HELLO) * 300
    client.writer.write(pipeline)
    before = -1
    while before != len(engine.requests):
        before = len(engine.requests)
        end = serving.plane.loop.time() + 0.3
        await until(passed(serving, end))

    assert 1 <= len(engine.requests) < 40
    served = len(engine.requests)
    client.go_on_reading()
    async with client:
        for _ in range(served + 5):
            assert (await client.answer()).status == 200


def passed(serving: Serving, time: float) -> Callable[[], bool]:
    return lambda: serving.plane.loop.time() >= time


async def test_http_1_0(serving: Serving, engine: ScriptedEngine) -> None:
    engine.answer(ANSWER)
    body = b'{"model":"m","messages":[]}'
    async with await serving.connect() as client:
        await client.send(b"POST %s HTTP/1.0\r\ncontent-length: %d\r\n\r\n%s" % (CHAT.encode(), len(body), body))
        answer = await client.answer()
        assert answer.status == 200
        assert await client.closed()


async def test_expect_continue(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(ANSWER)
    request = post(CHAT, HELLO, [("expect", "100-continue")])
    head, body = request.split(b"\r\n\r\n", 1)
    await client.send(head + b"\r\n\r\n")
    assert (await client.line()).startswith(b"HTTP/1.1 100 ")
    assert await client.line() == b"\r\n"
    await client.send(body)

    assert (await client.answer()).status == 200
    assert engine.requests[0].header("expect") is None


# ---- the limit on bodies


@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "chunked"])
async def test_a_body_over_the_limit(gateway: Gateway, engine: ScriptedEngine, chunked: bool) -> None:
    serving = await gateway(one_engine(engine, server={"max_body": 4096}))
    async with await serving.connect() as client:
        await client.send(post(CHAT, HELLO | {"x": "y" * 5000}, chunked=chunked))
        answer = await client.answer()

    assert answer.status == 413
    assert answer.error["type"] == "invalid_request_error"
    assert answer.error["code"] == "request_too_large"
    assert engine.requests == []
    await serving.settled()


@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "chunked"])
async def test_a_body_at_the_limit(gateway: Gateway, engine: ScriptedEngine, chunked: bool) -> None:
    body = b'{"model":"m","messages":[],"user":"%s"}'
    body %= b"x" * (4096 - len(body) + 2)
    assert len(body) == 4096
    engine.answer(ANSWER)
    serving = await gateway(one_engine(engine, server={"max_body": 4096}))
    async with await serving.connect() as client:
        await client.send(post(CHAT, body, chunked=chunked))
        assert (await client.answer()).status == 200
        await client.send(post(CHAT, body + b" ", chunked=chunked))
        assert (await client.answer()).status == 413


async def test_a_body_said_to_be_too_large_is_refused_before_it_comes(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, server={"max_body": 4096}))
    async with await serving.connect() as client:
        await client.send(b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: 999999999\r\n\r\n" % CHAT.encode())

        assert (await client.answer()).status == 413


@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "chunked"])
async def test_a_client_still_sending_a_large_body_can_read_the_refusal(
    gateway: Gateway, engine: ScriptedEngine, chunked: bool
) -> None:
    """A connection closed with unread bytes is reset, and the reset would throw away the answer."""
    serving = await gateway(one_engine(engine, server={"max_body": 4096}))
    async with await serving.connect() as client:
        client.writer.write(post(CHAT, b" " * 8_000_000, chunked=chunked))
        answer = await client.answer()

    assert answer.status == 413
    assert answer.whole
    await serving.settled()
