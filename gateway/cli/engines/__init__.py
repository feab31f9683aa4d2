"""`turnout engines`: what the gateway knows about engines, and how they are started. One file per subcommand."""

from typing import Final

import typer

from gateway.cli.engines.capabilities import show_capabilities

app: Final = typer.Typer(help="What the gateway knows about engines.", no_args_is_help=True, add_completion=False)
app.command("capabilities")(show_capabilities)


@app.callback()
def _group() -> None:
    """What the gateway knows about engines."""
