"""`turnout version`."""

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

import typer


def version() -> None:
    """Print the installed version."""
    try:
        number = version_of("turnout")
    except PackageNotFoundError:
        raise typer.TyperException("the version is known only once the package is installed") from None
    typer.echo(f"turnout {number}")
