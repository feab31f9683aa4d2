"""`turnout simulate`."""

import asyncio
import os
import signal
from dataclasses import replace
from typing import Annotated

import typer
import uvloop

from engines.profile import EngineKind
from engines.simulator import (
    Pace,
    RunningEngine,
    SimulatedEngine,
    build_app,
    default_models,
    default_port,
    parse_model,
    serve_app,
)


def simulate(
    kind: Annotated[EngineKind, typer.Argument(help="Which engine to speak like.")],
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Default: the engine's own; 0: a free one.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A model; repeat for more. NAME:embedding, NAME:noparser and NAME:reasoning also work."
        ),
    ] = None,
    first_token: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="Delay of the first token.")] = 0.0,
    prefill: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="More of it for each prompt token.")] = 0.0,
    inter_token: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="Delay between tokens.")] = 0.0,
    batch_slowdown: Annotated[
        float, typer.Option(min=0, metavar="SHARE", help="How much each further running request adds to it.")
    ] = 0.0,
    max_running: Annotated[int | None, typer.Option(min=1, help="Requests that generate at once.")] = None,
    max_requests: Annotated[
        int | None, typer.Option(min=1, help="Requests that run or wait; vllm answers 503 above it.")
    ] = None,
    default_max_tokens: Annotated[
        int, typer.Option(min=1, help="triton: tokens of an answer whose request sets no limit, as its own option.")
    ] = 16,
    api_key: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="vllm: a key; triton: API:HEADER:VALUE; repeat for more.")
    ] = None,
) -> None:
    """Run one simulated engine, for demos and tests: it speaks like the real one and makes its answers up."""
    if api_key and "" in api_key:
        raise typer.BadParameter("--api-key: a key has at least one character; without --api-key none is asked for")
    pace = Pace(first_token, prefill, inter_token, batch_slowdown, max_running, max_requests)
    try:
        models = [parse_model(text) for text in model or ()] or default_models(kind)
        models = [replace(one, default_tokens=default_max_tokens) for one in models]
        engine = build_app(kind, models, pace, api_keys=api_key or ())
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    number = default_port(kind) if port is None else port
    try:
        uvloop.run(_serve(engine, host, number))
    except OSError as error:
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise typer.TyperException(
            f"cannot listen on {host}:{number}: {why} (--host, --port: 0 takes a free one)"
        ) from None


async def _serve(engine: SimulatedEngine, host: str, port: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await serve_app(engine, host, port, stop=stop, started=_announce)


def _announce(running: RunningEngine) -> None:
    names = ", ".join(running.engine.load.models)
    typer.echo(f"simulated {running.engine.kind} at {running.url} ({names})")
