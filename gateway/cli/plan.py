"""`turnout plan`."""

import json
import re
from pathlib import Path
from typing import Annotated, Final

import typer

from gateway.background.fetch import Fetch
from gateway.background.planning import plan as make_plan
from gateway.cli import interruptible
from gateway.cli.addresses import gateway_url
from gateway.cli.plan_view import show_plan
from gateway.cli.report import read_settings
from gateway.cli.running import InForce, RunningGateway, Token, address_of, tokens_for
from gateway.settings import Settings
from gateway.settings.changes.plan import Plan, as_tree

_FIX: Final = "start it, or say with --against where it is, or which file to compare with"
_PORT: Final = re.compile(r"^[^/]+:[0-9]+(/|$)")

UNSAFE: Final = 3
"""The exit code for what would take something away from clients that they have now."""


def plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The configuration that is to be.")],
    against: Annotated[
        str | None,
        typer.Option(
            metavar="URL|FILE", help="A running gateway, or a file; default: a gateway at the file's own address."
        ),
    ] = None,
    token: Token = None,
    probe: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--probe/--no-probe", help="Really ask what is new whether it is there.")
    ] = True,
    in_json: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--json", help="Print everything as JSON.")
    ] = False,
) -> None:
    """Tell what a configuration would change for clients, before it is in force.

    Exit code 0: safe; 2: the file is not valid; 3: a model would lose its last healthy target, or a new engine cannot
    be reached; 1: there is nothing to compare with.
    """
    loaded = read_settings(file)
    found = interruptible.run(planned(loaded.settings, against, token, probe=probe))
    if in_json:
        typer.echo(json.dumps(as_tree(found), indent=2, ensure_ascii=False))
    else:
        show_plan(found, str(loaded.source))
    if not found.safe:
        raise typer.Exit(UNSAFE)


async def planned(new: Settings, against: str | None, token: str | None, *, probe: bool) -> Plan:
    """The plan against a running gateway or a file; see `plan`."""
    fetch = Fetch() if probe else None
    try:
        if against is not None and _is_file(against):
            other = read_settings(Path(against))
            return await make_plan(against, other.settings, new, {}, fetch)
        url = address_of(new.server) if against is None else gateway_url(against, "--against")
        async with RunningGateway(url, tokens_for(new, token), fix=_FIX, variable=token) as running:
            return await plan_against(running, await running.config(full=True), new, fetch)
    finally:
        if fetch is not None:
            await fetch.close()


def _is_file(against: str) -> bool:
    """Whether it is a file's path, and no address; one without a scheme ends with its port."""
    return bool(against) and "://" not in against and (_PORT.search(against) is None or Path(against).exists())


async def plan_against(running: RunningGateway, in_force: InForce, new: Settings, fetch: Fetch | None) -> Plan:
    """The plan against what a gateway has just said that it has in force."""
    old = in_force.settings or Settings()
    return await make_plan(running.url, old, new, await running.standing(old), fetch)
