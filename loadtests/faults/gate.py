"""The gateway of a fault scenario from the outside: its process, what it says of itself, and what it holds."""

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import httpx2
import msgspec
import psutil
from prometheus_client.parser import text_string_to_metric_families

from loadtests.faults import named
from loadtests.faults.engine import MODEL
from loadtests.faults.replicas import Replica
from loadtests.faults.scenario import FaultScenario
from loadtests.processes import TICK, Listening

GAUGES: Final = ("turnout_in_flight", "turnout_queue_depth")

HEALTH: Final = {"interval": "500ms"}
"""Faster than the default, so that the short form sees replicas come back."""

PATIENCE: Final = 20.0
"""Seconds until everything that the load left behind has to be gone: idle connections are closed after five."""

CHECKS: Final = 2
"""Connections that health checks may keep open to each replica."""


class Place(msgspec.Struct):
    """An endpoint as `/admin/engines` shows it."""

    in_flight: int


class Listed(msgspec.Struct):
    """An engine there."""

    endpoints: list[Place]


@dataclass(frozen=True, slots=True)
class Held:
    """What the gateway holds at a moment. `files` are without the connections to replicas."""

    in_flight: int
    files: int
    to_replicas: int
    memory: int
    """Resident bytes."""


class Gate:
    """The gateway's process."""

    def __init__(self, folder: Path, scenario: FaultScenario, replicas: Sequence[Replica], carrier: str) -> None:
        self._folder = folder
        self._scenario = scenario
        self._replicas = replicas
        self._carrier = carrier
        self._names = folder / "names"
        self._config = folder / "turnout.yaml"
        self._started: list[Listening] = []
        self._edition = 0
        self.left_at: float | None = None
        """When it was told to stop, with nobody to follow it."""
        self.address = ("127.0.0.1", 0)

    async def start(self) -> None:
        """Starts it.

        Raises:
            DidNotStart: it does not listen.
        """
        self.rename(range(self._scenario.replicas if not self._scenario.names else self._scenario.replicas - 1))
        self._write()
        self.address = await self._launch("0").address()

    def _launch(self, port: str, *more: str) -> Listening:
        program = (named.__file__, str(self._names)) if self._scenario.names else ("-m", "gateway")
        arguments = ("serve", "--config", str(self._config), "--port", port, "--carrier", self._carrier, *more)
        process = Listening(self._folder, f"gateway-{len(self._started)}", arguments, program=program)
        self._started.append(process)
        return process

    def _write(self) -> None:
        """The configuration, whole or not at all. Each edition has a model's name of its own."""
        beside = self._config.with_suffix(".new")
        beside.write_bytes(msgspec.json.encode(settings(self._scenario, self._replicas, self._edition)))  # JSON is YAML
        beside.rename(self._config)

    def reload(self) -> None:
        """Writes the next edition; every second time without a signal."""
        self._edition += 1
        self._write()
        if self._edition % 2:
            self._started[-1].signal(signal.SIGHUP)

    async def has_reloaded(self) -> bool:
        """Whether the last edition is in force, now or soon."""
        deadline = perf_counter() + PATIENCE
        while self._edition and perf_counter() < deadline:
            async with httpx2.AsyncClient() as client:
                answer = await client.get(f"http://{self.address[0]}:{self.address[1]}/v1/models")
            if f'"{edition(self._edition)}"' in answer.text:
                return True
            await asyncio.sleep(2 * TICK)
        return not self._edition

    def rename(self, replicas: Sequence[int]) -> None:
        """The name stands for these from now on."""
        addresses = " ".join(self._replicas[number].address[0] for number in replicas)
        self._names.write_text(f"{named.NAME} {addresses}\n")

    async def end(self, *, successor: bool) -> str | None:
        """SIGTERM, after another one has taken over if there is to be one; what was wrong with how it ended."""
        leaving = self._started[-1]
        if successor:
            await self._launch(str(self.address[1]), "--take-over").address()
        else:
            self.left_at = perf_counter()
        leaving.signal(signal.SIGTERM)
        code = await leaving.ended(PATIENCE)
        return None if code == 0 else f"the gateway ended with {code}: {leaving.said[-500:]}"

    def close(self) -> None:
        """Ends what runs."""
        for process in self._started:
            process.kill()

    async def held(self) -> Held:
        """What it holds now; nothing if it has ended."""
        process = self._started[-1]
        if process.exit_code is not None:
            return Held(0, 0, 0, 0)
        in_flight = await self._in_flight()
        seen = psutil.Process(process.pid)
        to_replicas, files = await self._files(seen)
        return Held(in_flight, files, to_replicas, seen.memory_info().rss)

    async def _files(self, seen: psutil.Process) -> tuple[int, int]:
        """Its connections to replicas, and all other open files. Counted until no connection came or went meanwhile."""
        while True:
            before = self._to_replicas(seen)
            files = seen.num_fds()
            if before == self._to_replicas(seen):
                return len(before), files - len(before)
            await asyncio.sleep(0)

    def _to_replicas(self, seen: psutil.Process) -> frozenset[tuple[int, object]]:
        port = self._replicas[0].address[1]
        connections = seen.net_connections("tcp")
        return frozenset((one.fd, one.laddr) for one in connections if one.raddr[1:] == (port,))

    async def settled(self, before: Held) -> Held:
        """What it holds when all is quiet again, or at the end of the patience."""
        deadline = perf_counter() + PATIENCE
        while True:
            now = await self.held()
            quiet = now.in_flight == 0 and now.files <= before.files
            if (quiet and now.to_replicas <= CHECKS * len(self._replicas)) or perf_counter() >= deadline:
                return now
            await asyncio.sleep(2 * TICK)

    async def _in_flight(self) -> int:
        """All that it counts as being served or waiting, in its metrics and in its view of the endpoints."""
        base = f"http://{self.address[0]}:{self.address[1]}"
        async with httpx2.AsyncClient(timeout=10.0) as client:
            metrics = (await client.get(f"{base}/metrics")).text
            engines = msgspec.json.decode((await client.get(f"{base}/admin/engines")).content, type=list[Listed])
        families = text_string_to_metric_families(metrics)
        gauges = [sample.value for family in families if family.name in GAUGES for sample in family.samples]
        return int(sum(gauges)) + sum(one.in_flight for engine in engines for one in engine.endpoints)


def edition(number: int) -> str:
    """The model's further name in that edition of the configuration."""
    return f"edition-{number}"


def settings(scenario: FaultScenario, replicas: Sequence[Replica], number: int = 0) -> dict[str, Any]:
    """The gateway's configuration."""
    urls = [f"http://{host}:{port}" for host, port in (replica.address for replica in replicas)]
    if scenario.names:
        urls = [f"dns+http://{named.NAME}:{replicas[0].address[1]}"]
    engine: dict[str, Any] = {"kind": "vllm", "urls": urls, "health": HEALTH, **scenario.engine}
    model = {"engine": "e", "model": MODEL, "aliases": [edition(number)]}
    return {"engines": {"e": engine}, "models": {"m": model}, **scenario.settings}
