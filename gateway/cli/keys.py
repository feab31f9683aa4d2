"""`turnout keys`: makes keys for clients."""

import json
import math
import secrets
import time
from hashlib import sha256
from typing import Annotated, Final

import typer

from gateway.settings.access import parse_instant
from gateway.settings.values import RefusedValueError

PREFIX: Final = "sk-turnout-"
"""Begins every key: tools look for ``sk-``, and scanners for leaked secrets know whose it is."""

BITS: Final = 256

app: Final = typer.Typer(help="Make keys for clients.", no_args_is_help=True, add_completion=False)


@app.callback()
def _group() -> None:
    """Make keys for clients."""


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="What logs, metrics and usage call it.")],
    models: Annotated[
        list[str] | None, typer.Option("--models", help="What it may ask for, separated by commas; default: all.")
    ] = None,
    priority: Annotated[float | None, typer.Option(help="Who waits for room goes by it, the highest first.")] = None,
    expires: Annotated[str | None, typer.Option(help="When it ends: 2027-01-31, or a time.", metavar="DATE")] = None,
) -> None:
    """Make a key. It is printed once and kept nowhere; the line below it goes under `keys:`, or into the keys file."""
    entry: dict[str, object] = {"name": _checked(name)}
    key = PREFIX + secrets.token_urlsafe(BITS // 8)
    entry["hash"] = f"sha256:{sha256(key.encode()).hexdigest()}"
    if models:
        entry["models"] = _models(models)
    if priority is not None:
        if not math.isfinite(priority):
            raise typer.BadParameter(f"--priority {priority}: expected a number, such as 10 or -1")
        entry["priority"] = priority
    if expires is not None:
        _check_end(expires, time.time())
        entry["expires"] = expires
    typer.echo(key)
    typer.echo(f"- {_flow(entry)}")


def _models(given: list[str]) -> list[str]:
    found = [model.strip() for part in given for model in part.split(",") if model.strip()]
    if not found:
        raise typer.BadParameter(
            f"--models {' '.join(given)}: expected names of models; without --models it is for all"
        )
    return found


def _check_end(expires: str, now: float) -> None:
    try:
        end = parse_instant(expires)
    except RefusedValueError as error:
        raise typer.BadParameter(f"--expires {expires}: {error}") from None
    if end <= now:
        raise typer.BadParameter(f"--expires {expires}: is over already, so that the key would never let anybody in")


def _checked(name: str) -> str:
    if not name or name != name.strip() or not name.isprintable():
        raise typer.BadParameter("a name has at least one character, no blanks around it and no control characters")
    return name


def _flow(entry: dict[str, object]) -> str:
    """The entry on one line of YAML. JSON is YAML; plain words lose their quotes."""
    return "{" + ", ".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()) + "}"
