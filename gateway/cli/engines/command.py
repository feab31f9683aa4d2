"""`turnout engines command`."""

from typing import Annotated

import typer

from engines.launch.shell import here_document, shell_line
from gateway.cli.engines.launched import Config, launched, tell
from gateway.cli.engines.yaml_text import yaml_text

NAME = Annotated[str, typer.Argument(help="An engine of the routing file.", metavar="NAME")]


def show_command(
    name: NAME,
    config: Config = None,
    settings: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--settings", help="Print only the file of further settings (trtllm-serve --config).")
    ] = False,
) -> None:
    """Print the command line that starts an engine, for a shell.

    Secrets are read from their files by that shell; they are not part of what is printed.
    """
    engine = launched(name, config)
    command, path = engine.command, engine.settings_path
    made = f"# Made by `turnout engines command {name} --settings --config {engine.source}`. It wins over the flags.\n"
    text = made + yaml_text(dict(command.settings)) if command.settings is not None else ""
    if settings:
        if not text:
            raise typer.TyperException(f"{name} needs no file of further settings")
        typer.echo(text, nl=False)
        return
    tell(engine, contained=False)
    typer.echo((here_document(path, text) if text else "") + shell_line(command, path))
