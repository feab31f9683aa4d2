"""Four gateway processes, one Redis, one key: what may pass passes, and not more, whoever dies.

The engine writes down when each request began and ended, so the history shows how many ran at any moment.
"""

import asyncio
import json
import signal
from collections import Counter
from collections.abc import AsyncIterator
from itertools import accumulate
from pathlib import Path

import pytest

from tests.support.client import Client
from tests.support.json_type import Json
from tests.support.keys import bearer, key_entry
from tests.support.openai_bytes import CHAT, HELLO, completion
from tests.support.process import Process
from tests.support.redis_server import RedisServer
from tests.support.scripted import ScriptedEngine, Talk, reply
from tests.support.waiting import until

GATEWAYS = 4
BURST, RPM = 100, 6_000


class History:
    """When requests began (+1) and ended (-1) at the engine, as it saw them."""

    def __init__(self) -> None:
        self.changes: list[tuple[float, int]] = []
        self.open = 0
        self.loop = asyncio.get_running_loop()

    async def answer(self, talk: Talk) -> None:
        """A moment of work."""
        self.note(1)
        try:
            await asyncio.sleep(0.01)  # the work; nothing waits for it by the clock
            await reply(completion())(talk)
        finally:
            self.note(-1)

    async def hold(self, talk: Talk) -> None:
        """Work that ends when the gateway's connection does."""
        self.note(1)
        await talk.stall()
        self.note(-1)

    def note(self, change: int) -> None:
        self.open += change
        self.changes.append((self.loop.time(), change))

    @property
    def most(self) -> int:
        """The most that ran at once."""
        return max(accumulate((change for _, change in self.changes), initial=0))

    def begun(self) -> list[float]:
        return [at for at, change in self.changes if change > 0]


@pytest.fixture
async def redis(tmp_path: Path) -> AsyncIterator[RedisServer]:
    server = RedisServer(tmp_path / "redis")
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def engine() -> AsyncIterator[ScriptedEngine]:
    async with ScriptedEngine() as started:
        yield started


class Fleet:
    """Gateway processes that share a Redis."""

    def __init__(self, folder: Path, engine: ScriptedEngine, redis: RedisServer, own: Json) -> None:
        settings = {
            "server": {"port": 0},
            "engines": {"e": {"kind": "vllm", "urls": [engine.url]}},
            "models": {"m": {"engine": "e", "model": "org/m"}},
            "keys": [key_entry("team-a", limits=own)],
            "state": {"redis": redis.url},
        }
        self.processes: list[Process] = []
        for number in range(GATEWAYS):
            place = folder / f"gateway-{number}"
            place.mkdir()
            (place / "turnout.yaml").write_text(json.dumps(settings))
            self.processes.append(Process(place, "serve"))

    async def listening(self) -> list[int]:
        return list(await asyncio.gather(*(process.listening() for process in self.processes)))

    def end(self) -> None:
        for process in self.processes:
            process.kill()


async def hammer(port: int, statuses: Counter[int], stop: asyncio.Event) -> None:
    """One client that asks again and again."""
    async with await Client.open(port) as client:
        while not stop.is_set():
            await client.post(CHAT, HELLO, bearer())
            answer = await client.answer()
            statuses[answer.status] += 1


async def test_four_gateways_let_pass_what_one_may_and_no_less(
    tmp_path: Path, engine: ScriptedEngine, redis: RedisServer
) -> None:
    """In every span of the history at most burst + rate * span began; and of all that might begin, 95 % did."""
    history = History()
    engine.answer(history.answer)
    fleet = Fleet(tmp_path, engine, redis, {"rpm": RPM, "burst": f"{BURST * 60 / RPM}s"})
    try:
        ports = await fleet.listening()
        statuses: Counter[int] = Counter()
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for port in ports * 4:
                group.create_task(hammer(port, statuses, stop))
            await until(lambda: len(history.begun()) >= 3 * BURST, 60)
            stop.set()
    finally:
        fleet.end()

    begun = history.begun()
    assert set(statuses) == {200, 429}
    jitter = 4 * len(ports)  # each of the clients may have one request under way to the engine
    for first in range(0, len(begun), 7):
        for last in range(first, len(begun), 7):
            assert last - first + 1 <= BURST + (begun[last] - begun[first]) * RPM / 60 + jitter
    assert len(begun) >= 0.95 * (BURST + (begun[-1] - begun[0]) * RPM / 60)


async def test_four_gateways_never_run_more_at_once_than_one_may(
    tmp_path: Path, engine: ScriptedEngine, redis: RedisServer
) -> None:
    history = History()
    engine.answer(history.answer)
    fleet = Fleet(tmp_path, engine, redis, {"parallel": 5})
    try:
        ports = await fleet.listening()
        statuses: Counter[int] = Counter()
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for port in ports * 4:
                group.create_task(hammer(port, statuses, stop))
            await until(lambda: len(history.begun()) >= 400, 60)
            stop.set()
    finally:
        fleet.end()

    assert history.most == 5
    assert set(statuses) == {200, 429}


async def test_a_killed_gateway_gives_its_places_back(
    tmp_path: Path, engine: ScriptedEngine, redis: RedisServer
) -> None:
    """Not at once, since it may only be silent; when its lease has ended."""
    history = History()
    engine.answer(history.hold)
    fleet = Fleet(tmp_path, engine, redis, {"parallel": 3})
    try:
        first, second, *_ = await fleet.listening()
        clients = [await Client.open(first) for _ in range(3)]
        for client in clients:
            await client.post(CHAT, HELLO, bearer())
        await until(lambda: history.open == 3)
        fleet.processes[0].interrupt(signal.SIGKILL)
        await until(lambda: history.open == 0)
        engine.answer(reply(completion()))

        statuses: Counter[int] = Counter()
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(hammer(second, statuses, stop))
            await until(lambda: statuses[429] > 0)
            await until(lambda: statuses[200] > 0, 30)
            stop.set()
        for client in clients:
            client.leave()
    finally:
        fleet.end()
