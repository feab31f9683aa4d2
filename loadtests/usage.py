"""CPU time and memory of a process and its children over time."""

import asyncio
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter
from typing import Final

import psutil

EVERY: Final = 0.25
"""Seconds between two looks."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a process tree used at one moment."""

    at: float
    cpu: float
    """CPU seconds so far."""
    memory: int
    """Resident bytes."""


class Watch:
    """Looks at a process tree again and again. Children that start later are not seen."""

    def __init__(self, pid: int) -> None:
        root = psutil.Process(pid)
        self._tree = [root, *root.children(recursive=True)]
        self.looks: list[Look] = []

    def look(self) -> None:
        """Notes what has been used until now; a process that has ended counts no more."""
        cpu, memory = 0.0, 0
        for process in self._tree:
            try:
                times = process.cpu_times()
                cpu += times.user + times.system
                memory += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        self.looks.append(Look(perf_counter(), cpu, memory))

    async def run(self) -> None:
        """Looks until it is cancelled."""
        while True:
            self.look()
            await asyncio.sleep(EVERY)


def since(looks: list[Look], began: float) -> list[Look]:
    """The same, with moments and CPU time counted from `began`."""
    before = [look for look in looks if look.at <= began]
    start = before[-1].cpu if before else looks[0].cpu if looks else 0.0
    return [Look(look.at - began, look.cpu - start, look.memory) for look in looks if look.at >= began]


def shares(looks: list[Look]) -> list[tuple[float, float]]:
    """From CPU time to its share of one core, as (moment, percent)."""
    return [
        (later.at, 100 * (later.cpu - earlier.cpu) / (later.at - earlier.at))
        for earlier, later in pairwise(looks)
        if later.at > earlier.at
    ]
