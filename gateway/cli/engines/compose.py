"""`turnout engines compose`."""

import re
from pathlib import Path
from typing import Annotated

import typer

from engines.launch.compose import Composed, compose
from gateway.cli.engines.launched import Config, Launched, launched, tell
from gateway.cli.engines.yaml_text import yaml_text


def show_compose(
    name: Annotated[str, typer.Argument(help="An engine of the routing file.", metavar="NAME")],
    config: Config = None,
    into: Annotated[
        Path | None,
        typer.Option(help="Renew the service between its two marks in this compose file instead.", metavar="FILE"),
    ] = None,
) -> None:
    """Print a compose file with the service that runs an engine, named as the host in the engine's URL."""
    engine = launched(name, config)
    tell(engine, contained=True)
    made = compose(engine.place, engine.launch)
    if into is None:
        typer.echo(f"{_origin(engine)}{yaml_text(made.document())}", nl=False)
        return
    try:
        text = into.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise typer.TyperException(f"{into}: is not UTF-8 text") from None
    into.write_text(renewed(text, made, str(into)), encoding="utf-8")


def _origin(engine: Launched) -> str:
    return f"# Made by `turnout engines compose {engine.place.engine} --config {engine.source}`.\n"


def renewed(text: str, made: Composed, file: str) -> str:
    """A compose file's text with the service anew between the lines `# >>> NAME …` and `# <<< NAME`.

    Raises:
        typer.TyperException: it has no such lines.
    """
    name = re.escape(made.name)
    marks = re.compile(rf"(?ms)^(?P<first> *# >>> {name}(?:[: ][^\n]*)?\n).*?^(?P<last> *# <<< {name} *)$")
    found = marks.search(text)
    if found is None:
        lines = f'"  # >>> {made.name}" and "  # <<< {made.name}"'
        raise typer.TyperException(
            f"{file}: no marks for the service {made.name} (put the lines {lines} below services:)"
        )
    indent = " " * (len(found["first"]) - len(found["first"].lstrip(" ")))
    anew = yaml_text({made.name: made.service}).splitlines()
    service = "".join(f"{indent}{line}\n" if line else "\n" for line in anew)
    return text[: found.start()] + found["first"] + service + found["last"] + text[found.end() :]
