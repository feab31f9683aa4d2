"""`turnout engines kubernetes`."""

from typing import Annotated

import typer

from engines.launch.kubernetes import NotInAPodError, kubernetes
from gateway.cli.engines.launched import Config, launched, tell
from gateway.cli.engines.yaml_text import yaml_documents, yaml_text


def show_kubernetes(
    name: Annotated[str, typer.Argument(help="An engine of the routing file.", metavar="NAME")],
    config: Config = None,
) -> None:
    """Print what runs an engine in Kubernetes: a claim for its weights, a Deployment with probes, a Service.

    Secrets are expected as Secret objects with the key `value`; `hf-token` is optional.
    """
    engine = launched(name, config)
    try:
        objects = kubernetes(engine.place, engine.launch, yaml_text)
    except NotInAPodError as error:
        raise typer.TyperException(f"engines.{name}.launch.{error}") from None
    tell(engine, contained=True)
    typer.echo(yaml_documents(objects), nl=False)
