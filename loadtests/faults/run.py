"""Runs one fault scenario: its engines, its gateway, its load and its acts, and judges what came of it."""

import asyncio
import contextlib
import itertools
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Final, Self

from loadtests.faults.acts import perform
from loadtests.faults.gate import CHECKS, Gate, Held
from loadtests.faults.guests import Party
from loadtests.faults.judge import Asked, Facts, describe, excuse, failed
from loadtests.faults.replicas import reserve
from loadtests.faults.scenario import FaultScenario, Start
from loadtests.faults.traffic import Traffic
from loadtests.summary import Spread, wholes

CALM: Final = 1.2
"""Seconds of the same load before anything happens, which latencies are compared with."""

MEMORY: Final = 24 * 2**20
"""Bytes by which the gateway may grow: its first errors, retries and metrics need memory that it keeps."""

MOMENT: Final = 0.2
"""Seconds in which the gateway notices that clients have left."""

FEW: Final = 20
"""Requests below which shares say nothing."""


@dataclass(slots=True)
class Result:
    """What came of a scenario."""

    name: str
    sent: int = 0
    served: int = 0
    failed: int = 0
    excused: dict[str, int] = field(default_factory=dict)
    """Failures that nobody could have avoided, by reason."""
    avoidable: list[str] = field(default_factory=list)
    duplicates: int = 0
    """How often a replica worked on a request that another one had worked on before."""
    guests: int = 0
    """Requests of rude clients; nobody counts how they end."""
    calm: Spread = field(default_factory=lambda: Spread.of(()))
    """Milliseconds from due to the end of the answer, before anything happened."""
    loaded: Spread = field(default_factory=lambda: Spread.of(()))
    before: Held = field(default_factory=lambda: Held(0, 0, 0, 0))
    after: Held = field(default_factory=lambda: Held(0, 0, 0, 0))
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)
    """Everything else that should not be."""

    @property
    def added(self) -> float:
        """Milliseconds of the 99th percentile that the fault added."""
        return self.loaded.p99 - self.calm.p99

    @property
    def good(self) -> bool:
        """Whether all is as it should be."""
        return not self.avoidable and not self.wrong


async def run(scenario: FaultScenario, carrier: str = "protocol", *, short: bool = True) -> Result:
    """Runs it to the end, however it ends; nothing is left behind.

    Raises:
        DidNotStart: a process does not listen.
    """
    with _Stage(scenario, carrier) as stage:
        return await stage.play(
            1 if short or scenario.once else max(1, round(scenario.long_seconds / scenario.seconds))
        )


async def run_all(
    scenarios: Sequence[FaultScenario], carrier: str, together: int, told: Callable[[Result], None], *, short: bool
) -> list[Result]:
    """Runs scenarios, `together` of them at a time, each with processes of its own; `told` hears of each result.

    Raises:
        ExceptionGroup: of `DidNotStart`.
    """
    turns = asyncio.Semaphore(together)

    async def one(scenario: FaultScenario) -> Result:
        async with turns:
            result = await run(scenario, carrier, short=short)
        told(result)
        return result

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(scenario)) for scenario in scenarios]
    return [task.result() for task in tasks]


class _Stage:
    """Everything that a scenario needs."""

    def __init__(self, scenario: FaultScenario, carrier: str) -> None:
        self._scenario = scenario
        self._carrier = carrier
        self._stack = contextlib.ExitStack()
        self._numbers = itertools.count(1)
        self._wrong: list[str] = []

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="turnout-faults-")))
            self._replicas = reserve(folder, self._scenario.replicas, self._scenario.keep_alive)
            for replica in self._replicas:
                stack.callback(replica.close)
            self._gate = Gate(folder, self._scenario, self._replicas, self._carrier)
            stack.callback(self._gate.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    async def play(self, cycles: int) -> Result:
        """The load, first without and then with the acts; then the judgement."""
        scenario, began = self._scenario, perf_counter()
        paces = [scenario.paces.get(replica.number, scenario.pace) for replica in self._replicas]
        await asyncio.gather(*(one.start(pace) for one, pace in zip(self._replicas, paces, strict=True)))
        await self._gate.start()
        calm = await self._load(asyncio.sleep(CALM))
        await asyncio.sleep(MOMENT)
        before = await self._gate.held()
        asked, guests = await self._disturbed(cycles)
        if not await self._gate.has_reloaded():
            self._wrong.append("the last configuration is not in force")
        result = self._judged(asked, await self._gate.settled(before))
        result.calm = Spread.of(wholes(one.sample for one in calm))
        result.guests, result.before = len(guests.numbers), before
        guests.leave()
        self._check_guests(guests, result)
        self._compare(result)
        for one in failed(calm):
            result.wrong.append(f"before anything happened: {one.sample.outcome}")
        result.seconds = perf_counter() - began
        return result

    async def _load(self, meanwhile: Awaitable[None]) -> list[Asked]:
        """Requests come while something goes on; then their answers are waited for."""
        scenario = self._scenario
        traffic = Traffic(self._gate.address, lambda: next(self._numbers), scenario.tokens)
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(traffic.run(scenario.per_second, scenario.every))
            await meanwhile
            sending.cancel()
        await traffic.end()
        return traffic.asked

    async def _disturbed(self, cycles: int) -> tuple[list[Asked], Party]:
        party = Party(self._scenario.guests, self._gate.address, lambda: next(self._numbers))
        await party.begin()
        asked = await self._load(self._play(cycles))
        await party.stop()
        return asked, party

    async def _play(self, cycles: int) -> None:
        for _ in range(cycles):
            began = perf_counter()
            for act in self._scenario.acts:
                await _until(began + act.at)
                due = perf_counter()
                if wrong := await perform(act, self._replicas, self._gate):
                    self._wrong.append(wrong)
                if isinstance(act, Start):
                    began += perf_counter() - due  # on a busy machine, what follows keeps its distance
            await _until(began + self._scenario.seconds)

    # ---- judgement

    def _judged(self, asked: list[Asked], after: Held) -> Result:
        scenario = self._scenario
        records = [replica.record for replica in self._replicas]
        numbers = {one.number for one in asked}
        last_at = _last_at([one.number for one in failed(asked)], [record.taken_at for record in records])
        facts = Facts(self._replicas, last_at, scenario.notice, self._gate.left_at)
        executed: Counter[int] = Counter()
        for record in records:
            executed.update({number: times for number, times in record.executed.items() if number in numbers})
        bad = failed(asked)
        reasons = [(one, excuse(one, facts)) for one in bad]
        allowed = [reason for _, reason in reasons if reason in scenario.excuses and reason is not None]
        result = Result(scenario.name, len(asked), len(asked) - len(bad), len(bad), after=after, wrong=self._wrong)
        result.excused = {reason.value: count for reason, count in Counter(allowed).items()}
        result.avoidable = [describe(one, facts) for one, reason in reasons if reason not in scenario.excuses]
        result.duplicates = sum(times - 1 for times in executed.values())
        result.loaded = Spread.of(wholes(one.sample for one in asked))
        total = sum(executed.values())
        for number, most in scenario.shares.items():
            share = sum(t for n, t in records[number].executed.items() if n in numbers) / max(1, total)
            if total >= FEW and share > most:
                result.wrong.append(f"replica {number} got {share:.0%} of the requests, more than {most:.0%}")
        return result

    def _check_guests(self, guests: Party, result: Result) -> None:
        """Whether they did what they were there for, and no replica worked for them to the end."""
        records = [replica.record for replica in self._replicas]
        asked = set(guests.numbers)
        taken = {number for record in records for number in record.executed if number in asked}
        ended = {number for record in records for number in record.ended if number in asked}
        kinds = self._scenario.guests
        if (kinds.vanishing or kinds.deaf) and not taken:
            result.wrong.append("no replica ever saw a request of the rude clients")
        if kinds.deaf and ended:
            result.wrong.append(f"replicas wrote {len(ended)} answers to the end that nobody read")

    def _compare(self, result: Result) -> None:
        """What the gateway holds after all of it, with what it held before."""
        before, after = result.before, result.after
        if self._gate.left_at is not None:
            result.after = before
            return
        if after.in_flight:
            result.wrong.append(f"{after.in_flight} requests are still counted as being served")
        if after.files > before.files:
            result.wrong.append(f"{after.files - before.files} more open files than before")
        if after.to_replicas > CHECKS * len(self._replicas):
            result.wrong.append(f"{after.to_replicas} idle connections to replicas are still open")
        if after.memory - before.memory > MEMORY:
            result.wrong.append(f"{(after.memory - before.memory) / 2**20:.0f} MiB more memory than before")


async def _until(moment: float) -> None:
    """Returns when it has come."""
    await asyncio.sleep(max(0.0, moment - perf_counter()))


def _last_at(requests: Sequence[int], taken_at: Sequence[Mapping[int, float]]) -> dict[int, int]:
    """The replica that got each request last."""
    found = {}
    for request in requests:
        times = [(times[request], replica) for replica, times in enumerate(taken_at) if request in times]
        if times:
            found[request] = max(times)[1]
    return found
