"""What the subcommands about launches share: an engine of the routing file, with its launch settings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from engines.launch.command import Command
from engines.launch.kinds import AnyLaunch, command_of
from engines.launch.paths import unseen_paths
from engines.launch.place import Place, place_of
from engines.launch.remarks import flag_remarks
from gateway.cli.report import read_settings
from gateway.settings.problems import did_you_mean

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="The routing file; default: $TURNOUT_CONFIG, turnout.yaml, config/turnout.yaml.",
        metavar="FILE",
    ),
]


@dataclass(frozen=True, slots=True)
class Launched:
    """An engine that the routing file can start, and where."""

    place: Place
    launch: AnyLaunch
    source: Path

    @property
    def command(self) -> Command:
        """What starts it on this machine."""
        return command_of(self.launch, self.place.host, self.place.port)

    @property
    def settings_path(self) -> str:
        """Where the file of further settings is, for commands."""
        written = getattr(self.launch, "settings_file", None)
        return written if isinstance(written, str) else f"./{self.place.service}.trtllm.yaml"


def launched(name: str, config: Path | None) -> Launched:
    """The engine called `name` in the routing file.

    Raises:
        typer.Exit: the file is not valid; its problems have been shown.
        typer.TyperException: there is no such engine, or it has no launch settings.
    """
    loaded = read_settings(config)
    engine = loaded.settings.engines.get(name)
    if engine is None:
        close = did_you_mean(name, loaded.settings.engines) or f"engines: {', '.join(loaded.settings.engines)}"
        raise typer.TyperException(f'{loaded.source}: no engine "{name}" ({close})')
    if engine.launch is None:
        example = "launch: {model: Qwen/Qwen3-8B}" if engine.kind != "triton" else "launch: {repository: ./models}"
        raise typer.TyperException(f"{loaded.source}: engines.{name} has no launch settings (add {example})")
    return Launched(place_of(name, engine.kind, engine.urls, engine.launch), engine.launch, loaded.source)


def tell(engine: Launched, *, contained: bool) -> None:
    """Says on stderr what is odd about a launch; `contained` for what will run in a container."""
    prefix = f"engines.{engine.place.engine}.launch"
    for remark in flag_remarks(engine.launch):
        typer.echo(f"warning: {prefix}.{remark.key}: {remark.message} ({remark.fix})", err=True)
    for key, path in unseen_paths(engine.launch) if contained else ():
        message = f"{path} must be in the image: nothing is mounted there"
        typer.echo(f"note: {prefix}.{key}: {message} (container.volumes mounts it)", err=True)
