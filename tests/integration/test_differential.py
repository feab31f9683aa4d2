"""The same bytes to three servers: both carriers of the gateway, and uvicorn with a plain application.

What the protocol carrier reads by itself must never be more than what uvicorn reads: a request that one of them takes
and the other refuses is how requests are smuggled. It may refuse more, and then it closes.
"""

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from tests.integration.differential import SENTINEL, Heard, good, heard, mutated, odd, split
from tests.support.serving import Serving
from tests.support.waiting import PATIENCE, within

SEQUENCES = 900
AT_ONCE = 60
QUIET = 0.5
"""Seconds without a byte after which a server is taken to wait for more; only sequences that end in the middle of a
request come to that."""

Servers = dict[str, int]


async def plain(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers as the gateway does to a model that it does not have."""
    assert scope["type"] == "http"
    body = b""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body += message.get("body", b"")
        more = message.get("more_body", False)
    status, text = 404, b"nothing"
    if scope["method"] == "POST" and scope["path"] in {"/v1/chat/completions", "/v1/completions"}:
        try:
            model = msgspec.json.decode(body, type=dict[str, msgspec.Raw]).get("model", msgspec.Raw(b'""'))
            name = msgspec.json.decode(model, type=str)
            text = f"model '{name}'".encode()
        except msgspec.DecodeError:
            status, text = 400, b"bad"
    headers = [(b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})


@pytest.fixture
async def servers(nothing_unheard: None) -> AsyncIterator[Servers]:
    """The three servers' ports."""
    gateways = {carrier: Serving({}, carrier, whole=True) for carrier in ("asgi", "protocol")}
    for gateway in gateways.values():
        await gateway.start()
    config = uvicorn.Config(plain, http="httptools", ws="none", lifespan="off", log_config=None, access_log=False)
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    await within(server.startup(sockets=[sock]), what="the start of uvicorn")
    yield {"plain": port} | {name: gateway.port for name, gateway in gateways.items()}
    for listening in server.servers:
        listening.close()
    for connection in list(server.server_state.connections):
        connection.transport.abort()
    for gateway in gateways.values():
        await gateway.stop()


async def talk(port: int, pieces: list[bytes], quiet: float) -> Heard:
    """Sends the pieces and the sentinel, and reads until the server closes or falls silent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = b""
    closed = False
    try:
        for piece in (*pieces, SENTINEL):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        while True:
            async with asyncio.timeout(quiet):
                got = await reader.read(65536)
            if not got:
                closed = True
                break
            data += got
    except TimeoutError:
        pass
    except ConnectionError:
        closed = True
    finally:
        writer.transport.abort()
    return heard(data, closed=closed)


async def compare(servers: Servers, data: bytes, rng: random.Random, quiet: float) -> tuple[Heard, Heard, Heard]:
    pieces = split(rng, data)
    plain_heard, asgi, protocol = await asyncio.gather(
        *(talk(servers[name], pieces, quiet) for name in ("plain", "asgi", "protocol"))
    )
    return plain_heard, asgi, protocol


async def in_batches(
    servers: Servers,
    make: Callable[[random.Random, int], bytes],
    check: Callable[[bytes, Heard, Heard, Heard], None],
    quiet: float,
) -> None:
    rng = random.Random(20261201)
    sequences = [make(rng, 2 * number) for number in range(SEQUENCES)]
    for start in range(0, SEQUENCES, AT_ONCE):
        batch = sequences[start : start + AT_ONCE]
        results = await asyncio.gather(
            *(compare(servers, data, random.Random(start + i), quiet) for i, data in enumerate(batch))
        )
        for i, (data, answers) in enumerate(zip(batch, results, strict=True)):
            try:
                check(data, *answers)
            except AssertionError:
                # On a busy machine a server may be silent for longer and still answer: asked again, alone, with time.
                check(data, *await compare(servers, data, random.Random(start + i), PATIENCE))


async def test_good_requests_one_after_the_other_are_read_alike(servers: Servers) -> None:
    """Pipelines of well-formed requests: the same bodies in the same order, then the close that was asked for."""

    def pipeline(rng: random.Random, number: int) -> bytes:
        return b"".join(good(rng, 10 * number + i) for i in range(rng.randint(1, 4)))

    def check(data: bytes, plain_heard: Heard, asgi: Heard, protocol: Heard) -> None:
        assert asgi.models == protocol.models == plain_heard.models, data
        assert asgi.statuses == protocol.statuses == plain_heard.statuses, data
        assert asgi.closed, data
        assert protocol.closed, data

    await in_batches(servers, pipeline, check, PATIENCE)


@pytest.mark.parametrize("make", [odd, mutated])
async def test_nothing_is_read_that_uvicorn_would_refuse(
    servers: Servers, make: Callable[[random.Random, int], bytes]
) -> None:
    """Odd and damaged requests: the protocol carrier takes what uvicorn takes, or refuses and closes."""

    def check(data: bytes, plain_heard: Heard, asgi: Heard, protocol: Heard) -> None:
        assert asgi.models == plain_heard.models, data
        if protocol.models != plain_heard.models:
            assert protocol.models == plain_heard.models[: len(protocol.models)], data
            assert protocol.refused, data
            assert protocol.closed, data

    await in_batches(servers, make, check, QUIET)
