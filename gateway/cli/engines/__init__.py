"""`turnout engines`: what the gateway knows about engines, and how they are started. One file per subcommand."""

from typing import Final

import typer

from gateway.cli.engines.advise import show_advice
from gateway.cli.engines.capabilities import show_capabilities
from gateway.cli.engines.command import show_command
from gateway.cli.engines.compose import show_compose
from gateway.cli.engines.kubernetes import show_kubernetes
from gateway.cli.engines.lint import lint
from gateway.cli.engines.repository import make_repository
from gateway.cli.engines.run import run_engine
from gateway.cli.engines.settings import show_settings
from gateway.cli.engines.triton import control_triton

app: Final = typer.Typer(
    help="How engines are started, and what the gateway knows about them.", no_args_is_help=True, add_completion=False
)
app.command("advise")(show_advice)
app.command("capabilities")(show_capabilities)
app.command("command")(show_command)
app.command("compose")(show_compose)
app.command("kubernetes")(show_kubernetes)
app.command("lint")(lint)
app.command("repository")(make_repository)
app.command("run")(run_engine)
app.command("triton")(control_triton)
app.command("settings")(show_settings)


@app.callback()
def _group() -> None:
    """How engines are started, and what the gateway knows about them."""
