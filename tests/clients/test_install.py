"""What the client libraries are installed from, and what is said when they cannot be."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.install import NODE, InstallError, run
from tests.support.json_type import Json

PACKAGE: Json = json.loads((NODE / "package.json").read_text())
LOCKED: Json = json.loads((NODE / "package-lock.json").read_text())["packages"]


def test_the_libraries_can_be_installed(obstacle: str | None) -> None:
    assert obstacle is None, f"the client libraries cannot be installed: {obstacle}"


def test_the_node_packages_are_pinned() -> None:
    """``make lock`` locks what package.json asks for."""
    asked = PACKAGE["dependencies"]

    assert {name: LOCKED[f"node_modules/{name}"]["version"] for name in asked} == asked
    assert LOCKED[""]["dependencies"] == asked


def test_the_node_packages_are_locked_by_their_hashes_without_addresses() -> None:
    packages = [package for name, package in LOCKED.items() if name]

    assert len(packages) > len(PACKAGE["dependencies"])
    assert [package for package in packages if not package.get("integrity", "").startswith("sha512-")] == []
    assert [package for package in packages if "resolved" in package] == []


def test_a_command_that_fails_is_quoted_with_what_it_said() -> None:
    with pytest.raises(InstallError, match=r"import sys(?s:.)*no network"):
        run(sys.executable, "-c", "import sys; sys.exit('no network')")


def test_a_command_that_is_missing_is_named() -> None:
    with pytest.raises(InstallError, match=r"no-such-program is not there"):
        run("no-such-program")


LEFT_OUT = {"at work": ("", 5, "deselected"), "in CI": ("true", 4, "TURNOUT_CLIENTS=off is not for CI")}


@pytest.mark.parametrize(("ci", "code", "said"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_the_libraries_can_be_left_out_but_not_in_ci(root: Path, ci: str, code: int, said: str) -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", str(Path(__file__).parent)]
    environment = {**os.environ, "TURNOUT_CLIENTS": "off", "CI": ci}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout + done.stderr
