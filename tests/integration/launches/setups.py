"""The set-ups, and what the command line makes of them."""

import contextlib
import io
from pathlib import Path
from typing import Final

from ruamel.yaml import YAML

from gateway.cli import main

FOLDER: Final = Path(__file__).parent
SETUPS: Final = FOLDER / "setups.yaml"
GOLDEN: Final = FOLDER / "golden"
KINDS: Final = {"command": "sh", "compose": "compose.yaml", "kubernetes": "kubernetes.yaml"}
"""The subcommands of `turnout engines`, and how the files of what they print end."""

NAMES: Final[tuple[str, ...]] = tuple(YAML(typ="safe", pure=True).load(SETUPS.read_text())["engines"])


def made(kind: str, name: str, config: Path = SETUPS) -> str:
    """What ``turnout engines KIND NAME`` prints; paths are those of the project's folder."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["engines", kind, name, "--config", str(config)]) == 0
    return printed.getvalue().replace(f"{FOLDER}/", "")
