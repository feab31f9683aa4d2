"""`turnout engines settings`."""

from typing import Annotated

import typer

from engines.launch.command import option_of
from engines.launch.documents import launch_page
from engines.launch.kinds import LAUNCHES
from engines.profile import EngineKind


def show_settings(
    kind: Annotated[EngineKind | None, typer.Argument(help="Only those of this kind of engine.")] = None,
    markdown: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--markdown", help="Print the page docs/launch.md.")
    ] = False,
) -> None:
    """Print the keys that stand under engines.NAME.launch, with what they mean."""
    if markdown:
        typer.echo(launch_page(), nl=False)
        return
    for one in [kind] if kind is not None else list(EngineKind):
        typer.echo(f"{one.value}")
        for name, field in LAUNCHES[one].model_fields.items():
            option = option_of(field)
            way = (option.flag or option.variable or option.member) if option is not None else ""
            typer.echo(f"  {name:<36}{way:<40}{field.description or ''}".rstrip())
