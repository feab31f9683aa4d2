"""A pool's connections over real sockets."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.proxy.connection import Connection
from gateway.proxy.upstream import ConnectionPool
from tests.support.scripted import ScriptedEngine, Talk, in_turn, packets, reply, silent
from tests.support.waiting import until, within

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n"


class Caller:
    """Sends one request and notes what it hears."""

    def __init__(self, pool: ConnectionPool) -> None:
        self.pool = pool
        self.connection: Connection | None = None
        self.body = b""
        self.parts = 0
        self.complete = False
        self.refused: OSError | None = None
        self.lost: list[Exception | None] = []

    def call(self) -> "Caller":
        connection = self.pool.take(asyncio.get_running_loop().time())
        if connection is None:
            self.pool.connect(self)
        else:
            self.on_connected(connection)
        return self

    def on_connected(self, connection: Connection) -> None:
        self.connection = connection
        connection.send(self, HEAD, b"{}")

    def on_refused(self, error: OSError) -> None:
        self.refused = error

    def on_answer(self, connection: Connection, data: bytes, *, complete: bool) -> None:
        assert connection is self.connection
        assert not self.complete, "heard after the end"
        assert self.lost == [], "heard after the loss"
        self.body += data
        self.parts += 1
        self.complete = complete

    def on_lost(self, connection: Connection, error: Exception | None) -> None:
        assert connection is self.connection
        assert not self.complete
        self.lost.append(error)

    async def done(self) -> "Caller":
        await until(lambda: self.complete or bool(self.lost) or self.refused is not None, what="the end of the call")
        return self


@pytest.fixture
async def engine() -> AsyncIterator[ScriptedEngine]:
    async with ScriptedEngine() as started:
        yield started


@pytest.fixture
async def pool(engine: ScriptedEngine) -> AsyncIterator[ConnectionPool]:
    made = ConnectionPool(asyncio.get_running_loop(), ("127.0.0.1", engine.port), connect_timeout=1.0)
    yield made
    made.close()
    await engine.stop()
    await until(lambda: made.open == 0, what="the end of all connections")


async def test_the_head_is_read(pool: ConnectionPool, engine: ScriptedEngine) -> None:
    headers = [b"Retry-After: 7", b"Content-Encoding: GZIP", b"x-unknown: y"]
    engine.answer(reply(b"hello", status=503, content_type=b"text/x", headers=headers))
    caller = await Caller(pool).call().done()

    assert caller.body == b"hello"
    assert caller.connection is not None
    connection = caller.connection
    assert (connection.status, connection.content_type) == (503, b"text/x")
    assert (connection.retry_after, connection.encoding) == (b"7", b"gzip")


async def test_nothing_of_one_answer_stays_for_the_next(pool: ConnectionPool, engine: ScriptedEngine) -> None:
    engine.answer(
        in_turn(
            reply(b"a", status=429, headers=[b"retry-after: 7", b"content-encoding: gzip"]),
            packets(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
        )
    )
    first = await Caller(pool).call().done()
    second = await Caller(pool).call().done()

    assert second.connection is first.connection
    assert second.connection is not None
    assert second.body == b""
    assert (second.connection.status, second.connection.reused) == (200, True)
    assert (second.connection.retry_after, second.connection.encoding) == (b"", b"")


class Overwhelmed(Caller):
    """Its client cannot take the last bytes at once."""

    def on_answer(self, connection: Connection, data: bytes, *, complete: bool) -> None:
        super().on_answer(connection, data, complete=complete)
        connection.pause()


async def test_who_pauses_with_the_last_bytes_pauses_nobody_else(pool: ConnectionPool, engine: ScriptedEngine) -> None:
    """The connection is another one's by then, and nobody would ever resume it."""
    engine.answer(reply(b"hello"))
    first = await Overwhelmed(pool).call().done()
    second = await Caller(pool).call().done()

    assert second.connection is first.connection
    assert second.body == b"hello"


async def test_the_connection_used_last_is_used_first(pool: ConnectionPool, engine: ScriptedEngine) -> None:
    gate = asyncio.Event()

    async def gated(talk: Talk) -> None:
        await gate.wait()
        await reply(b"{}")(talk)

    engine.answer(gated)
    callers = [Caller(pool).call() for _ in range(3)]
    await engine.request(3)
    gate.set()
    for caller in callers:
        await caller.done()
    assert (pool.open, pool.idle) == (3, 3)

    again = await Caller(pool).call().done()
    last = await Caller(pool).call().done()
    assert again.connection is last.connection
    assert pool.open == 3


async def test_an_abandoned_call_is_heard_of_no_more(pool: ConnectionPool, engine: ScriptedEngine) -> None:
    engine.answer(silent)
    caller = Caller(pool).call()
    talk = await engine.request()
    assert caller.connection is not None
    caller.connection.abandon()
    await within(talk.left.wait(), what="the end of the request")
    await until(lambda: pool.open == 0)

    assert (caller.complete, caller.lost, caller.body) == (False, [], b"")


async def test_nobody_listens(engine: ScriptedEngine) -> None:
    port = engine.port
    await engine.stop()
    pool = ConnectionPool(asyncio.get_running_loop(), ("127.0.0.1", port))
    caller = await Caller(pool).call().done()

    assert isinstance(caller.refused, ConnectionRefusedError)
    assert pool.open == 0


async def test_a_call_that_is_connecting_survives_the_retirement_of_its_pool(
    pool: ConnectionPool, engine: ScriptedEngine
) -> None:
    """A new configuration replaces the pools of the old one, and calls in flight go on."""
    engine.answer(reply(b"{}"))
    caller = Caller(pool).call()
    pool.retire()
    await caller.done()

    assert caller.complete
    await until(lambda: pool.open == 0)


async def test_a_busy_connection_ends_after_its_call_when_the_pool_retires(
    pool: ConnectionPool, engine: ScriptedEngine
) -> None:
    gate = asyncio.Event()

    async def gated(talk: Talk) -> None:
        await gate.wait()
        await reply(b"{}")(talk)

    engine.answer(gated)
    caller = Caller(pool).call()
    await engine.request()
    pool.retire()
    gate.set()
    await caller.done()

    assert caller.complete
    assert pool.idle == 0
    await until(lambda: pool.open == 0, what="the end of the connection")


async def test_a_paused_connection_reads_no_more(pool: ConnectionPool, engine: ScriptedEngine) -> None:
    part = b"x" * 60_000

    async def flood(talk: Talk) -> None:
        await talk.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (len(part) * 300))
        await talk.send(*[part] * 300)

    engine.answer(flood)
    caller = Caller(pool).call()
    talk = await engine.request()
    assert caller.connection is not None
    caller.connection.pause()
    await until(lambda: not talk.line.drained.is_set(), what="back-pressure")
    heard = caller.parts
    caller.connection.pause()
    for _ in range(50):
        await asyncio.sleep(0)
    assert caller.parts == heard
    caller.connection.resume()
    caller.connection.resume()
    await caller.done()

    assert len(caller.body) == len(part) * 300
    assert pool.idle == 1


@pytest.mark.parametrize("position", range(1, 76, 3))
async def test_an_answer_in_two_packets(pool: ConnectionPool, engine: ScriptedEngine, position: int) -> None:
    data = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"
    engine.answer(packets(data[:position], data[position:]))
    caller = await Caller(pool).call().done()

    assert caller.body == b"abcdefg"
    assert pool.idle == 1
