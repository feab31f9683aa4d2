"""`turnout apply`."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from gateway.background.fetch import Fetch
from gateway.cli import interruptible
from gateway.cli.addresses import gateway_url
from gateway.cli.files import put_back, replace_whole
from gateway.cli.plan import UNSAFE, plan_against
from gateway.cli.plan_view import show_plan
from gateway.cli.report import read_settings
from gateway.cli.running import InForce, RunningGateway, Token, address_of, tokens_for
from gateway.settings import Loaded
from gateway.settings.changes.plan import Plan

_FIX: Final = "start it, or say with --against where it is"
LOOK_AGAIN: Final = 0.1
"""Seconds between two looks whether it is in force."""


class NotApplied(typer.TyperException):
    """It is not in force; the message says what is, and what to do."""


class Refused(NotApplied):
    """The gateway cannot use it."""

    exit_code = 2


class Unsafe(NotApplied):
    """Somebody would lose something."""

    exit_code = UNSAFE


@dataclass(frozen=True, slots=True)
class Edit:
    """What is to be written, and where. `before` is what is there now; None: there is no file."""

    loaded: Loaded
    content: bytes
    target: Path
    before: bytes | None
    hash: str

    @property
    def in_place(self) -> bool:
        """The gateway's own file was edited: there is nothing to write."""
        return self.content == self.before


def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The configuration that is to be.")],
    to: Annotated[
        Path | None, typer.Option(metavar="RUNNING_FILE", help="The gateway's file; default: the one it names.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="URL", help="The gateway; default: the one at the file's own address.")
    ] = None,
    token: Token = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,  # noqa: FBT002 - an option
    force: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--force", help="Also when a model would lose its last healthy target.")
    ] = False,
    probe: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--probe/--no-probe", help="Really ask what is new whether it is there.")
    ] = True,
    timeout: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to wait until it is in force.")
    ] = 30.0,
) -> None:
    """Plan, ask, write the gateway's file, and wait until it is in force.

    Exit code 0: in force; 2: not valid, here or for the gateway, whose file is then as before; 3: not safe, nothing was
    written; 1: anything else.
    """
    loaded = read_settings(file)
    url = address_of(loaded.settings.server) if against is None else gateway_url(against, "--against")
    running = RunningGateway(url, tokens_for(loaded.settings, token), fix=_FIX, variable=token)
    decide = _decision(yes=yes, force=force)
    interruptible.run(_apply(running, loaded, to, decide, probe=probe, patience=timeout))


def _decision(*, yes: bool, force: bool) -> Callable[[Plan, Edit], None]:
    """What decides whether a plan is carried out; it raises if it is not."""

    def decide(plan: Plan, edit: Edit) -> None:
        if not plan.safe and not force:
            raise Unsafe("nothing is written: mend what is unsafe, or give --force")
        if yes:
            return
        if not sys.stdin.isatty():
            raise NotApplied("nothing is written: nobody can be asked, so give --yes")
        if not typer.confirm(f"Put this in force ({edit.target})?", err=True):
            raise NotApplied("nothing is written")

    return decide


async def _apply(
    running: RunningGateway,
    loaded: Loaded,
    to: Path | None,
    decide: Callable[[Plan, Edit], None],
    *,
    probe: bool,
    patience: float,
) -> None:
    fetch = Fetch() if probe else None
    try:
        async with running:
            in_force = await running.config(full=True)
            edit = _edit(loaded, to or _source(running, in_force))
            if edit.in_place and in_force.hash == edit.hash:
                typer.echo(f"{running.url} has it in force already")
                return
            plan = await plan_against(running, in_force, loaded.settings, fetch)
            show_plan(plan, str(loaded.source))
            decide(plan, edit)
            await carry_out(running, edit, patience)
    finally:
        if fetch is not None:
            await fetch.close()


def _source(running: RunningGateway, in_force: InForce) -> Path:
    if in_force.source is None:
        raise NotApplied(f"{running.url} was started without a file: start it with --config FILE")
    source = Path(in_force.source)
    if not source.is_file():
        raise NotApplied(f"the file of {running.url}, {source}, is not here: say with --to where it is")
    return source


def _edit(loaded: Loaded, target: Path) -> Edit:
    """Reads what is to be written, and makes sure that it is as good at its place, where a keys file may be another."""
    content = loaded.source.read_bytes()
    place = Path(os.path.realpath(target))
    if not place.parent.is_dir():
        raise NotApplied(f"there is no folder {place.parent}: --to names the gateway's own file")
    if place.is_dir():
        raise NotApplied(f"{target} is a folder, and a file is needed: --to names the gateway's own file")
    number, name = tempfile.mkstemp(dir=place.parent, prefix=f".{target.name}.", suffix=".try")
    trial = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        there = read_settings(trial)
    finally:
        trial.unlink()
    return Edit(loaded, content, target, target.read_bytes() if target.exists() else None, there.text_hash)


async def carry_out(running: RunningGateway, edit: Edit, patience: float) -> None:
    """Writes the file and waits until it is in force; what does not come in force is taken back.

    Raises:
        NotApplied: it is not.
    """
    if edit.in_place:
        refusal = await _refusal(running, edit, patience)
        if refusal is not None:
            raise Refused(f"the gateway refuses it, and goes on with what it had: {refusal}")
        return
    replace_whole(edit.target, edit.content)
    try:
        refusal = await _refusal(running, edit, patience)
    except typer.TyperException as error:
        put_back(edit.target, edit.before)
        told = f"(nothing stays written: {edit.target} is as it was before)"
        raise NotApplied(f"{error.message} {told}") from None
    except BaseException:  # whoever stops the command leaves nothing half done either
        put_back(edit.target, edit.before)
        raise
    if refusal is None:
        return
    put_back(edit.target, edit.before)
    await running.reload()
    raise Refused(f"the gateway refuses it, and {edit.target} is as it was before: {refusal}")


async def _refusal(running: RunningGateway, edit: Edit, patience: float) -> str | None:
    """Why the gateway does not take what stands in its file now; None once it is in force."""
    refused = await running.reload()
    if refused is not None:
        return refused
    in_force = await _until(running.config, edit.hash, patience)
    if in_force.hash != edit.hash:
        why = in_force.error or f"is {edit.target} its file?"
        raise NotApplied(f"{running.url} does not have it in force after {patience:g} s: {why}")
    typer.echo(f"{running.url} has it in force")
    for told in in_force.restart_needed:
        typer.echo(f"  {told}")
    return None


async def _until(config: Callable[[], Awaitable[InForce]], wanted: str, patience: float) -> InForce:
    loop = asyncio.get_running_loop()
    end = loop.time() + patience
    found = await config()
    while found.hash != wanted and loop.time() < end:
        await asyncio.sleep(LOOK_AGAIN)
        found = await config()
    return found
