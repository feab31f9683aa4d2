"""A real Redis server for a test, on a port of its own."""

import asyncio
import contextlib
import shutil
import subprocess
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from tests.running import free_port
from tests.support.waiting import within

MISSING = "redis-server is not installed"


class RedisServer:
    """Starts, stops, pauses; `cli` speaks to it."""

    def __init__(self, folder: Path, *options: str, port: int = 0) -> None:
        if shutil.which("redis-server") is None:
            pytest.skip(MISSING)
        self.port = port or free_port()
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.cli: Redis = Redis(port=self.port, decode_responses=True)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    async def start(self) -> None:
        self._folder.mkdir(exist_ok=True, parents=True)
        command = ["redis-server", *self._options, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", "."]
        if "--sentinel" not in self._options:
            command += ["--save", "", "--appendonly", "no", "--enable-debug-command", "yes"]
        self._process = self._started(command)
        await within(self._answering(), what="the start of redis")

    def _started(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self._folder / f"{self.port}.log").open("ab") as log:
            return subprocess.Popen(command, cwd=self._folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    async def _answering(self) -> None:
        while True:
            with contextlib.suppress(RedisError, OSError):
                await self.cli.ping()
                return
            await asyncio.sleep(0.02)

    async def command(self, *words: str) -> object:
        """Any command, on a connection of its own."""
        async with Redis(port=self.port, socket_timeout=None, decode_responses=True) as client:
            found: object = await client.execute_command(*words)  # type: ignore[no-untyped-call]
            return found

    async def kept(self) -> dict[str, object]:
        """All that it holds: hashes and strings."""
        found: dict[str, object] = {}
        for key in await self.cli.keys():
            is_hash = await self.cli.type(key) == "hash"
            found[str(key)] = await (self.cli.hgetall(key) if is_hash else self.cli.strlen(key))
        return found

    def kill(self) -> None:
        """As `kill -9` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    async def stop(self) -> None:
        self.kill()
        await self.cli.aclose()
