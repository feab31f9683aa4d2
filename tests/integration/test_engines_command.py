"""`turnout engines`: what the profiles say, on the command line."""

import json

import pytest

from engines.capabilities import capabilities
from engines.documents import engines_page
from gateway.cli import main


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["engines", *arguments]) == 0
    return capsys.readouterr().out


def test_capabilities_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    """One line per parameter, one column per engine."""
    lines = printed(capsys, "capabilities").splitlines()

    assert lines[0].split() == ["chat", "vLLM", "trtllm-serve", "Triton"]
    assert ["n", "pass", "pass", "emulate"] in [line.split() for line in lines]
    assert ["prompt_cache_retention", "pass", "drop", "drop"] in [line.split() for line in lines]
    assert ["input", "pass", "-", "emulate"] in [line.split() for line in lines]


def test_capabilities_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(printed(capsys, "capabilities", "--json")) == capabilities()


def test_capabilities_as_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "capabilities", "--markdown") == engines_page()


def test_an_unknown_subcommand_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engines", "nope"]) == 2
    assert "nope" in capsys.readouterr().err
