"""Planted faults are found, each by its rule and at its line, and nothing is found where nothing is wrong."""

import pytest

from engines.lint.finding import Finding, Level
from engines.lint.repository import lint_repository
from engines.lint.sources import COMMAND, Source, lint_text
from tests.unit.engines.lint import commands, composed, layouts
from tests.unit.engines.lint.commands import Planted
from tests.unit.engines.lint.composed import Spoiled
from tests.unit.engines.lint.layouts import Layout


def of_command(text: str) -> list[Finding]:
    return list(lint_text(text, Source.SCRIPT, COMMAND))


def of_compose(text: str) -> list[Finding]:
    return list(lint_text(text, Source.COMPOSE, "compose.yaml"))


def place(layout: Layout) -> str:
    return f"{layout.name}/{layout.place}".rstrip("/")


def shown(finding: Finding) -> str:
    return f"{finding.file}:{finding.line}" if finding.line else finding.file


def test_there_are_well_over_sixty_faults() -> None:
    faulty = [layout for layout in layouts.RECORDED if layout.rule]

    assert len(layouts.RECORDED) == 36
    assert len(faulty) + len(layouts.PLANTED) + len(commands.PLANTED) + len(composed.PLANTED) > 150


@pytest.mark.parametrize("layout", layouts.RECORDED + layouts.PLANTED, ids=lambda layout: layout.name)
def test_the_fault_of_a_repository_is_found_at_its_place(layout: Layout) -> None:
    findings = list(lint_repository(layout.content))

    if not layout.rule:
        assert findings == []
    else:
        assert (layout.rule, place(layout)) in {(finding.rule, shown(finding)) for finding in findings}
        assert all(finding.message and finding.fix for finding in findings)


@pytest.mark.parametrize("layout", layouts.RECORDED, ids=lambda layout: layout.name)
def test_what_the_real_server_loads_has_no_errors_and_what_it_refuses_has_a_finding(layout: Layout) -> None:
    findings = list(lint_repository(layout.content))

    if layout.loads:
        assert not [finding for finding in findings if finding.level is Level.ERROR]
    else:
        # It refused KIND_GPU because it had no GPU: elsewhere that loads.
        wanted = Level.WARNING if layout.name == "kind_gpu" else Level.ERROR
        assert wanted in {finding.level for finding in findings}


@pytest.mark.parametrize("planted", commands.PLANTED, ids=lambda planted: f"{planted.rule}: {planted.command}")
def test_the_fault_of_a_command_line_is_found(planted: Planted) -> None:
    findings = of_command(planted.command)

    assert {finding.rule for finding in findings} == {planted.rule}
    assert all(finding.file == COMMAND and finding.line and finding.fix for finding in findings)


@pytest.mark.parametrize("planted", commands.PLANTED, ids=lambda planted: f"{planted.rule}: {planted.mended}")
def test_nothing_is_found_in_a_command_line_that_was_mended(planted: Planted) -> None:
    assert of_command(planted.mended) == []


@pytest.mark.parametrize("command", commands.GOOD)
def test_nothing_is_found_in_a_good_command_line(command: str) -> None:
    assert of_command(command) == []


def test_nothing_is_found_in_a_good_compose_file() -> None:
    assert of_compose(composed.GOOD) == []


@pytest.mark.parametrize("spoiled", composed.PLANTED, ids=lambda spoiled: f"{spoiled.rule}: {spoiled.wrong[:40]}")
def test_the_fault_of_a_compose_file_is_found_at_its_line(spoiled: Spoiled) -> None:
    findings = of_compose(spoiled.text)

    assert [(finding.rule, finding.line) for finding in findings] == [(spoiled.rule, spoiled.line)]
