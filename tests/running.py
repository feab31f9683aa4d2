"""Real programs as processes on loopback: started, waited for, shown when they fail, ended."""

import contextlib
import http.client
import os
import random
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "127.0.0.1"
# Below the range that the system takes the ports of outgoing connections from, so that a port found free stays free
# until the program that it is meant for has started.
PORTS = range(20_000, 32_000)


def free_port() -> int:
    for port in random.sample(PORTS, 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port on loopback")


def eventually(condition: Callable[[], bool], seconds: float, pause: float = 0.05) -> bool:
    """Whether the condition came true within so many seconds; it is asked once more at the end."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(pause)
    return condition()


def answers(url: str) -> bool:
    """Whether a GET gets a 2xx answer. It is cheap: it is asked while a program needs all of the machine to start."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(200 <= answer.status < 300)
    except (OSError, http.client.HTTPException):
        return False


@dataclass(frozen=True, slots=True)
class Running:
    name: str
    popen: subprocess.Popen[bytes]
    log: Path

    @property
    def alive(self) -> bool:
        return self.popen.poll() is None

    def tail(self, characters: int = 6000) -> str:
        return self.log.read_text(errors="replace")[-characters:]

    def wait_until(self, condition: Callable[[], bool], seconds: float) -> None:
        """Waits for a condition.

        Raises:
            AssertionError: with the program's output, when it ended or the time is over.
        """
        eventually(lambda: not self.alive or condition(), seconds, pause=0.25)
        if not self.alive:
            raise AssertionError(f"{self.name} ended with code {self.popen.returncode}:\n{self.tail()}")
        if not condition():
            raise AssertionError(f"{self.name} was not ready within {seconds:g} s:\n{self.tail()}")

    def stop(self, seconds: float = 15) -> int:
        """Asks the program and all that it started to end, then makes them; gives the exit code."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGTERM)
        try:
            self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.popen.pid, signal.SIGKILL)
        return self.popen.wait()


def start(name: str, command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> Running:
    """Starts a program in a folder; its output goes to ``NAME.log`` there."""
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        popen = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Running(name, popen, log)


@contextlib.contextmanager
def running(name: str, command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> Iterator[Running]:
    program = start(name, command, folder, env)
    try:
        yield program
    finally:
        program.stop()
