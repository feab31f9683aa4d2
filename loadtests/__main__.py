"""`python -m loadtests`."""

import asyncio
import signal
from pathlib import Path
from typing import Annotated, Final

import typer
import uvloop
from rich.console import Console

from loadtests.catalogue import SCENARIOS
from loadtests.processes import DidNotStart
from loadtests.report import write
from loadtests.run import Result, chosen, complain, print_results, run
from loadtests.scenario import Scenario

NAMES: Final = ", ".join(scenario.name for scenario in SCENARIOS)


def main(
    only: Annotated[list[str] | None, typer.Option(metavar="NAME", help=f"{NAMES}; repeat for more.")] = None,
    seconds: Annotated[float | None, typer.Option(min=1, max=60, help="How long each load lasts.")] = None,
    carrier: Annotated[str, typer.Option(help="How the gateway carries calls: protocol or asgi.")] = "protocol",
    out: Annotated[Path, typer.Option(help="The folder for report.html and results.json.")] = Path("build/loadtest"),
) -> None:
    """Load simulated engines directly and through the gateway, and write a report."""
    console = Console()
    try:
        scenarios = chosen(only or (), seconds)
    except KeyError as unknown:
        raise typer.BadParameter(f"no scenario {unknown}; there are {NAMES}") from None
    try:
        results = uvloop.run(_run(scenarios, carrier, console))
    except DidNotStart as error:
        console.print(f"[red]Did not start:[/red] {error}")
        raise typer.Exit(1) from None
    report = write(results, out, carrier)
    print_results(console, results, report)
    if complain(results):
        raise typer.Exit(1)


async def _run(scenarios: list[Scenario], carrier: str, console: Console) -> list[Result]:
    """A termination ends the processes that were started, as Ctrl-C does."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await run(scenarios, carrier, console)


if __name__ == "__main__":
    typer.run(main)
