"""`turnout admin`: speaks to the admin API of a running gateway."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias

import httpx2
import typer
from rich.console import Console
from rich.table import Table

from gateway.cli.addresses import gateway_url, token_in
from gateway.cli.running import NO_GATEWAY, TOKEN_VARIABLE, URL_VARIABLE
from gateway.logs import printable
from gateway.settings.crosscheck import ENGINE_NAME, ENGINE_NAME_HELP

Json: TypeAlias = Any
"""Whatever the gateway says."""

PATIENCE: Final = 20.0
"""Seconds for an answer; a reload in several processes may take as long as names and engines take to answer."""

app: Final = typer.Typer(help="Look at a running gateway, and change it.", no_args_is_help=True, add_completion=False)

Url = Annotated[str, typer.Option(envvar=URL_VARIABLE, help="Where the gateway is.", metavar="URL", show_default=True)]
Token = Annotated[
    str, typer.Option(help="The name of the variable that holds the admin token (not the token).", metavar="VARIABLE")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print what the gateway says as JSON.")]
DEFAULT_URL: Final = "http://127.0.0.1:8080"


class Refused(typer.TyperException):
    """The gateway does not do it, or does not answer."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway's admin API."""

    url: str
    variable: str

    def ask(self, method: str, path: str, *, body: object = None, query: Mapping[str, str] | None = None) -> Json:
        """What it says, out of JSON. Raises Refused with the reason."""
        token = token_in(self.variable, TOKEN_VARIABLE)
        headers = {"authorization": f"Bearer {token}"} if token else {}
        where = gateway_url(self.url, "--url")
        try:
            answer = httpx2.request(
                method,
                f"{where}/admin{path}",
                json=body,
                params=query,
                headers=headers,
                timeout=PATIENCE,
                trust_env=False,
            )
            found = answer.json()
        except httpx2.HTTPError as error:
            why = "does not answer in time" if isinstance(error, httpx2.TimeoutException) else "cannot be reached"
            raise Refused(f"no gateway at {where} ({why}): start it, or say with --url where it is") from None
        except (ValueError, RecursionError):
            raise Refused(f"{where} is no Turnout gateway: its answer is not JSON") from None
        if answer.status_code < 300:
            return found
        told = found.get("error") if isinstance(found, dict) else None
        refusal = told if isinstance(told, dict) else {}
        if answer.status_code == 404 and refusal.get("code") in {None, "path_not_found"}:
            raise Refused(f"{where} has no /admin{path}: {NO_GATEWAY}")
        said = refusal.get("message", "")
        hint = f" (the token is taken from {self.variable})" if answer.status_code in {401, 403} else ""
        raise _refusal(f"{said or f'status {answer.status_code}'}{hint}")


def _refusal(reason: str) -> typer.TyperException | typer.Exit:
    """What to raise; a reason of several lines, such as the problems of a file, is printed line by line."""
    first, *further = reason.splitlines()
    if not further:
        return Refused(printable(first))
    for line in (first, *further):
        typer.echo(printable(line), err=True)
    return typer.Exit(1)


@app.callback()
def about() -> None:
    """Look at a running gateway, and change it."""


@app.command()
def config(
    url: Url = DEFAULT_URL,
    token: Token = TOKEN_VARIABLE,
    full: Annotated[bool, typer.Option("--full", help="Also everything that is written down.")] = False,  # noqa: FBT002 - an option
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Print which configuration is in force, and what is wrong with its file now."""
    found = Gateway(url, token).ask("GET", "/config", query={"full": "true"} if full else None)
    if as_json or full:
        _print_json(found)
    else:
        _show_config(found)


@app.command()
def reload(url: Url = DEFAULT_URL, token: Token = TOKEN_VARIABLE, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Have the configuration's file read now; exit code 1 if it cannot be used."""
    found = Gateway(url, token).ask("POST", "/reload")
    if as_json:
        _print_json(found)
    else:
        _show_config(found)


@app.command()
def engines(url: Url = DEFAULT_URL, token: Token = TOKEN_VARIABLE, as_json: AsJson = False) -> None:  # noqa: FBT002 - an option
    """Print every replica with its state and what keeps requests from it."""
    _engines(Gateway(url, token).ask("GET", "/engines"), as_json=as_json)


@app.command()
def drain(
    engine: Annotated[str, typer.Argument(help="The engine's name.")],
    replica: Annotated[str | None, typer.Argument(help="The replica's URL; default: all.")] = None,
    url: Url = DEFAULT_URL,
    token: Token = TOKEN_VARIABLE,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Give a replica, or all of an engine, no more requests; what runs there is finished."""
    found = Gateway(url, token).ask("POST", f"/engines/{_name(engine)}/drain", body={"url": replica})
    _engines([found], as_json=as_json)


@app.command()
def undrain(
    engine: Annotated[str, typer.Argument(help="The engine's name.")],
    replica: Annotated[str | None, typer.Argument(help="The replica's URL; default: all.")] = None,
    url: Url = DEFAULT_URL,
    token: Token = TOKEN_VARIABLE,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Take a replica, or all of an engine, back into service."""
    found = Gateway(url, token).ask("POST", f"/engines/{_name(engine)}/undrain", body={"url": replica})
    _engines([found], as_json=as_json)


@app.command()
def errors(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The newest so many.")] = 20,
    url: Url = DEFAULT_URL,
    token: Token = TOKEN_VARIABLE,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Print the errors that clients were told of late, the newest first."""
    found = Gateway(url, token).ask("GET", "/errors", query={"limit": str(limit)})
    if as_json:
        _print_json(found)
        return
    keys = ("at", "request_id", "model", "engine", "status", "code", "message")
    _table(keys, [[_moment(one["at"]), *(one[key] for key in keys[1:])] for one in found])


@app.command("log-level")
def log_level(
    wanted: Annotated[str | None, typer.Argument(metavar="[debug|info|warning|error]")] = None,
    url: Url = DEFAULT_URL,
    token: Token = TOKEN_VARIABLE,
    as_json: AsJson = False,  # noqa: FBT002 - an option
) -> None:
    """Print or change the least that is written to the log."""
    gateway = Gateway(url, token)
    found = (
        gateway.ask("GET", "/log-level") if wanted is None else gateway.ask("PUT", "/log-level", body={"level": wanted})
    )
    if as_json:
        _print_json(found)
    else:
        typer.echo(found["level"])


def _name(engine: str) -> str:
    """An engine's name, as part of a path. Raises Refused for what would be another path."""
    if not ENGINE_NAME.fullmatch(engine):
        raise Refused(f"There is no engine '{printable(engine)}': {ENGINE_NAME_HELP} (turnout admin engines lists all)")
    return engine


def _show_config(found: Mapping[str, Any]) -> None:
    rows = [
        ("source", found["source"] or "the command line"),
        ("hash", found["hash"] or "-"),
        ("loaded", _moment(found["loaded_at"])),
        *(("after a restart", line) for line in found["restart_needed"]),
        *(("not in force", line) for line in (found["error"] or "").splitlines()),
    ]
    for name, value in rows:
        typer.echo(f"{name + ':':<17}{printable(str(value))}")


def _engines(found: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    if as_json:
        _print_json(found)
        return
    keys = ("engine", "kind", "version", "replica", "state", "in flight", "reason")
    rows = [
        [one["name"], one["kind"], one["version"] or "", at["url"], at["state"], at["in_flight"], at["reason"]]
        for one in found
        for at in one["endpoints"]
    ]
    _table(keys, rows)


def _table(keys: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table for people; for other programs one line per row, with tabs and without a head."""
    texts = [[printable(str(cell)) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in texts:
            typer.echo("\t".join(row))
        return
    table = Table(*(key.replace("_", " ") for key in keys), box=None, header_style="bold", pad_edge=False)
    for row in texts:
        table.add_row(*row)
    Console(highlight=False, emoji=False, markup=False).print(table)


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().isoformat(sep=" ", timespec="seconds")


def _print_json(found: object) -> None:
    typer.echo(json.dumps(found, indent=2))
