"""`turnout doctor`."""

import asyncio
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text

from gateway.background.resolver import look_up
from gateway.cli.report import read_settings
from gateway.doctor import results
from gateway.doctor.asker import Asker, Patience
from gateway.doctor.discovered import with_models
from gateway.doctor.examination import Examination
from gateway.doctor.finding import Diagnosis, Finding, Level, counted
from gateway.doctor.subject import Lines
from gateway.settings import Loaded
from gateway.settings.document import read_document
from gateway.settings.values import MANY_ADDRESSES

_STYLES: Final = {Level.ERROR: "bold red", Level.WARNING: "yellow", Level.INFO: "cyan"}


def doctor(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="The configuration; default: $TURNOUT_CONFIG, turnout.yaml, config/turnout.yaml."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,  # noqa: FBT002 - an option
    strict: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--strict", help="Warnings count as errors.")
    ] = False,
    diff: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--diff", help="Show what is new since the last run, and what is gone.")
    ] = False,
    kept: Annotated[
        Path | None,
        typer.Option(
            "--results", metavar="DIR", help="Where results are kept; default: ~/.local/state/turnout/doctor."
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="For each answer.")] = 30.0,
) -> None:
    """Ask the live engines whether they keep what the file promises: exit code 0, 1 with errors, 2 for a bad file."""
    loaded = read_settings(file)
    folder = results.folder_for(kept or results.default_folder(os.environ), loaded.source)
    examination = asyncio.run(_ready(loaded, Patience(answer=timeout)))
    if not as_json:
        _say_cost(examination)
    diagnosis = _run(examination, quiet=as_json)
    change = results.compare(results.last(folder), diagnosis) if diff else None
    _remember(folder, diagnosis, loaded)
    failed = diagnosis.failed(strict=strict)
    if as_json:
        told: dict[str, object] = {"ok": not failed, "findings": [one.plain() for one in diagnosis.findings]}
        typer.echo(
            json.dumps(told if change is None else told | {"diff": change.plain()}, indent=2, ensure_ascii=False)
        )
    else:
        _show(diagnosis, change)
    raise typer.Exit(1 if failed else 0)


async def _ready(loaded: Loaded, patience: Patience) -> Examination:
    """What is to be examined: the file, the addresses that its names stand for, and the models, if it names none."""
    lines = Lines(str(loaded.source), read_document(loaded.source.read_text(encoding="utf-8-sig"), os.environ))
    names = [
        url for engine in loaded.settings.engines.values() for url in engine.urls if url.startswith(MANY_ADDRESSES)
    ]
    addresses = {url: await _resolved(url) for url in names}
    examination = Examination(loaded.settings, lines, patience, addresses)
    if loaded.settings.discovers_models:
        asker = Asker(patience)
        first = [sites[0] for name in loaded.settings.engines if (sites := examination.sites(name))]
        settings = await with_models(loaded.settings, asker, first)
        await asker.close()
        examination = replace(examination, settings=settings)
    return examination


async def _resolved(url: str) -> Sequence[str]:
    """All addresses of a name; none if it cannot be resolved, which a check then tells of the name itself."""
    parts = urlsplit(url.removeprefix(MANY_ADDRESSES))
    try:
        return await look_up(parts.hostname or "", parts.port or 80)
    except (OSError, UnicodeError):
        return ("",)


def _say_cost(examination: Examination) -> None:
    for name, engine in examination.settings.engines.items():
        cost = examination.cost(name)
        replicas = f"{len(engine.urls)} replica{'s' if len(engine.urls) > 1 else ''}"
        typer.echo(
            f"engine {name}: {engine.kind}, {replicas}: at most {cost.requests} requests, {cost.tokens} tokens",
            err=True,
        )


def _run(examination: Examination, *, quiet: bool) -> Diagnosis:
    """Runs it, with a bar for each engine on a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bars:
        tasks: dict[str, TaskID] = {name: bars.add_task(name, total=None) for name in examination.settings.engines}

        def progress(engine: str, done: int, steps: int) -> None:
            bars.update(tasks[engine], completed=done, total=steps)

        return asyncio.run(replace(examination, progress=progress).run())


def _remember(folder: Path, diagnosis: Diagnosis, loaded: Loaded) -> None:
    try:
        results.keep(folder, diagnosis, loaded.settings.engines, time.time())
    except OSError as error:
        typer.echo(f"the results are not kept: {folder}: {error.strerror} (give --results DIR)", err=True)


def _show(diagnosis: Diagnosis, change: results.Difference | None) -> None:
    console = Console(highlight=False, soft_wrap=True, emoji=False)
    for finding in diagnosis.findings:
        new = change is not None and finding in change.new
        console.print(_headline(finding, "+ " if new else ""))
        console.print(Text(f"    {finding.evidence}"))
        console.print(Text(f"    fix: {finding.fix}"))
    for line in _changes(change) if change is not None else ():
        console.print(Text(line))
    console.print(Text(_summary(diagnosis), style="bold"))


def _headline(finding: Finding, mark: str) -> Text:
    where = f"{finding.engine} / {finding.model}" if finding.model else finding.engine
    return Text.assemble(mark, (f"{finding.level.value}", _STYLES[finding.level]), f" {where}: {finding.check}")


def _changes(change: results.Difference) -> Iterable[str]:
    for finding in change.gone:
        where = f"{finding.engine} / {finding.model}" if finding.model else finding.engine
        yield f"- gone {where}: {finding.check}: {finding.evidence}"
    for engine, (before, now) in change.versions.items():
        yield f"engine {engine}: version {before} before, {now} now"
    if not change.new and not change.gone and not change.versions:
        yield "nothing has changed since the last run"


def _summary(diagnosis: Diagnosis) -> str:
    counts: Mapping[str, int] = {
        "error": counted(diagnosis.findings, Level.ERROR),
        "warning": counted(diagnosis.findings, Level.WARNING),
    }
    told = [f"{count} {word}{'s' if count > 1 else ''}" for word, count in counts.items() if count]
    return ", ".join(told) or "all is well"
