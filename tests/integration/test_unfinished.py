"""Clients that do not finish what they began, or never spoke HTTP: told in the one shape, and closed."""

import asyncio

import pytest

from gateway.proxy.deadlines import Timed
from gateway.proxy.guarded import BODY_TIME, HEAD_TIME
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer, Client
from tests.support.openai_bytes import CHAT, HELLO, completion
from tests.support.scripted import ScriptedEngine, reply, silent
from tests.support.serving import Serving
from tests.support.waiting import until

TLS = bytes.fromhex("16030100c8010000c40303") + bytes(64)
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def connections(serving: Serving) -> list[Timed]:
    return [entry for entry in serving.plane.deadlines.entries() if hasattr(entry, "data_received")]


async def grow_old(serving: Serving, seconds: float) -> None:
    """What the wheel does to the only connection in that time."""
    loop = asyncio.get_running_loop()
    async with await serving.connect() as other:  # what was sent before has been read when this is answered
        await other.post(CHAT, b"{")
        await other.answer()
    await until(lambda: len(connections(serving)) == 1, what="the connection")
    for when in (0.0, seconds / 2, seconds):
        for one in connections(serving):
            one.on_deadline(loop.time() + when)


async def told(client: Client) -> Answer:
    answer = await client.answer()
    assert await client.reader.read() == b"", "the connection stays open"
    headers = dict(answer.headers)
    assert headers["content-type"] == "application/json"
    assert headers["x-request-id"]
    assert headers["connection"] == "close"
    return answer


@pytest.mark.parametrize(
    "beginning",
    [
        b"G",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-a: ",
        b"POST /admin/engines/e/drain HTTP/1.1\r\n",
        b"POST /v1/chat/co",
    ],
)
async def test_a_head_that_does_not_end_is_given_up(serving: Serving, beginning: bytes) -> None:
    async with await serving.connect() as client:
        await client.send(beginning)
        await grow_old(serving, HEAD_TIME + 1)
        answer = await told(client)

    assert (answer.status, answer.error["code"]) == (408, "request_timeout")


async def test_a_head_on_a_used_connection_is_given_up_too(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine), whole=True)
    async with await serving.connect() as client:
        for line in (b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n"):
            await client.send(line)
            assert (await client.answer()).status == 200
        await client.send(b"\r\n")
        await client.send(b"GET /healthz HT")
        await grow_old(serving, HEAD_TIME + 1)
        answer = await told(client)

    assert answer.status == 408


@pytest.mark.parametrize("path", [CHAT, "/admin/engines/e/drain"])
async def test_a_body_that_does_not_come_is_given_up(gateway: Gateway, engine: ScriptedEngine, path: str) -> None:
    serving = await gateway(one_engine(engine), whole=True)
    async with await serving.connect() as client:
        await client.send(f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\n{{".encode())
        await grow_old(serving, 2 * BODY_TIME + 2)
        answer = await told(client)

    assert (answer.status, answer.error["code"]) == (408, "request_timeout")


async def test_a_long_answer_is_not_the_clients_fault(serving: Serving, engine: ScriptedEngine) -> None:
    engine.answer(silent)
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO)
        await engine.request()
        for one in connections(serving):
            for when in (0.0, 31.0, 45.0, 58.0):
                one.on_deadline(asyncio.get_running_loop().time() + when)
        assert sum(serving.in_flight) > 0
        assert not client.reader.at_eof()


async def test_a_quiet_connection_may_be_used_again(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion()))
    serving = await gateway(one_engine(engine, server={"keep_alive": "75s"}), whole=True)
    async with await serving.connect() as client:
        await client.send(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await client.answer()).status == 200
        await grow_old(serving, HEAD_TIME + 5)
        await client.post(CHAT, HELLO)

        assert (await client.answer()).status == 200


@pytest.mark.parametrize(
    "data", [TLS, HTTP2, b"garbage\r\n\r\n", b"\0\1\r\n\r\n"], ids=["tls", "http2", "text", "bytes"]
)
async def test_what_is_not_http_is_told_so(serving: Serving, data: bytes) -> None:
    async with await serving.connect() as client:
        await client.send(data)
        answer = await told(client)

    assert (answer.status, answer.error["code"]) == (400, "invalid_http")
    assert "TLS" in answer.error["message"]
