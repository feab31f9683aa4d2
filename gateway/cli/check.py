"""`turnout check`."""

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.report import read_settings
from gateway.settings import Engine, Model
from gateway.settings.json_schema import json_schema_text
from gateway.settings.reference import reference_text


def check(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="The configuration; default: $TURNOUT_CONFIG, turnout.yaml, config/turnout.yaml."
        ),
    ] = None,
    schema: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--schema", help="Print the JSON Schema of the file, for editors, and check nothing.")
    ] = False,
    reference: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--reference", help="Print every key with its meaning and default, and check nothing.")
    ] = False,
) -> None:
    """Validate a configuration file: exit code 0 if it can be served, 2 with every problem otherwise."""
    if schema or reference:
        typer.echo(json_schema_text() if schema else reference_text(), nl=False)
        return
    loaded = read_settings(file)
    settings = loaded.settings
    typer.echo(f"{loaded.source}: OK")
    for name, engine in settings.engines.items():
        typer.echo(f"  engine {name}: {_engine(engine)}")
    for name, model in settings.models.items():
        typer.echo(f"  model {name}: {_model(name, model)}")
    if settings.discovers_models:
        typer.echo("  models: whatever the engines list")


def _engine(engine: Engine) -> str:
    replicas = "1 replica" if len(engine.urls) == 1 else f"{len(engine.urls)} replicas"
    return f"{engine.kind}, {replicas}"


def _model(name: str, model: Model) -> str:
    targets = ", ".join(f"{target.model} on {target.engine}" for target in model.targets_of(name))
    also = f"; also called {', '.join(model.aliases)}" if model.aliases else ""
    return f"{model.task}, {targets}{also}"
