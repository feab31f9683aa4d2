"""`turnout usage`."""

import csv
import json
import os
import sys
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from gateway.cli import interruptible
from gateway.cli.addresses import gateway_url
from gateway.cli.report import read_settings
from gateway.cli.running import URL_VARIABLE, RunningGateway, Token, address_of, tokens_for
from gateway.settings import Settings
from gateway.usage_text import day_of, harmless

_COLUMNS: Final = ("day", "key", "model", "requests", "prompt_tokens", "answer_tokens", "estimated")

_FIX: Final = "start it, or say with --url where it is, or with --config which file says so"


def usage(
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The configuration that says where the gateway is; default: as for serve."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(help=f"The gateway, if no file says where it is; default without --config: ${URL_VARIABLE}."),
    ] = None,
    token: Token = None,
    since: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="The first day (UTC).")] = None,
    until: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="The last day (UTC).")] = None,
    form: Annotated[str, typer.Option("--format", help="table, json or csv.")] = "table",
) -> None:
    """Show what each key has used of each model, day by day, as a running gateway knows it."""
    if form not in ("table", "json", "csv"):
        raise typer.BadParameter("--format is table, json or csv")
    _check_day("--since", since)
    _check_day("--until", until)
    if since is not None and until is not None and until < since:
        raise typer.BadParameter(f"--until {until} is before --since {since}")
    option = "--url"
    if url is None and config is None:
        url, option = os.environ.get(URL_VARIABLE) or None, URL_VARIABLE
    settings = Settings() if url is not None and config is None else read_settings(config).settings
    days = {name: day for name, day in (("since", since), ("until", until)) if day is not None}
    where = address_of(settings.server) if url is None else gateway_url(url, option)
    running = RunningGateway(where, tokens_for(settings, token), fix=_FIX, variable=token)
    rows = interruptible.run(_asked(running, days))
    match form:
        case "json":
            typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        case "csv":
            table = csv.DictWriter(sys.stdout, [*_COLUMNS[:2], "tags", *_COLUMNS[2:]], lineterminator="\n")
            table.writeheader()
            for row in rows:
                flat = row | {"tags": " ".join(map(str, _listed(row["tags"])))}
                table.writerow({name: harmless(cell) for name, cell in flat.items()})
        case _:
            _show(rows)


def _check_day(option: str, day: str | None) -> None:
    if day is not None:
        try:
            day_of(day)
        except ValueError as error:
            raise typer.BadParameter(f"{option} {day}: {error}") from None


async def _asked(running: RunningGateway, days: dict[str, str]) -> list[dict[str, object]]:
    async with running:
        return await running.usage(days)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _show(rows: list[dict[str, object]]) -> None:
    table = Table(*(column.replace("_", " ") for column in _COLUMNS), box=None, pad_edge=False)
    for column in table.columns[3:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*(str(row[column]) for column in _COLUMNS))
    Console(highlight=False, emoji=False, markup=False).print(table if rows else "nothing has been used")
