"""Requests that wait for room: in order, bounded, and never for a dead engine."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import partial

import pytest

from gateway.balance import evidence
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer, Client
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, HELLO, completion
from tests.support.scripted import ScriptedEngine, Talk, hang_up, reply
from tests.support.serving import Serving
from tests.support.waiting import until

ANSWER = reply(completion())
SOON = 1.0
"""Seconds; what must happen at once may take that long on a busy machine."""


class Held:
    """A script that answers one request whenever the test says so."""

    def __init__(self) -> None:
        self._go = asyncio.Semaphore(0)

    async def __call__(self, talk: Talk) -> None:
        await self._go.acquire()
        await ANSWER(talk)

    def release(self, count: int = 1) -> None:
        for _ in range(count):
            self._go.release()


def limited(engine: ScriptedEngine, places: int = 1, *, queue: int = 8, wait: Json = "10s") -> dict[str, Json]:
    return one_engine(engine, max_in_flight=places) | {"admission": {"queue": queue, "wait": wait}}


def depth(serving: Serving, model: str = "m") -> int:
    return serving.meters.queue(model).depth


def busy(serving: Serving) -> int:
    """Requests that wait or run; a number that only grows with each of them."""
    return depth(serving) + sum(serving.in_flight)


def more_than(serving: Serving, before: int) -> bool:
    return busy(serving) > before


def sheds(serving: Serving) -> dict[str, float]:
    return {
        sample.labels["reason"]: sample.value
        for metric in serving.meters.collect()
        for sample in metric.samples
        if sample.name == "turnout_shed_total"
    }


async def numbered(stack: AsyncExitStack, serving: Serving, numbers: Iterator[int], count: int) -> list[Client]:
    """That many clients that have sent their requests, in order; each request says its number."""
    clients = []
    for _ in range(count):
        client = await stack.enter_async_context(await serving.connect())
        before = busy(serving)
        await client.post(CHAT, HELLO | {"seed": next(numbers)})
        await until(partial(more_than, serving, before), what="the request")
        clients.append(client)
    return clients


async def test_who_waits_goes_in_the_order_of_arrival(gateway: Gateway, engine: ScriptedEngine) -> None:
    held = Held()
    engine.answer(held)
    serving = await gateway(limited(engine))
    async with AsyncExitStack() as stack:
        clients = await numbered(stack, serving, iter(range(5)), 5)
        assert depth(serving) == 4
        held.release(5)
        answers = [await client.answer() for client in clients]

    assert [answer.status for answer in answers] == [200] * 5
    assert [request.json["seed"] for request in engine.requests] == [0, 1, 2, 3, 4]
    await serving.settled()
    assert depth(serving) == 0
    assert serving.meters.queue("m").seconds.counts.count(0) < len(serving.meters.queue("m").seconds.counts)


async def test_nobody_overtakes_those_who_wait(gateway: Gateway, engine: ScriptedEngine) -> None:
    """A request that comes just when a place gets free stands behind."""
    held = Held()
    engine.answer(held)
    serving = await gateway(limited(engine))
    async with AsyncExitStack() as stack:
        numbers = iter(range(10))
        clients = await numbered(stack, serving, numbers, 3)
        held.release()
        assert (await clients[0].answer()).status == 200
        clients += await numbered(stack, serving, numbers, 1)
        held.release(3)
        for client in clients[1:]:
            assert (await client.answer()).status == 200

    assert [request.json["seed"] for request in engine.requests] == [0, 1, 2, 3]
    await serving.settled()


async def test_a_full_queue_sheds_with_a_time_to_come_again(gateway: Gateway, engine: ScriptedEngine) -> None:
    """The gateway's own 503 has a retry-after (case F63)."""
    held = Held()
    engine.answer(held)
    serving = await gateway(limited(engine, queue=2))
    async with AsyncExitStack() as stack:
        clients = await numbered(stack, serving, iter(range(3)), 3)
        extra = await stack.enter_async_context(await serving.connect())
        await extra.post(CHAT, HELLO)
        refused = await extra.answer()
        held.release(3)
        assert [(await client.answer()).status for client in clients] == [200] * 3

    assert (refused.status, refused.error["code"]) == (503, "engine_overloaded")
    assert 1 <= int(refused.header("retry-after") or "") <= 60
    assert refused.header("x-should-retry") == "true"
    assert sheds(serving) == {"queue_full": 1}
    await serving.settled()


async def test_who_has_waited_too_long_is_sent_away(gateway: Gateway, engine: ScriptedEngine) -> None:
    held = Held()
    engine.answer(held)
    serving = await gateway(limited(engine, wait="300ms"))
    async with AsyncExitStack() as stack:
        clients = await numbered(stack, serving, iter(range(2)), 2)
        begun = serving.plane.loop.time()
        refused = await clients[1].answer()
        spent = serving.plane.loop.time() - begun
        held.release()
        assert (await clients[0].answer()).status == 200

    assert refused.status == 503
    assert 0.2 <= spent < 0.3 + SOON
    assert sheds(serving) == {"waited_too_long": 1}
    assert depth(serving) == 0
    await serving.settled()


async def test_a_client_that_leaves_frees_its_place(gateway: Gateway, engine: ScriptedEngine) -> None:
    held = Held()
    engine.answer(held)
    serving = await gateway(limited(engine, queue=1))
    async with AsyncExitStack() as stack:
        first, second = await numbered(stack, serving, iter(range(2)), 2)
        second.leave()
        await until(lambda: depth(serving) == 0, SOON, "the free place")
        (third,) = await numbered(stack, serving, iter([2]), 1)
        held.release(2)
        assert [(await client.answer()).status for client in (first, third)] == [200, 200]

    assert [request.json["seed"] for request in engine.requests] == [0, 2]
    await serving.settled()


async def test_a_dead_engines_queue_fails_fast(gateway: Gateway, engine: ScriptedEngine) -> None:
    """Nobody waits ten seconds for a place on an engine that is away."""
    engine.answer(Held())
    serving = await gateway(limited(engine, wait="30s"))
    link = serving.plane.engines["e"]
    async with AsyncExitStack() as stack:
        clients = await numbered(stack, serving, iter(range(4)), 4)
        for _ in range(3):
            now = serving.plane.loop.time()
            evidence.check_failed(link.engine, link.engine.endpoints[0], "nobody listens", now, refused=True)
        begun = serving.plane.loop.time()
        answers = [await client.answer() for client in clients[1:]]
        assert serving.plane.loop.time() - begun < SOON

    assert [(answer.status, answer.error["code"]) for answer in answers] == [(503, "engine_unavailable")] * 3
    assert all(answer.header("retry-after") for answer in answers)
    await serving.settled()


async def test_a_failed_request_waits_for_room_on_another_replica(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """What a dying replica drops is not lost because its peers are full at that moment."""
    held = Held()
    other.answer(held)
    engine.answer(hang_up)
    settings = limited(engine)
    settings["engines"]["e"]["urls"] = [other.url, engine.url]
    serving = await gateway(settings)
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(await serving.connect()) for _ in range(2)]
        await first.post(CHAT, HELLO)
        await other.request()
        await second.post(CHAT, HELLO)
        await engine.request()
        await until(lambda: depth(serving) == 1, what="the second one in the queue")
        held.release(2)
        answers = [await client.answer() for client in (first, second)]

    assert [answer.status for answer in answers] == [200, 200]
    assert answers[1].header("x-turnout-attempts") == "2"
    await serving.settled()


async def test_a_model_has_a_limit_of_its_own(gateway: Gateway, engine: ScriptedEngine) -> None:
    """Over all its replicas; other models of the engine are not held up by it."""
    held = Held()
    engine.answer(held)
    settings = one_engine(engine) | {"admission": {"queue": 0}}
    settings["models"]["m"]["max_in_flight"] = 2
    serving = await gateway(settings)
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(await serving.connect()) for _ in range(4)]
        for client in clients[:2]:
            await client.post(CHAT, HELLO)
        await engine.request(2)
        await clients[2].post(CHAT, HELLO)
        refused = await clients[2].answer()
        await clients[3].post(CHAT, HELLO | {"model": "same"})
        await engine.request(3)
        held.release(3)
        assert [(await clients[at].answer()).status for at in (0, 1, 3)] == [200] * 3
        await clients[2].post(CHAT, HELLO)
        held.release()
        assert (await clients[2].answer()).status == 200

    assert (refused.status, refused.error["type"], refused.error["code"]) == (
        429,
        "rate_limit_error",
        "rate_limit_exceeded",
    )
    assert refused.header("retry-after")
    await serving.settled()
    assert serving.plane.queues["m"].gate.inside == 0


@pytest.mark.parametrize("ending", ["answered", "failed", "left", "refused"])
async def test_every_ending_gives_the_place_back(gateway: Gateway, engine: ScriptedEngine, ending: str) -> None:
    scripts = {"answered": ANSWER, "failed": reply(b"", status=500), "refused": reply(b"{}", status=400)}
    engine.answer(scripts.get(ending, Held()))
    settings = one_engine(engine)
    settings["models"]["m"]["max_in_flight"] = 1
    serving = await gateway(settings)
    for _ in range(3):
        async with await serving.connect() as client:
            await client.post(CHAT, HELLO)
            if ending == "left":
                await until(lambda: any(serving.in_flight), what="the request")
                client.leave()
            else:
                await client.answer()
        await serving.settled()

    assert serving.plane.queues["m"].gate.inside == 0
    assert depth(serving) == 0


async def test_a_client_waits_no_longer_than_it_wants(gateway: Gateway, engine: ScriptedEngine) -> None:
    held = Held()
    engine.answer(held)
    serving = await gateway(limited(engine))
    async with await serving.connect() as first, await serving.connect() as second:
        await first.post(CHAT, HELLO)
        await engine.request()
        begun = serving.plane.loop.time()
        await second.post(CHAT, HELLO, [("x-turnout-timeout", "300ms")])
        refused: Answer = await second.answer()
        assert 0.2 <= serving.plane.loop.time() - begun < 0.3 + SOON
        held.release()
        assert (await first.answer()).status == 200

    assert refused.status == 503
    await serving.settled()


async def test_a_new_configuration_keeps_those_who_wait(gateway: Gateway, engine: ScriptedEngine) -> None:
    """And who is served counts on under the new limit."""
    held = Held()
    engine.answer(held)
    settings = one_engine(engine)
    settings["models"]["m"]["max_in_flight"] = 1
    serving = await gateway(settings, whole=True)
    async with AsyncExitStack() as stack:
        clients = await numbered(stack, serving, iter(range(3)), 3)
        settings["models"]["m"]["max_in_flight"] = 2
        serving.apply(settings)
        await engine.request(2)
        assert depth(serving) == 1
        held.release(3)
        assert [(await client.answer()).status for client in clients] == [200] * 3
    await serving.settled()
    assert serving.plane.queues["m"].gate.inside == 0


async def test_without_limits_there_is_no_queue(serving: Serving, engine: ScriptedEngine) -> None:
    engine.answer(ANSWER)
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO)
        assert (await client.answer()).status == 200

    assert serving.plane.queues == {}
