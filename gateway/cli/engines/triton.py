"""`turnout engines triton`."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Annotated, assert_never

import typer

from engines.kserve import ModelEntry, Order
from gateway.cli import interruptible
from gateway.cli.engines.command import NAME
from gateway.cli.engines.launched import Config
from gateway.cli.report import read_settings
from gateway.kserve.control import LOADING, Address, KServe, KServeError, Statistics, carry_out, connect
from gateway.settings.problems import did_you_mean


class Action(Enum):
    """What to do."""

    INDEX = "index"
    LOAD = "load"
    UNLOAD = "unload"
    STATS = "stats"
    METADATA = "metadata"


def control_triton(
    name: NAME,
    action: Annotated[Action, typer.Argument(help="What to do.")],
    model: Annotated[
        str | None, typer.Argument(help="A model of the repository; load and unload need one.", metavar="MODEL")
    ] = None,
    config: Config = None,
    patience: Annotated[
        float, typer.Option("--timeout", min=0, metavar="SECONDS", help="How long a model may take.")
    ] = LOADING,
    in_json: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--json", help="Print everything as JSON.")
    ] = False,
) -> None:
    """Look at a Triton's model repository, load and unload its models, by KServe.

    Waits until a model is ready, or is gone: Triton answers an unload at once, and goes on for seconds. Exit code 1: it
    refuses, or cannot be asked.
    """
    if model is None and action in (Action.LOAD, Action.UNLOAD):
        raise typer.TyperException(f"{action.value} needs the name of a model: turnout engines triton {name} index")
    address = _address(name, config)
    try:
        interruptible.run(_act(address, action, model or "", patience, in_json=in_json))
    except KServeError as error:
        raise typer.TyperException(f"engines.{name} ({address}): {error}") from None


def _address(name: str, config: Path | None) -> Address:
    loaded = read_settings(config)
    engine = loaded.settings.engines.get(name)
    if engine is None:
        close = did_you_mean(name, loaded.settings.engines) or f"engines: {', '.join(loaded.settings.engines)}"
        raise typer.TyperException(f'{loaded.source}: no engine "{name}" ({close})')
    if engine.kserve is None:
        fix = "add kserve: {grpc: 127.0.0.1:8001} or {http: http://127.0.0.1:8000}"
        raise typer.TyperException(f"{loaded.source}: engines.{name} has no kserve address ({fix})")
    return Address(engine.kserve.http or "", engine.kserve.grpc or "")


async def _act(address: Address, action: Action, model: str, patience: float, *, in_json: bool) -> None:
    async with connect(address) as triton:
        match action:
            case Action.INDEX:
                entries = await triton.index()
                listed = [one for one in entries if not model or one.name == model]
                await _show(triton, listed, in_json=in_json)
            case Action.LOAD | Action.UNLOAD:
                listed = list(await carry_out(triton, Order(action.value), model, patience))
                await _show(triton, listed, in_json=in_json)
            case Action.STATS:
                _show_statistics(await triton.statistics(model), in_json=in_json)
            case Action.METADATA:
                typer.echo(json.dumps(await triton.metadata(model), indent=2))
            case _:
                assert_never(action)


async def _show(triton: KServe, entries: Sequence[ModelEntry], *, in_json: bool) -> None:
    if in_json:
        rows = [{**asdict(one), "state": one.state.value} for one in entries]
        typer.echo(json.dumps(rows, indent=2))
        return
    for one in entries:
        state = one.state.value.lower() or "not loaded"
        version = f" version {one.version}" if one.version else ""
        typer.echo(f"{one.name}{version}: {state}" + (f" ({one.reason})" if one.reason else ""))
    if not await triton.server_ready():
        typer.echo("note: the server as a whole is not ready now, as ever while a model is on its way out", err=True)


def _show_statistics(rows: Sequence[Statistics], *, in_json: bool) -> None:
    if in_json:
        typer.echo(json.dumps([asdict(one) for one in rows], indent=2))
        return
    for one in rows:
        each = f", {one.took / one.succeeded / 1e6:.1f} ms each" if one.succeeded else ""
        waited = f", {one.queued / one.succeeded / 1e6:.1f} ms of them queued" if one.succeeded else ""
        typer.echo(f"{one.name} version {one.version}: {one.succeeded} served{each}{waited}, {one.failed} failed")
