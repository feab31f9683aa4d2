"""`turnout engines repository`."""

from pathlib import Path
from typing import Annotated, Final

import typer

from engines.launch.repository import VERSION, llmapi_settings, repository
from engines.launch.triton import TritonLaunch, TrtllmModel
from gateway.cli.engines.launched import Config, launched
from gateway.cli.engines.yaml_text import yaml_text


def make_repository(
    name: Annotated[str, typer.Argument(help="A Triton engine of the routing file.", metavar="NAME")],
    out: Annotated[Path, typer.Option("--out", help="The folder of the repository.", metavar="DIR")],
    config: Config = None,
    force: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--force", help="Write over files that say something else.")
    ] = False,
) -> None:
    """Write the Triton model repository of an engine: the models of its launch settings.

    Nothing is written if a file is there that says something else, unless --force is given.
    """
    engine = launched(name, config)
    launch = engine.launch
    if not isinstance(launch, TritonLaunch):
        raise typer.TyperException(f"{name} is no Triton engine: only those have a model repository")
    if not launch.models:
        example = "models: {qwen: {backend: vllm, model: Qwen/Qwen3-8B}}"
        raise typer.TyperException(f"{engine.source}: engines.{name}.launch has no models (add {example})")
    try:
        files = texts(launch, f"Made by `turnout engines repository {name} --config {engine.source}`.")
    except ValueError as error:
        raise typer.TyperException(f"{engine.source}: engines.{name}.launch.models: {error}") from None
    others = sorted(path for path, text in files.items() if _differs(out / path, text))
    if others and not force:
        told = ", ".join(str(out / path) for path in others)
        raise typer.TyperException(f"already there, and different: {told} (--force writes over them)")
    for path, text in files.items():
        file = out / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        typer.echo(file)
    for model, section in launch.models.items():
        if isinstance(section, TrtllmModel):
            typer.echo(_ONLY_KSERVE.format(model), err=True)


_ONLY_KSERVE: Final = (
    "note: {}: Triton's OpenAI frontend sends inputs that TensorRT-LLM's LLM-API model does not have: it is asked "
    "through KServe (/v2/models/…/generate); for the OpenAI API, start it with trtllm-serve"
)


def texts(launch: TritonLaunch, made_by: str) -> dict[str, str]:
    """Every file of the repository, those in YAML too."""
    files = repository(launch, made_by)
    for name, model in launch.models.items():
        if isinstance(model, TrtllmModel):
            head = "# Arguments of TensorRT-LLM's LLM; triton_config is for Triton. The engine batches in flight.\n"
            files[f"{name}/{VERSION}/model.yaml"] = f"# {made_by}\n{head}" + yaml_text(llmapi_settings(model))
    return files


def _differs(file: Path, text: str) -> bool:
    return file.exists() and (not file.is_file() or file.read_bytes() != text.encode())
