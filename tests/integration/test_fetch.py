"""What health checks and their kind make of answers, on real sockets."""

import asyncio
import gzip
from collections.abc import AsyncIterator

import pytest

from engines.probes import Answer
from gateway.background.fetch import NOBODY, Fetch, NoAnswer
from gateway.balance.endpoint import Endpoint
from tests.running import free_port
from tests.support.scripted import ScriptedEngine, Talk, hang_up, reply, silent, whole
from tests.support.waiting import until


@pytest.fixture
async def fetch() -> AsyncIterator[Fetch]:
    made = Fetch()
    yield made
    await made.close()


async def test_the_engine_gets_the_path_below_its_address_its_name_and_its_key(
    fetch: Fetch, engine: ScriptedEngine
) -> None:
    seen: list[Talk] = []

    async def note(talk: Talk) -> None:
        seen.append(talk)
        await talk.send(whole(b"{}", status=207))

    engine.otherwise = note
    endpoint = Endpoint(f"{engine.url}/below")
    got = await fetch.get(endpoint, "/a b/ü?x=%20", {"authorization": "Bearer k"})
    posted = await fetch.post(endpoint, "/c", NOBODY, b'{"a": 1}')

    assert (got, posted) == (Answer(207, b"{}"), Answer(207, b"{}"))
    assert [(talk.request.method, talk.request.target, talk.request.body) for talk in seen] == [
        (b"GET", b"/below/a%20b/%C3%BC?x=%20", b""),
        (b"POST", b"/below/c", b'{"a": 1}'),
    ]
    assert seen[0].request.header("host") == endpoint.authority.encode()
    assert seen[0].request.header("authorization") == b"Bearer k"
    assert seen[1].request.header("content-type") == b"application/json"


async def test_an_answer_that_was_compressed_all_the_same_is_read(fetch: Fetch, engine: ScriptedEngine) -> None:
    engine.otherwise = reply(gzip.compress(b"plain"), headers=[b"content-encoding: gzip"])
    assert await fetch.get(Endpoint(engine.url), "/") == Answer(200, b"plain")

    engine.otherwise = reply(b"not gzip", headers=[b"content-encoding: gzip"])
    assert await fetch.get(Endpoint(engine.url), "/") == NoAnswer("no HTTP answer (it is not compressed as it says)")


async def test_a_name_with_several_addresses_is_tried_at_each(fetch: Fetch, engine: ScriptedEngine) -> None:
    """The scripted engine listens on one of those that localhost may have."""
    engine.on("/", reply(b"here"))
    assert await fetch.get(Endpoint(f"http://localhost:{engine.port}"), "/") == Answer(200, b"here")

    nobody = Endpoint(f"http://localhost:{free_port()}")
    assert await fetch.get(nobody, "/") == NoAnswer("nobody listens at its address", refused=True)


async def test_what_is_no_answer_says_so(fetch: Fetch, engine: ScriptedEngine) -> None:
    engine.otherwise = hang_up
    assert await fetch.get(Endpoint(engine.url), "/") == NoAnswer("no HTTP answer (the connection ended)")

    async def babble(talk: Talk) -> None:
        await talk.send(b"SSH-2.0-OpenSSH\r\n\r\n")

    engine.otherwise = babble
    assert await fetch.get(Endpoint(engine.url), "/") == NoAnswer("no HTTP answer (HttpParserError)")


async def test_each_question_has_a_connection_of_its_own_that_ends_with_it(
    fetch: Fetch, engine: ScriptedEngine
) -> None:
    engine.otherwise = reply(b"")
    for _ in range(3):
        await fetch.post(Endpoint(engine.url), "/", NOBODY, b"{}")

    assert engine.accepted == 3
    await until(lambda: engine.closed == 3, what="the end of all connections")


async def test_whoever_waits_when_it_ends_gets_no_answer(engine: ScriptedEngine) -> None:
    engine.otherwise = silent
    ending = Fetch()
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(ending.post(Endpoint(engine.url), "/", NOBODY, b"{}"))
        await engine.request()
        await ending.close()

    assert asked.result() == NoAnswer("the gateway asks no more")
