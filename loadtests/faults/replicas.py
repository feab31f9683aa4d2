"""The replicas of a scenario from the outside: processes that come and go, and what they have written down."""

import contextlib
import signal
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Final

from engines.simulator import Pace
from loadtests.faults.engine import Order
from loadtests.processes import Listening

PROGRAM: Final = ("-m", "loadtests.faults.engine")


@dataclass(slots=True)
class Outage:
    """A time in which a replica could not serve; `end` is None while it lasts. Moments are of `perf_counter`."""

    begin: float
    end: float | None = None

    def overlaps(self, begin: float, end: float) -> bool:
        """Whether it has a moment in common with that time."""
        return self.begin <= end and (self.end is None or self.end >= begin)


@dataclass(frozen=True, slots=True)
class Record:
    """What one replica wrote down: the requests it got, in their order, those it refused, and those it answered."""

    taken: Counter[int] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)
    ended: frozenset[int] = frozenset()
    taken_at: Mapping[int, float] = field(default_factory=dict)
    """The last time that it got each request, by `perf_counter`."""

    @classmethod
    def parse(cls, text: str) -> "Record":
        """From the file; a last line that was cut off counts as not written."""
        lines = [line.split() for line in text.split("\n")[:-1]]
        said = [(what, int(number), float(at)) for what, number, at in lines]
        return cls(
            Counter(number for what, number, _ in said if what == "S"),
            Counter(number for what, number, _ in said if what == "R"),
            frozenset(number for what, number, _ in said if what == "E"),
            {number: at for what, number, at in said if what == "S"},
        )

    @property
    def executed(self) -> Counter[int]:
        """How often it worked on each request: what it took and did not refuse at once."""
        return self.taken - self.refused


class Replica:
    """One address, and whatever process listens there. The address is ours from the beginning to `close`."""

    def __init__(self, folder: Path, number: int, port: int, keep_alive: float) -> None:
        self.number = number
        self.outages: list[Outage] = []
        self._host = f"127.0.0.{number + 1}"
        self._folder = folder
        self._record = folder / f"replica-{number}.record"
        self._keep_alive = keep_alive
        self._starts = 0
        self._process: Listening | None = None
        # Bound, never listened on: nobody else gets the port while the replica is away.
        self._place = socket.socket()
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._place.bind((self._host, port))
        except OSError:
            self._place.close()
            raise

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        host, port = self._place.getsockname()
        return str(host), int(port)

    @property
    def record(self) -> Record:
        """What its processes have written so far."""
        return Record.parse(self._record.read_text() if self._record.exists() else "")

    async def start(self, pace: Pace) -> None:
        """Starts a process, in place of one that may still be there.

        Raises:
            DidNotStart: it does not listen.
        """
        if self._process is not None:
            self._process.kill()
        self._starts += 1
        host, port = self.address
        arguments = ["--host", host, "--port", str(port), "--record", str(self._record)]
        arguments += ["--keep-alive", str(self._keep_alive), "--pace", Order(pace=pace).line().decode()]
        self._process = Listening(self._folder, f"replica-{self.number}-{self._starts}", arguments, program=PROGRAM)
        await self._process.address()
        self.back()

    def kill(self) -> None:
        """SIGKILL."""
        self.out()
        self._running.kill()

    def signal(self, number: int) -> None:
        """Any other signal."""
        self._running.signal(number)

    def tell(self, order: Order) -> None:
        """Gives an order."""
        self._running.tell(order.line())

    def out(self) -> None:
        """From now on it cannot serve."""
        if not self.outages or self.outages[-1].end is not None:
            self.outages.append(Outage(perf_counter()))

    def back(self) -> None:
        """From now on it can."""
        if self.outages and self.outages[-1].end is None:
            self.outages[-1].end = perf_counter()

    def close(self) -> None:
        """Ends what runs."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.signal(signal.SIGCONT)
            self._process.kill()
        self._place.close()

    @property
    def _running(self) -> Listening:
        assert self._process is not None, f"replica {self.number} has not been started"
        return self._process


def reserve(folder: Path, count: int, keep_alive: float) -> list[Replica]:
    """Replicas at 127.0.0.1, 127.0.0.2 and so on, with one port for all, as the addresses behind a name have it."""
    while True:
        first = Replica(folder, 0, 0, keep_alive)
        made: list[Replica] = [first]
        try:
            made.extend(Replica(folder, number, first.address[1], keep_alive) for number in range(1, count))
        except OSError:  # somebody has that port at one of the addresses
            for replica in made:
                replica.close()
            continue
        return made


def none_left(replicas: Sequence[Replica], begin: float, end: float, notice: float) -> bool:
    """Whether there was a moment between the two at which every replica was out, or back for less than `notice`."""
    times = [
        [(outage.begin, (outage.end or end) + notice) for outage in replica.outages if outage.begin <= end]
        for replica in replicas
    ]
    moments = [max(begin, start) for outages in times for start, _ in outages]
    return any(
        moment <= end and all(any(start <= moment <= stop for start, stop in outages) for outages in times)
        for moment in moments
    )
