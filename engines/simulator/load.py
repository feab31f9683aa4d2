"""The live state of a simulated engine: who runs, who waits, and the totals that its metrics show."""

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from engines.simulator.pace import Pace


@dataclass(slots=True)
class Histogram:
    """Counts of seconds by upper bound."""

    bounds: tuple[float, ...] = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 10.0)
    counts: list[int] = field(default_factory=lambda: [0] * 16)
    total: float = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Adds a value, or the same value several times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)


@dataclass(slots=True)
class ModelLoad:
    """Gauges and totals of one model."""

    running: int = 0
    waiting: int = 0
    kv_tokens: int = 0
    finished: dict[str, int] = field(default_factory=dict)
    """Completed requests by finish reason."""
    failed: int = 0
    aborted: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    queue: Histogram = field(default_factory=Histogram)
    first_token: Histogram = field(default_factory=Histogram)
    inter_token: Histogram = field(default_factory=Histogram)
    whole: Histogram = field(default_factory=Histogram)


class Load:
    """Admission in arrival order, and the numbers behind the metrics. Belongs to one event loop."""

    def __init__(self, models: Iterable[str], pace: Pace) -> None:
        self.pace = pace
        self.models = {name: ModelLoad() for name in models}
        self.accepted = 0
        self.rejected = 0
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def running(self) -> int:
        """Requests that generate now."""
        return sum(model.running for model in self.models.values())

    @property
    def waiting(self) -> int:
        """Requests that wait for a place."""
        return sum(model.waiting for model in self.models.values())

    @property
    def kv_use(self) -> float:
        """Share of the KV cache that running requests hold, from 0 to 1."""
        return min(1.0, sum(model.kv_tokens for model in self.models.values()) / self.pace.kv_capacity)

    @property
    def full(self) -> bool:
        """True when one more request would exceed `Pace.max_requests`."""
        return self.pace.max_requests is not None and self.running + self.waiting >= self.pace.max_requests

    @asynccontextmanager
    async def admitted(self, model: str, prompt_tokens: int) -> AsyncIterator[ModelLoad]:
        """Waits for a place and holds it."""
        state = self.models[model]
        limit = self.pace.max_running
        if limit is not None and self.running >= limit:
            await self._wait(state)
        state.running += 1
        state.kv_tokens += prompt_tokens
        try:
            yield state
        finally:
            state.running -= 1
            state.kv_tokens = 0 if state.running == 0 else max(0, state.kv_tokens - prompt_tokens)
            self._wake()

    async def _wait(self, state: ModelLoad) -> None:
        place = asyncio.get_running_loop().create_future()
        self._queue.append(place)
        state.waiting += 1
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._wake()
            elif place in self._queue:
                self._queue.remove(place)
            raise
        finally:
            state.waiting -= 1

    def _wake(self) -> None:
        while self._queue:
            place = self._queue.popleft()
            if not place.done():
                place.set_result(None)
                return
