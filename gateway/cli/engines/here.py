"""What this machine has, as far as starting an engine on it goes."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PATIENCE: Final = 20.0  # seconds for nvidia-smi, which takes several when it wakes GPUs


@dataclass(frozen=True, slots=True)
class Here:
    """This machine: its GPUs (number and UUID of each) and its variables."""

    platform: str
    gpus: tuple[tuple[str, str], ...]
    environ: Mapping[str, str]

    @property
    def visible(self) -> int:
        """GPUs that a program started now would see."""
        chosen = self.environ.get("CUDA_VISIBLE_DEVICES")
        if chosen is None:
            return len(self.gpus)
        known = {name for gpu in self.gpus for name in gpu}
        return sum(device in known for device in chosen.split(","))

    def program(self, name: str) -> str | None:
        """Where a program is, if it is installed."""
        return shutil.which(name, path=self.environ.get("PATH"))

    def has(self, path: str) -> bool:
        """Whether there is a file or folder."""
        return Path(path).exists()

    def can_listen(self, host: str, port: int) -> bool:
        """Whether nobody listens at this address yet."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((host, port))
            except OSError:
                return False
        return True


def look_around() -> Here:
    """Looks at this machine. Without nvidia-smi there are no GPUs."""
    return Here(sys.platform, _gpus(), os.environ)


@dataclass(frozen=True, slots=True)
class Board:
    """A GPU of this machine as nvidia-smi names it; memory in bytes."""

    name: str
    memory: int
    capability: float


def boards() -> tuple[Board, ...]:
    """The GPUs of this machine; none without nvidia-smi, or with one that is too old to tell."""
    found = []
    for row in _ask_gpus("name,memory.total,compute_cap", 3):
        try:
            found.append(Board(row[0], int(row[1].removesuffix(" MiB")) * 2**20, float(row[2])))
        except ValueError:  # "[N/A]": some boards share the machine's memory
            continue
    return tuple(found)


def _gpus() -> tuple[tuple[str, str], ...]:
    return tuple((row[0], row[1]) for row in _ask_gpus("index,uuid", 2))


def _ask_gpus(columns: str, count: int) -> list[list[str]]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, f"--query-gpu={columns}", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, check=True, capture_output=True, text=True, timeout=_PATIENCE)  # noqa: S603 - ours
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]
    return [row for row in rows if len(row) == count]
