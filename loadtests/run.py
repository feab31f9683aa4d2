"""Runs scenarios, shows how they go, and writes the report."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from loadtests.catalogue import FLEET, MODELS, SCENARIOS
from loadtests.load import Load, Loaded, Side, sides
from loadtests.processes import Machinery
from loadtests.sample import OK, Sample
from loadtests.scenario import Replicas, Scenario, Served, Steady
from loadtests.summary import Summary, summarise
from loadtests.usage import Look, Watch, since

WARM_UP: Final = 0.5
"""Seconds of each scenario's own load that come first and are not counted."""

SETTLE: Final = 0.5
"""Seconds between two loads: engines notice clients that have left."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One scenario on one side."""

    loaded: Loaded
    summary: Summary
    looks: tuple[Look, ...] = ()
    """What the gateway used; empty for the direct side."""


@dataclass(frozen=True, slots=True)
class Result:
    """One scenario on both sides."""

    scenario: Scenario
    direct: Measured
    gateway: Measured

    @property
    def unexpected(self) -> dict[str, int]:
        """Errors through the gateway that do not belong to the scenario."""
        errors = self.gateway.summary.errors
        return {kind: count for kind, count in errors.items() if kind not in self.scenario.expected}


def chosen(names: Sequence[str], seconds: float | None) -> list[Scenario]:
    """The scenarios of those names, or all; with another duration, if one is given.

    Raises:
        KeyError: there is no such scenario.
    """
    known = {scenario.name: scenario for scenario in SCENARIOS}
    found = [known[name] for name in names] if names else list(SCENARIOS)
    return found if seconds is None else [replace(scenario, seconds=seconds) for scenario in found]


def needed(scenarios: Sequence[Scenario]) -> tuple[list[Replicas], list[Served]]:
    """The engines and models that the scenarios ask for."""
    asked = {shape.model for scenario in scenarios for shape in scenario.shapes}
    asked |= {scenario.slow.shape.model for scenario in scenarios if scenario.slow is not None}
    models = [model for model in MODELS if model.name in asked]
    behind = {model.replicas for model in models}
    return [replicas for replicas in FLEET if replicas.name in behind], models


class Show:
    """Progress on the terminal."""

    def __init__(self, console: Console, scenarios: Sequence[Scenario]) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<24}"),
            BarColumn(),
            TextColumn("{task.fields[answered]:>5} answered {task.fields[failed]:>4} failed"),
            TimeElapsedColumn(),
            console=console,
        )
        self._tasks: dict[tuple[str, str], TaskID] = {
            (scenario.name, side): self._progress.add_task(
                f"{scenario.name}, {side}", total=scenario.seconds, start=False, answered=0, failed=0
            )
            for scenario in scenarios
            for side in ("direct", "gateway")
        }
        self._counts: dict[TaskID, list[int]] = {task: [0, 0] for task in self._tasks.values()}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    async def follow(self, scenario: Scenario, side: Side) -> None:
        """Moves the bar until it is cancelled."""
        task = self._tasks[scenario.name, side.name]
        self._progress.start_task(task)
        while True:
            await asyncio.sleep(0.25)
            self._progress.advance(task, 0.25)

    def told(self, scenario: Scenario, side: Side, sample: Sample) -> None:
        """One request has ended."""
        task = self._tasks[scenario.name, side.name]
        counts = self._counts[task]
        counts[sample.outcome != OK] += 1
        self._progress.update(task, answered=counts[0], failed=counts[1])

    def done(self, scenario: Scenario, side: Side) -> None:
        """The load is over."""
        self._progress.update(self._tasks[scenario.name, side.name], completed=scenario.seconds)


async def run(scenarios: Sequence[Scenario], carrier: str, console: Console) -> list[Result]:
    """Starts everything, runs the scenarios one after the other, and ends everything."""
    console.print("Starting the simulated engines and the gateway")
    fleet, models = needed(scenarios)
    async with Machinery(fleet, models, carrier) as machinery:
        direct, gateway = sides(models, machinery.engines, machinery.gateway_address)
        results = []
        with Show(console, scenarios) as show:
            for scenario in scenarios:
                first = await measure(scenario, direct, show, None)
                second = await measure(scenario, gateway, show, machinery.gateway.pid)
                results.append(Result(scenario, first, second))
    return results


async def measure(scenario: Scenario, side: Side, show: Show, pid: int | None) -> Measured:
    """One scenario on one side, after a short warm-up."""
    await Load(replace(scenario, seconds=WARM_UP, arrivals=Steady(10), slow=None), side, lambda _: None).run()
    await asyncio.sleep(SETTLE)
    watch = Watch(pid) if pid is not None else None
    async with asyncio.TaskGroup() as group:
        beside = [group.create_task(show.follow(scenario, side))]
        if watch is not None:
            beside.append(group.create_task(watch.run()))
        loaded = await Load(scenario, side, lambda sample: show.told(scenario, side, sample)).run()
        for task in beside:
            task.cancel()
    show.done(scenario, side)
    looks: tuple[Look, ...] = ()
    if watch is not None:
        watch.look()
        looks = tuple(since(watch.looks, loaded.began))
    await asyncio.sleep(SETTLE)
    return Measured(loaded, summarise(loaded.samples), looks)


def print_results(console: Console, results: Sequence[Result], report: Path) -> None:
    """The main numbers as a table."""
    table = Table(title="Medians through the gateway (and directly)")
    table.add_column("scenario", no_wrap=True)
    for heading in ("requests", "first, ms", "between, ms", "whole, ms", "per second", "errors"):
        table.add_column(heading, justify="right")
    for result in results:
        ours, theirs = result.gateway.summary, result.direct.summary
        table.add_row(
            result.scenario.name,
            str(ours.requests),
            both(ours.first.p50, theirs.first.p50),
            both(ours.between.p50, theirs.between.p50),
            both(ours.whole.p50, theirs.whole.p50),
            both(ours.requests_per_second, theirs.requests_per_second),
            ", ".join(f"{count} x {kind}" for kind, count in ours.errors.items()) or "none",
        )
    console.print(table)
    console.print(f"Report: {report}", soft_wrap=True)


def both(ours: float, theirs: float) -> str:
    """Two numbers of one kind."""
    return "-" if ours != ours else f"{ours:.1f} ({theirs:.1f})"  # noqa: PLR0124 - NaN: there was none


def complain(results: Sequence[Result]) -> bool:
    """Says on stderr what went wrong; whether anything did."""
    failed = [(result.scenario.name, result.unexpected) for result in results if result.unexpected]
    for name, unexpected in failed:
        sys.stderr.write(f"{name}: {', '.join(f'{count} x {kind}' for kind, count in unexpected.items())}\n")
    return bool(failed)
