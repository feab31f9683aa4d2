"""`turnout check`."""

import os
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.report import as_github, as_json, show_problems
from gateway.settings import ConfigErrors, Engine, Loaded, Model
from gateway.settings.advice import load_advised
from gateway.settings.json_schema import json_schema_text
from gateway.settings.problems import Problem
from gateway.settings.reference import reference_text


class Format(StrEnum):
    """Who reads what `check` says."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def check(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="The configuration; default: $TURNOUT_CONFIG, turnout.yaml, config/turnout.yaml."
        ),
    ] = None,
    strict: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--strict", help="Exit with 2 for warnings too.")
    ] = False,
    form: Annotated[
        Format,
        typer.Option("--format", help="text for people, json for programs, github for annotations of a pull request."),
    ] = Format.TEXT,
    schema: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--schema", help="Print the JSON Schema of the file, for editors, and check nothing.")
    ] = False,
    reference: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--reference", help="Print every key with its meaning and default, and check nothing.")
    ] = False,
) -> None:
    """Validate a configuration file: exit code 0 if it can be served, 2 with every problem otherwise.

    Warnings are about what can be served and is probably not meant.
    """
    if schema or reference:
        typer.echo(json_schema_text() if schema else reference_text(), nl=False)
        return
    try:
        loaded: Loaded | ConfigErrors = load_advised(file, os.environ, at=time.time())
    except ConfigErrors as errors:
        loaded = errors
    problems = loaded.problems if isinstance(loaded, ConfigErrors) else loaded.warnings
    wrong = isinstance(loaded, ConfigErrors)
    if form is Format.TEXT:
        show_problems(problems, loaded.lines_of)
        if isinstance(loaded, Loaded):
            _sum_up(loaded)
    else:
        _print(problems, form, ok=not wrong)
    if wrong or (strict and problems):
        raise typer.Exit(2)


def _print(problems: tuple[Problem, ...], form: Format, *, ok: bool) -> None:
    if form is Format.JSON:
        typer.echo(as_json(problems, ok=ok))
    for problem in problems if form is Format.GITHUB else ():
        typer.echo(as_github(problem))


def _sum_up(loaded: Loaded) -> None:
    settings, count = loaded.settings, len(loaded.warnings)
    warned = f", with {count} warning{'s' if count > 1 else ''}" if count else ""
    typer.echo(f"{loaded.source}: OK{warned}")
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
