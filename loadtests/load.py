"""Sends a scenario's load to one side: straight to the engines, or through the gateway."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final, assert_never

from loadtests.client import Client
from loadtests.sample import Sample
from loadtests.scenario import Bursts, Clients, Scenario, Served, Shape, SlowReaders, Steady
from loadtests.schedule import LIMIT, schedule, shapes

Address = tuple[str, int]

HEAD_START: Final = 0.2
"""Seconds between the decision to begin and the first request: the load should not begin late."""


class Side:
    """Where a model's requests go, and what the model is called there."""

    def __init__(self, name: str, models: Mapping[str, tuple[str, Sequence[Address]]]) -> None:
        """`models` gives, by the gateway's name, the name to ask for and the addresses, which take turns."""
        self.name = name
        self._models: dict[str, tuple[str, Iterator[Address]]] = {
            model: (asked, itertools.cycle(addresses)) for model, (asked, addresses) in models.items()
        }
        self._requests: dict[str, bytes] = {}

    def address(self, shape: Shape) -> Address:
        """The next one."""
        return next(self._models[shape.model][1])

    def request(self, shape: Shape) -> bytes:
        """The request's bytes."""
        made = self._requests.get(shape.name)
        if made is None:
            body = json.dumps({"model": self._models[shape.model][0], **shape.body}).encode()
            head = (
                f"POST {shape.path} HTTP/1.1\r\nhost: loadtest\r\nuser-agent: turnout-loadtest\r\n"
                f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            )
            made = self._requests[shape.name] = head.encode() + body
        return made


def sides(models: Sequence[Served], engines: Mapping[str, Sequence[Address]], gateway: Address) -> tuple[Side, Side]:
    """Direct and through the gateway. Direct, a model's replicas take turns."""
    direct = {model.name: (model.engine_model, engines[model.replicas]) for model in models}
    return Side("direct", direct), Side("gateway", {model.name: (model.name, (gateway,)) for model in models})


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load led to. Moments in the samples are seconds from `began`."""

    began: float
    seconds: float
    samples: tuple[Sample, ...]
    slow: tuple[Sample, ...]


class Load:
    """One scenario against one side."""

    def __init__(self, scenario: Scenario, side: Side, told: Callable[[Sample], None]) -> None:
        """`told` hears of every request that ended, for showing progress."""
        self._scenario = scenario
        self._side = side
        self._told = told
        self._client = Client(self._ended)
        self._waiting: dict[int, asyncio.Future[None]] = {}
        """By the sample's id: what the load's clients wait for. Slow readers are not waited for."""
        self._samples: list[Sample] = []
        self._slow: list[Sample] = []

    async def run(self) -> Loaded:
        """Sends everything, waits for the answers, and leaves what takes longer than the scenario's grace."""
        scenario = self._scenario
        began = perf_counter() + HEAD_START
        if scenario.slow is not None:
            for _ in range(scenario.slow.count):
                self._ask_slowly(scenario.slow, began)
        match scenario.arrivals:
            case Steady() | Bursts():
                await self._open_loop(began)
            case Clients(count):
                await self._closed_loop(began, count)
            case _ as never:
                assert_never(never)
        deadline = began + scenario.seconds + scenario.grace
        if self._waiting:
            await asyncio.wait(self._waiting.values(), timeout=deadline - perf_counter())
        ended = perf_counter()
        await self._client.close()
        for sample in (*self._samples, *self._slow):
            _shift(sample, began)
        return Loaded(began, ended - began, tuple(self._samples), tuple(self._slow))

    async def _open_loop(self, began: float) -> None:
        for due in schedule(self._scenario):
            moment = began + due.at
            if (wait := moment - perf_counter()) > 0:
                await asyncio.sleep(wait)
            self._ask(due.shape, moment)

    async def _closed_loop(self, began: float, count: int) -> None:
        choose = shapes(self._scenario.shapes)
        await asyncio.sleep(began - perf_counter())
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(self._client_of_loop(choose, began + self._scenario.seconds))

    async def _client_of_loop(self, choose: Iterator[Shape], until: float) -> None:
        while perf_counter() < until and len(self._samples) < LIMIT:
            sample = self._ask(next(choose), perf_counter())
            try:
                async with asyncio.timeout(until + self._scenario.grace - perf_counter()):
                    await self._waiting[id(sample)]
            except TimeoutError:
                return

    def _ask(self, shape: Shape, due: float) -> Sample:
        sample = Sample(shape.name, due)
        self._samples.append(sample)
        self._waiting[id(sample)] = asyncio.get_running_loop().create_future()
        self._client.ask(self._side.address(shape), self._side.request(shape), sample)
        return sample

    def _ask_slowly(self, slow: SlowReaders, due: float) -> None:
        sample = Sample(slow.shape.name, due)
        self._slow.append(sample)
        request = self._side.request(slow.shape)
        self._client.ask(self._side.address(slow.shape), request, sample, slow.bytes_per_second)

    def _ended(self, sample: Sample) -> None:
        answered = self._waiting.pop(id(sample), None)
        if answered is not None:
            if not answered.done():
                answered.set_result(None)
            self._told(sample)


def _shift(sample: Sample, began: float) -> None:
    """From the clock's seconds to those since the start."""
    sample.due -= began
    sample.sent -= began
    if sample.first is not None:
        sample.first -= began
    if sample.last is not None:
        sample.last -= began
