"""The `turnout` command as a process, its two outputs apart."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.waiting import until

START = 60.0
"""Seconds; starting is slow while everything else on the machine is busy."""


def clean_environment(**more: str) -> dict[str, str]:
    """The environment without what would change settings or output."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("TURNOUT_", "NO_", "FORCE_"))}
    return plain | {"COLUMNS": "200"} | more


class Process:
    """A running `turnout`; its output goes to files in a folder."""

    def __init__(self, folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self._stdout = folder / "stdout"
        self._stderr = folder / "stderr"
        with self._stdout.open("wb") as out, self._stderr.open("wb") as err:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "gateway", *arguments],
                cwd=folder,
                env=clean_environment(**(environment or {})),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    @property
    def stdout(self) -> str:
        return self._stdout.read_text()

    @property
    def stderr(self) -> str:
        return self._stderr.read_text()

    @property
    def logs(self) -> list[dict[str, Any]]:
        """Its log, which has to be one JSON object per line."""
        return [json.loads(line) for line in self.stderr.splitlines()]

    def logged(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.logs if line["event"] == event]

    async def listening(self) -> int:
        """The port, as soon as the gateway says that it takes requests."""
        await until(lambda: "http://" in self.stdout or self.popen.poll() is not None, START, "the start")
        assert self.popen.poll() is None, f"ended with {self.popen.returncode}: {self.stderr}"
        found = re.search(r"http://127\.0\.0\.1:(\d+)", self.stdout)
        assert found is not None, self.stdout
        return int(found[1])

    def interrupt(self, number: int = signal.SIGTERM) -> None:
        self.popen.send_signal(number)

    async def ended(self, seconds: float = START) -> int:
        """The exit code, once there is one."""
        await until(lambda: self.popen.poll() is not None, seconds, "the end of the process")
        return int(self.popen.returncode)

    def kill(self) -> None:
        """Makes sure that nothing is left."""
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()
