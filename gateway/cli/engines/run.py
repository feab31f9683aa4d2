"""`turnout engines run`."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, assert_never

import typer

from engines.launch.command import SecretFile, SettingsPath, Word
from engines.launch.install import INSTALL
from engines.launch.kinds import AnyLaunch
from engines.launch.paths import paths_of
from engines.launch.shell import shell_line
from engines.launch.triton import TritonLaunch
from engines.launch.trtllm import TrtllmLaunch
from engines.launch.vllm import VllmLaunch
from engines.profile import EngineKind
from gateway.cli.engines.here import Here, look_around
from gateway.cli.engines.launched import Config, Launched, launched, tell
from gateway.cli.engines.yaml_text import yaml_text
from gateway.settings.secrets import read_secret

_INSTALL: Final = {
    "vllm": f"install it into an environment that is on PATH: {INSTALL[EngineKind.VLLM]}; or use a container: `turnout "
    "engines compose`",
    "trtllm-serve": "use NVIDIA's container: `turnout engines compose`",
    "python3": "install Python",
}


def run_engine(
    name: Annotated[str, typer.Argument(help="An engine of the routing file.", metavar="NAME")],
    config: Config = None,
    dry: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--check", help="Only say whether it could be started here.")
    ] = False,
) -> None:
    """Start an engine on this machine, in the foreground: this process becomes the engine.

    Refuses what cannot work here, with the reason: exit code 1.
    """
    engine = launched(name, config)
    here = look_around()
    reasons = list(refusals(engine, here))
    for reason in reasons:
        typer.echo(f"turnout: engines.{name}: {reason}", err=True)
    if reasons:
        raise typer.Exit(1)
    tell(engine, contained=False)
    if dry:
        typer.echo(f"{name} can be started here: {shell_line(engine.command, engine.settings_path)}")
        return
    _become(engine, here)


def refusals(engine: Launched, here: Here) -> Iterator[str]:
    """Why an engine cannot run here; nothing if it can, as far as can be seen from outside."""
    launch, place = engine.launch, engine.place
    program = str(engine.command.words[0])
    if not here.platform.startswith("linux"):
        yield f"{program} needs Linux, and this is {here.platform} (use a container, or another machine)"
    if here.program(program) is None:
        yield f"no program {program} on PATH ({_INSTALL[program]})"
    yield from _missing_gpus(launch, here)
    for key, path in paths_of(launch):
        if not here.has(path):
            yield f"launch.{key}: no such file or folder: {path}"
    for secret in engine.command.secrets:
        if not here.has(secret.path):
            yield f"launch: no such file: {secret.path}"
    if isinstance(launch, TritonLaunch) and not here.has(launch.frontend):
        instead = "it comes with Triton's container: `turnout engines compose`"
        yield f"launch.frontend: {launch.frontend} is not here ({instead})"
    if not here.can_listen(place.host, place.port):
        yield f"cannot listen at {place.host}:{place.port} (another program does, or the address is not this machine's)"


def _missing_gpus(launch: AnyLaunch, here: Here) -> Iterator[str]:
    match launch:
        case VllmLaunch(device="cpu"):
            return
        case VllmLaunch():
            instead = "device: cpu uses vLLM's CPU build"
        case TrtllmLaunch() | TritonLaunch():
            instead = "it has no CPU build"
        case _:
            assert_never(launch)
    known = {name for gpu in here.gpus for name in gpu}
    if not here.gpus:
        yield f"no NVIDIA GPU here (nvidia-smi is not there or lists none; {instead})"
        return
    for device in launch.devices:
        if device not in known and not device.startswith("MIG-"):
            yield f"launch.devices: no GPU {device} here (there are {', '.join(number for number, _ in here.gpus)})"
    visible = len(launch.devices) or here.visible
    if launch.gpus > visible:
        fix = "lower tensor_parallel_size, or name more devices"
        yield f"needs {launch.gpus} GPUs, and {visible} can be used here ({fix})"


def _become(engine: Launched, here: Here) -> None:
    command, path = engine.command, ""
    if command.settings is not None:
        path = _written(engine.place.service, yaml_text(dict(command.settings)))
    words = [_plain(word, path) for word in command.words]
    environ = {**here.environ, **{key: _plain(value, path) for key, value in command.environment.items()}}
    program = here.program(words[0]) or words[0]
    typer.echo(f"turnout: starting {shell_line(command, path)}", err=True)
    os.execve(program, words, environ)  # noqa: S606 - what the command is for


def _plain(word: Word, settings_path: str) -> str:
    match word:
        case SecretFile(path):
            return _secret(path)
        case SettingsPath():
            return settings_path
        case _:
            return word


def _secret(path: str) -> str:
    try:
        return read_secret(f"file:{path}")
    except ValueError as error:
        raise typer.TyperException(str(error)) from None


def _written(service: str, text: str) -> str:
    """Writes the file of further settings where the engine, which takes the place of this process, finds it."""
    folder = Path(tempfile.mkdtemp(prefix=f"turnout-{service}-"))
    file = folder / "settings.yaml"
    file.write_text(text, encoding="utf-8")
    return str(file)
