"""What is declared, pinned and documented about the package agrees."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.conftest import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION: str = PROJECT["project"]["version"]
REQUIREMENTS = ROOT / "requirements"
PIN = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[\w.+!]+)(?P<marker> ; [^\\]+)? \\$")
HASH = re.compile(r"^ {4}--hash=sha256:[0-9a-f]{64}( \\)?$")


def pins(lock: Path) -> dict[str, Version]:
    found = (PIN.match(line) for line in lock.read_text().splitlines())
    return {canonicalize_name(pin["name"]): Version(pin["version"]) for pin in found if pin}


def unmet(wanted: list[str], lock: str) -> list[str]:
    """The requirements that a lock file does not hold at a fitting version."""
    pinned = pins(REQUIREMENTS / lock)
    asked = [Requirement(text) for text in wanted]
    return [
        str(one)
        for one in asked
        if canonicalize_name(one.name) not in pinned or pinned[canonicalize_name(one.name)] not in one.specifier
    ]


def group(name: str) -> list[str]:
    return [entry for entry in PROJECT["dependency-groups"][name] if isinstance(entry, str)]


def test_the_lock_files_are_up_to_date() -> None:
    """`make lock` renews them."""
    runtime = PROJECT["project"]["dependencies"]

    assert unmet(runtime, "runtime.lock") == []
    assert unmet([*runtime, *group("dev"), *group("tools")], "dev.lock") == []
    assert unmet(group("tools"), "tools.lock") == []


def test_development_uses_the_versions_that_users_get() -> None:
    dev = pins(REQUIREMENTS / "dev.lock")

    assert {
        name: version for name, version in pins(REQUIREMENTS / "runtime.lock").items() if dev[name] != version
    } == {}


@pytest.mark.parametrize("lock", sorted(REQUIREMENTS.glob("*.lock")), ids=lambda path: path.name)
def test_lock_files_hold_pins_and_hashes_and_nothing_else(lock: Path) -> None:
    """No index, folder or option of the machine that made them."""
    lines = [line for line in lock.read_text().splitlines() if line and not line.startswith("#")]

    assert [line for line in lines if not PIN.match(line) and not HASH.match(line)] == []
    assert len(lines) > len(pins(lock)) > 0


def test_the_changelog_begins_with_this_version() -> None:
    headings = re.findall(r"^## \[?(\d[\w.]*)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)

    assert headings[0] == VERSION == importlib.metadata.version("turnout")


def test_the_extras_are_the_documented_ones() -> None:
    assert set(PROJECT["project"]["optional-dependencies"]) == {"otel", "triton", "trtllm", "vllm"}


def test_the_command_is_installed() -> None:
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="turnout")

    assert callable(command.load())


def test_the_wheel_holds_both_packages_and_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.iterdir()
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.split("/")[0] for name in names} == {"engines", "gateway", f"turnout-{VERSION}.dist-info"}
    assert {"engines/py.typed", "gateway/py.typed", f"turnout-{VERSION}.dist-info/licenses/LICENSE"} <= set(names)


def test_the_image_is_built_from_files_that_reach_the_builder() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    copied = {
        name
        for sources in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE)
        for name in sources.split()
    }
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}

    assert copied == let_through
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_the_image_does_not_run_as_root() -> None:
    users = re.findall(r"^USER (\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)

    assert users[-1:] == ["10001"]
