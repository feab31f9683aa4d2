"""Engines whose URL stands for all addresses of a name."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from gateway.background.resolver import Resolver, look_up
from gateway.balance.endpoint import EndpointState
from tests.integration.conftest import Gateway
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, completion, deltas
from tests.support.scripted import ScriptedEngine, Talk, reply
from tests.support.serving import Serving
from tests.support.waiting import until

EVENTS = deltas("a", "b")


class Names:
    """A name server that says what a test wants."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> tuple[str, ...]:
        self.asked.append((host, port))
        if not self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return self.addresses


@pytest.fixture
async def replicas(nothing_unheard: None) -> AsyncIterator[Callable[[], Awaitable[list[ScriptedEngine]]]]:
    """Starts two engines on one port of two addresses of this machine."""
    started: list[ScriptedEngine] = []

    async def start() -> list[ScriptedEngine]:
        first = await ScriptedEngine().start()
        started.append(first)
        started.append(await ScriptedEngine().start(first.port, "127.0.0.2"))
        return started

    yield start
    for engine in started:
        await engine.stop()


def named(port: int, **engine: Json) -> dict[str, Json]:
    return {
        "engines": {"e": {"kind": "vllm", "urls": [f"dns+http://engines.test:{port}"], **engine}},
        "models": {"m": {"engine": "e", "policy": "round_robin"}},
    }


def urls(serving: Serving) -> list[str]:
    return [endpoint.url for endpoint in serving.plane.engines["e"].engine.endpoints]


async def ask(serving: Serving) -> int:
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO)
        return (await client.answer()).status


Replicas = Callable[[], Awaitable[list[ScriptedEngine]]]


async def test_replicas_come_and_go_with_their_name(gateway: Gateway, replicas: Replicas) -> None:
    """Requests say the name, not the address; one line in the log per change."""
    first, second = await replicas()
    for one in (first, second):
        one.answer(reply(completion()))
    serving = await gateway(named(first.port))
    names = Names("127.0.0.1")
    resolver = Resolver(lambda: serving.plane, names)
    assert await ask(serving) == 503
    with capture_logs() as logs:
        await resolver.look()
        await resolver.look()
        assert [await ask(serving) for _ in range(4)] == [200] * 4
        names.addresses = ("127.0.0.1", "127.0.0.2")
        await resolver.look()
        assert [await ask(serving) for _ in range(4)] == [200] * 4
        names.addresses = ("127.0.0.2",)
        await resolver.look()
        before = len(first.requests)
        assert [await ask(serving) for _ in range(4)] == [200] * 4

    assert len(first.requests) == before
    assert second.requests[0].header("host") == f"engines.test:{first.port}".encode()
    assert set(names.asked) == {("engines.test", first.port)}
    assert [(line["added"], line["removed"]) for line in logs if line["event"] == "endpoints changed"] == [
        (f"http://127.0.0.1:{first.port}", ""),
        (f"http://127.0.0.2:{first.port}", ""),
        ("", f"http://127.0.0.1:{first.port}"),
    ]
    await serving.settled()


async def test_what_runs_on_an_address_that_goes_is_finished(gateway: Gateway, replicas: Replicas) -> None:
    first, second = await replicas()
    go = asyncio.Event()

    async def slow(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*EVENTS[:3])
        await go.wait()
        await talk.chunk(*EVENTS[3:], DONE)
        await talk.end_chunks()

    first.answer(slow)
    second.answer(reply(completion()))
    serving = await gateway(named(first.port))
    names = Names("127.0.0.1")
    resolver = Resolver(lambda: serving.plane, names)
    await resolver.look()
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM)
        answer = await client.head()
        leaving = serving.plane.engines["e"].engine.endpoints[0]
        names.addresses = ("127.0.0.2",)
        await resolver.look()
        assert leaving.state is EndpointState.DRAINING
        assert leaving in serving.plane.endpoints
        assert await ask(serving) == 200
        go.set()
        await client.body(answer)

    assert answer.events[-1] == b"[DONE]"
    await serving.settled()
    await resolver.look()
    assert urls(serving) == [f"http://127.0.0.2:{first.port}"]
    assert leaving not in serving.plane.endpoints


async def test_a_name_that_is_lost_keeps_its_addresses(gateway: Gateway, replicas: Replicas) -> None:
    """A dead name server stops no engine; it is named once."""
    first, _ = await replicas()
    first.answer(reply(completion()))
    serving = await gateway(named(first.port))
    names = Names("127.0.0.1")
    resolver = Resolver(lambda: serving.plane, names)
    await resolver.look()
    with capture_logs() as logs:
        names.addresses = ()
        await resolver.look()
        await resolver.look()

    assert await ask(serving) == 200
    assert [line["event"] for line in logs] == ["a name cannot be resolved"]


async def test_a_changed_configuration_keeps_what_is_known_of_names(gateway: Gateway, replicas: Replicas) -> None:
    """Otherwise every request would fail until the name is looked up again."""
    first, second = await replicas()
    for one in (first, second):
        one.answer(reply(completion()))
    serving = await gateway(named(first.port), whole=True)
    await Resolver(lambda: serving.plane, Names("127.0.0.1")).look()
    serving.apply(named(first.port, max_in_flight=5))

    assert await ask(serving) == 200


async def test_the_gateway_looks_its_names_up_by_itself(gateway: Gateway, engine: ScriptedEngine) -> None:
    """With the system's own resolver, before the first request."""
    engine.answer(reply(completion()))
    settings = named(engine.port)
    settings["engines"]["e"]["urls"] = [f"dns+http://localhost:{engine.port}"]
    serving = await gateway(settings, whole=True)

    assert f"http://127.0.0.1:{engine.port}" in urls(serving)
    assert await ask(serving) == 200


async def test_a_name_that_comes_with_a_new_configuration_is_looked_up_soon(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    settings = named(engine.port)
    serving = await gateway(settings | {"engines": {"e": {"kind": "vllm", "urls": [engine.url]}}}, whole=True)
    settings["engines"]["e"]["urls"] = [f"dns+http://localhost:{engine.port}"]
    serving.apply(settings)

    await until(lambda: f"http://127.0.0.1:{engine.port}" in urls(serving), what="the address")


async def test_the_system_knows_this_machine() -> None:
    assert await look_up("127.0.0.1", 80) == ("127.0.0.1",)
    with pytest.raises(OSError, match=r"."):
        await look_up("no-such-host.invalid", 80)
