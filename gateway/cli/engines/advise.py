"""`turnout engines advise`."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import TypeAdapter, ValidationError

from engines.advice.advise import EngineAdvice, Need, Subject, Wanted, advise, cautions
from engines.advice.explain import MEASURE, as_tree, gib, model_lines, room_lines
from engines.advice.model import UnknownModelError, read_model
from engines.advice.table import GPUS, Gpu, find_gpu
from engines.launch.values import Count
from gateway.cli.engines.here import boards
from gateway.cli.engines.yaml_text import yaml_text

UNREADABLE: Final = 2
"""The exit code where the model or the GPU is not known."""
UNNAMED: Final = "ORGANISATION/MODEL"
"""Stands for the name of a model of which only the shape is known."""
_PARAMETERS: Final = re.compile(r"(\d+(?:\.\d+)?) ?([mbt])", re.IGNORECASE)
_TIMES: Final = {"m": 1e6, "b": 1e9, "t": 1e12}
_NAME: Final = re.compile(r"[^\s-]\S*")
_COUNT: Final[TypeAdapter[int]] = TypeAdapter(Count)


class _UnknownError(Exception):
    """What is not known, and what to give instead."""


def show_advice(
    model: Annotated[
        str, typer.Option(metavar="FILE|DIR|SIZE", help="A model's config.json, its folder, or only a size such as 8B.")
    ],
    gpu: Annotated[
        str | None, typer.Option(metavar="NAME", help="Such as H100 or L40S; default: this machine's, by nvidia-smi.")
    ] = None,
    gpus: Annotated[
        int | None, typer.Option(min=1, max=1024, help="How many of them; default: 1, or all here.")
    ] = None,
    context: Annotated[
        str | None, typer.Option(metavar="TOKENS", help="Prompt and answer together, such as 32K; default: what fits.")
    ] = None,
    need: Annotated[str, typer.Option(metavar="LIST", help="What is asked for: tools,embeddings,json.")] = "",
    concurrency: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Requests at once, all of the full length.")
    ] = None,
    in_json: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--json", help="Print everything as JSON.")
    ] = False,
) -> None:
    """Tell which engines suit a model and a GPU, whether it fits, and how each would be started.

    Exit code 0: one of them does; 1: none; 2: the model or the GPU is not known. It says nothing about speed.
    """
    try:
        subject = _subject(model)
        found, count = _gpu(gpu, gpus)
        wanted = Wanted(found, count, _tokens(context), _needs(need), concurrency)
    except _UnknownError as unknown:
        typer.echo(f"error: {unknown}", err=True)
        raise typer.Exit(UNREADABLE) from None
    advice = advise(subject, wanted)
    if in_json:
        typer.echo(json.dumps(as_tree(subject, wanted, advice), indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(_lines(subject, wanted, advice)))
    if not any(one.fits for one in advice):
        raise typer.Exit(1)


def _lines(subject: Subject, wanted: Wanted, advice: list[EngineAdvice]) -> Iterator[str]:
    card = wanted.gpu
    yield f"{subject.name} on {wanted.gpus} * {card.name} ({gib(card.memory)}, compute capability {card.capability})"
    yield from model_lines(subject)
    yield from (f"note: {caution}" for caution in cautions(subject, wanted))
    for one in advice:
        yield f"\n{one.kind.value}: {one.why}"
        if one.supported:
            yield from (f"  {line}" for line in room_lines(one.kind, one.room, wanted.requests or 1))
            yield f"  APIs: {', '.join(one.apis)}"
            yield f"  tool parser: {one.tools}"
        if one.settings is not None:
            yield "  launch:"
            yield from (f"    {line}" for line in yaml_text(one.settings).splitlines())
    yield f"\n{MEASURE}"


def _subject(given: str) -> Subject:
    path = Path(given)
    bare = _PARAMETERS.fullmatch(given.strip())
    if bare is not None and not path.exists():
        return Subject(UNNAMED, round(float(bare[1]) * _TIMES[bare[2].lower()] * 2), None)
    config = path / "config.json" if path.is_dir() else path
    try:
        read = json.loads(config.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        reason = "cannot be read" if isinstance(error, OSError) else "is not JSON"
        raise _UnknownError(
            f"{config} {reason}: give a model's config.json, the folder it is in, or a size such as 8B "
            "(names on Hugging Face are not looked up)"
        ) from None
    if not isinstance(read, dict):
        raise _UnknownError(f"{config} is not a model's configuration: it must be one JSON object")
    try:
        model = read_model(read)
    except UnknownModelError as unknown:
        raise _UnknownError(f"{config}: {unknown}") from None
    named = read.get("_name_or_path")
    folder = config.parent if config.name == "config.json" else None
    name = named if isinstance(named, str) and named and not path.is_dir() else str(folder or UNNAMED)
    size = _checkpoint(folder) if folder is not None else None
    return Subject(name if _NAME.fullmatch(name) else UNNAMED, size or model.weight_bytes, model)


def _checkpoint(folder: Path) -> int | None:
    """Bytes of a checkpoint's tensors, as its index or its one file says; None where there are no such files."""
    index, whole = folder / "model.safetensors.index.json", folder / "model.safetensors"
    try:
        if index.is_file():
            total = json.loads(index.read_bytes())["metadata"]["total_size"]
            return int(total) if isinstance(total, int | float) else None
        return whole.stat().st_size if whole.is_file() else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _gpu(name: str | None, count: int | None) -> tuple[Gpu, int]:
    if name is not None:
        found = find_gpu(name)
        if found is None:
            known = ", ".join(gpu.name for gpu in GPUS)
            raise _UnknownError(f'the GPU "{name[:60]}" is not known here; known: {known}')
        return found, count or 1
    here = boards()
    if not here:
        raise _UnknownError("no GPU is named, and nvidia-smi finds none here: --gpu H100")
    first = here[0]
    alike = sum(board.name == first.name for board in here)
    if alike < len(here):
        typer.echo(f"note: this machine has different GPUs; this is about its {alike} * {first.name}", err=True)
    like = find_gpu(first.name)
    if like is None:
        typer.echo(f"note: {first.name} is not known here: only what nvidia-smi says of it counts", err=True)
        like = Gpu(first.name, first.memory >> 30, first.capability)
    return replace(like, name=first.name, capability=first.capability, measured=first.memory), count or alike


def _tokens(given: str | None) -> int | None:
    try:
        return None if given is None else _COUNT.validate_python(given)
    except ValidationError:
        raise _UnknownError(f'--context "{given}": expected a number of tokens, such as 8192 or 32K') from None


def _needs(given: str) -> frozenset[Need]:
    try:
        return frozenset(Need(word.strip()) for word in given.split(",") if word.strip())
    except ValueError:
        raise _UnknownError(f'--need "{given}": expected some of {", ".join(need.value for need in Need)}') from None
