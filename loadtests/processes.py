"""The engines and the gateway as processes: started, awaited, and always ended."""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from loadtests.scenario import Replicas, Served

START: Final = 60.0
"""Seconds that a process may take to listen."""

STOP: Final = 5.0
TICK: Final = 0.05
_URL: Final = re.compile(
    r"^(?:turnout: )?(?:listening on|simulated \w+ at) http://(127\.0\.0\.\d+):(\d+)", re.MULTILINE
)
_OPTIONS: Final = ("first_token", "prefill", "inter_token", "batch_slowdown", "max_running", "max_requests")


class DidNotStart(Exception):
    """A process ended, or said nothing for too long."""


class Listening:
    """A running `turnout` subcommand, or another Python program, that says on stdout where it listens."""

    def __init__(
        self, folder: Path, name: str, arguments: Sequence[str], *, program: Sequence[str] = ("-m", "gateway")
    ) -> None:
        self.name = name
        self._out = folder / f"{name}.out"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("TURNOUT_")}
        with self._out.open("wb") as out:
            self._popen = subprocess.Popen(
                [sys.executable, *program, *arguments],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._popen.pid

    @property
    def said(self) -> str:
        """All that it wrote."""
        return self._out.read_text(errors="replace")

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._popen.poll()

    def tell(self, line: bytes) -> None:
        """Writes a line to its standard input."""
        assert self._popen.stdin is not None
        self._popen.stdin.write(line + b"\n")
        self._popen.stdin.flush()

    def signal(self, number: int) -> None:
        """Sends it a signal, unless it has ended."""
        self._popen.send_signal(number)

    async def ended(self, seconds: float = STOP) -> int | None:
        """How it ended, as soon as it has; None if it has not by then."""
        for _ in range(round(seconds / TICK)):
            if self._popen.poll() is not None:
                break
            await asyncio.sleep(TICK)
        return self._popen.poll()

    async def address(self) -> tuple[str, int]:
        """Host and port, as soon as it listens.

        Raises:
            DidNotStart: with the last lines that it wrote.
        """
        for _ in range(round(START / TICK)):
            if found := _URL.search(self.said):
                return found[1], int(found[2])
            if self._popen.poll() is not None:
                break
            await asyncio.sleep(TICK)
        raise DidNotStart(f"{self.name}: {self.said[-1000:]}")

    async def stop(self) -> None:
        """Asks it to end, and kills it if it does not."""
        self._popen.terminate()
        await self.ended()
        self.kill()

    def kill(self) -> None:
        """Makes sure that it has ended."""
        self._popen.kill()
        self._popen.wait()
        if self._popen.stdin is not None:
            self._popen.stdin.close()


class Machinery:
    """All processes of a load test. An async context: nothing is left running after it."""

    def __init__(self, fleet: Sequence[Replicas], models: Sequence[Served], carrier: str) -> None:
        self._fleet = fleet
        self._models = models
        self._carrier = carrier
        self._stack = AsyncExitStack()
        self.engines: dict[str, list[tuple[str, int]]] = {}
        self.gateway: Listening
        self.gateway_address: tuple[str, int]

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnout-loadtest-")))
            started = {replicas.name: self._start_engines(stack, folder, replicas) for replicas in self._fleet}
            for name, processes in started.items():
                self.engines[name] = [await process.address() for process in processes]
            config = folder / "turnout.yaml"
            config.write_bytes(msgspec.json.encode(settings(self._fleet, self._models, self.engines)))  # JSON is YAML
            arguments = ("serve", "--config", str(config), "--port", "0", "--carrier", self._carrier)
            self.gateway = self._start(stack, folder, "gateway", arguments)
            self.gateway_address = await self.gateway.address()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def _start_engines(self, stack: AsyncExitStack, folder: Path, replicas: Replicas) -> list[Listening]:
        arguments = engine_arguments(replicas)
        return [self._start(stack, folder, f"{replicas.name}-{number}", arguments) for number in range(replicas.count)]

    def _start(self, stack: AsyncExitStack, folder: Path, name: str, arguments: Sequence[str]) -> Listening:
        process = Listening(folder, name, arguments)
        stack.push_async_callback(process.stop)
        return process


def engine_arguments(replicas: Replicas) -> list[str]:
    """The command line of one simulated engine."""
    arguments = ["simulate", replicas.kind.value, "--port", "0"]
    for model in replicas.models:
        arguments += ["--model", model]
    pace = asdict(replicas.pace)
    for option in _OPTIONS:
        if pace[option] is not None:
            arguments += [f"--{option.replace('_', '-')}", str(pace[option])]
    return arguments


def settings(
    fleet: Sequence[Replicas], models: Sequence[Served], engines: Mapping[str, Sequence[tuple[str, int]]]
) -> dict[str, Any]:
    """The gateway's configuration."""
    return {
        "engines": {
            replicas.name: {
                "kind": replicas.kind.value,
                "urls": [f"http://{host}:{port}" for host, port in engines[replicas.name]],
            }
            for replicas in fleet
        },
        "models": {
            model.name: {"engine": model.replicas, "model": model.engine_model, "task": model.task} for model in models
        },
    }
