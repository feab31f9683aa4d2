"""`python -m loadtests.faults`."""

import asyncio
import signal
from pathlib import Path
from typing import Annotated, Final

import typer
import uvloop
from rich.console import Console

from loadtests.faults.catalogue import SCENARIOS, SHORT
from loadtests.faults.report import show, write
from loadtests.faults.run import Result, run_all
from loadtests.faults.scenario import FaultScenario
from loadtests.processes import DidNotStart

NAMES: Final = ", ".join(scenario.name for scenario in SCENARIOS)


def main(
    only: Annotated[list[str] | None, typer.Option(metavar="NAME", help=f"{NAMES}; repeat for more.")] = None,
    short: Annotated[bool, typer.Option("--short", help="Each scenario once, for a few seconds.")] = False,  # noqa: FBT002 - a flag
    carrier: Annotated[str, typer.Option(help="How the gateway carries calls: protocol or asgi.")] = "protocol",
    together: Annotated[int, typer.Option(min=1, help="How many at a time: quicker, and latencies say less.")] = 1,
    out: Annotated[Path, typer.Option(help="The folder for faults.json.")] = Path("build/faults"),
) -> None:
    """Let engines fail under load, and say which requests could not be saved."""
    known = {scenario.name: scenario for scenario in SCENARIOS}
    try:
        scenarios = [known[name] for name in only] if only else list(SHORT if short else SCENARIOS)
    except KeyError as unknown:
        raise typer.BadParameter(f"no scenario {unknown}; there are {NAMES}") from None
    console = Console()
    try:
        results = uvloop.run(_run(scenarios, carrier, together, console, short=short))
    except* DidNotStart as errors:
        console.print(f"[red]Did not start:[/red] {errors.exceptions[0]}")
        raise typer.Exit(1) from None
    show(console, results)
    console.print(f"All of it: {write(results, out)}", soft_wrap=True)
    if not all(result.good for result in results):
        raise typer.Exit(1)


async def _run(
    scenarios: list[FaultScenario], carrier: str, together: int, console: Console, *, short: bool
) -> list[Result]:
    """A termination ends the processes that were started, as Ctrl-C does."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)

    def told(result: Result) -> None:
        console.print(f"{'good' if result.good else 'BAD '} {about[result.name]}", soft_wrap=True)

    about = {scenario.name: f"{scenario.name}: {scenario.about}" for scenario in scenarios}
    return await run_all(scenarios, carrier, together, told, short=short)


if __name__ == "__main__":
    typer.run(main)
