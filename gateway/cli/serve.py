"""`turnout serve`, as typer reads it: its options, its help, and what is wrong with them."""

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.plain import ServeOrder
from gateway.cli.serving import serve as run
from gateway.proxy.carriers import Carrier


def serve(
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The configuration; default: $TURNOUT_CONFIG, turnout.yaml, config/turnout.yaml."
        ),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes that serve.")] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=URL", help="An engine, instead of a file; its models are discovered. Repeatable."),
    ] = None,
    take_over: Annotated[  # noqa: FBT002 - an option
        bool,
        typer.Option(
            "--take-over", help="Share the port with a gateway that listens there; it ends with a SIGTERM to that one."
        ),
    ] = False,
    carrier: Annotated[
        Carrier, typer.Option(help="How calls are carried: inside the HTTP protocol, or as an ASGI application.")
    ] = Carrier.PROTOCOL,
) -> None:
    """Serve the models of a configuration file, or of engines named here."""
    if config is not None and engine:
        raise typer.BadParameter("give --config or --engine, not both")
    if not all("=" in one for one in engine or ()):
        raise typer.BadParameter("--engine: expected KIND=URL, such as --engine vllm=http://127.0.0.1:8000")
    code = run(ServeOrder(config, host, port, workers, tuple(engine or ()), take_over, carrier.value))
    if code:
        raise typer.Exit(code)
