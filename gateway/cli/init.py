"""`turnout init`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from engines.registry import profile
from gateway.background.fetch import Fetch
from gateway.background.survey import FoundEngine, NotAnEngine, survey
from gateway.cli import interruptible
from gateway.cli.addresses import base_url
from gateway.cli.files import replace_whole
from gateway.cli.init_text import plainly, starter_text

USUAL: Final = ("http://127.0.0.1:8000", "http://127.0.0.1:8001", "http://127.0.0.1:9000")
"""Where engines listen by default: vLLM and trtllm-serve at 8000, Triton's OpenAI frontend at 9000."""

SCHEMAS: Final = ("turnout.schema.json", "config/turnout.schema.json")


def init(
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="[URL]...", help="Engines; default: the usual ports of this machine.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write; - prints it.")] = Path("turnout.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that exists.")] = False,  # noqa: FBT002 - an option
    key: Annotated[
        str | None, typer.Option(metavar="VARIABLE", help="The environment variable with the key of engines that ask.")
    ] = None,
    skip: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--skip", help="Leave out addresses at which no engine is found.")
    ] = False,
) -> None:
    """Ask engines what they are and which models they have, and write a commented configuration for them."""
    printed = str(out) == "-"
    if not printed:
        _check_place(out)
    if not printed and not force and (out.exists() or out.is_symlink()):
        raise typer.TyperException(f"{out} exists: --force overwrites it, --out FILE writes another one")
    found = interruptible.run(_survey([base_url(url) for url in urls or ()] or USUAL, _key(key)))
    engines = [one for one in found if isinstance(one, FoundEngine)]
    _tell(found, usual=not urls)
    if not engines or (len(engines) < len(found) and urls and not skip):
        raise typer.TyperException(_refusal(engines, usual=not urls))
    text = starter_text(engines, schema=None if printed else _schema(out), key=key)
    if printed:
        typer.echo(text, nl=False)
        return
    try:
        replace_whole(out, text.encode())
    except OSError as error:
        raise typer.TyperException(f"{out} cannot be written: {error.strerror or error}") from None
    typer.echo(f"wrote {out}. Next: turnout check {out}, turnout doctor {out}, turnout serve --config {out}", err=True)


def _check_place(out: Path) -> None:
    if out.is_dir():
        raise typer.TyperException(
            f"{out} is a directory: --out names the file to write, such as {out / 'turnout.yaml'}"
        )
    if not out.is_symlink() and not out.parent.is_dir():
        raise typer.TyperException(f"{out} cannot be written: there is no directory {out.parent}")


async def _survey(urls: Sequence[str], key: str) -> list[FoundEngine | NotAnEngine]:
    fetch = Fetch()
    try:
        return await survey(fetch, list(dict.fromkeys(urls)), key)
    finally:
        await fetch.close()


def _key(variable: str | None) -> str:
    if variable is None:
        return ""
    key = os.environ.get(variable, "")
    if not key:
        fix = "it takes the name of the variable that holds the key, not the key"
        raise typer.BadParameter(f"--key: no environment variable of that name is set ({fix})")
    return key


def _tell(found: Sequence[FoundEngine | NotAnEngine], *, usual: bool) -> None:
    """What was found at each address; at those that nobody named, only what is there."""
    for one in found:
        if isinstance(one, NotAnEngine):
            if not usual:
                typer.echo(f"{one.url}: {plainly(one.reason)} ({one.fix})", err=True)
            continue
        version = f" {plainly(one.version)}" if one.version else ""
        listed = (f"{plainly(model.name)} ({model.task or 'not served'})" for model in one.models)
        models = ", ".join(listed) or "no models yet"
        typer.echo(f"{one.url}: {profile(one.kind).title}{version}, {models}", err=True)


def _refusal(engines: Sequence[FoundEngine], *, usual: bool) -> str:
    if usual:
        ports = ", ".join(url.rpartition(":")[2] for url in USUAL)
        return f"no engine at the usual ports of this machine ({ports}): name their addresses, turnout init URL…"
    if not engines:
        return "no engine was found, so that nothing is written"
    return "not every address is an engine's, so that nothing is written: --skip leaves the others out"


def _schema(out: Path) -> str | None:
    """Where the JSON Schema is, seen from the file; None if it is not near."""
    return next((name for name in SCHEMAS if (out.parent / name).is_file()), None)
