"""What the profiles say is written down, for people and for machines, and is true."""

import ast
import json
from pathlib import Path

import pytest

from engines.capabilities import OPENAI, capabilities
from engines.documents import engines_page
from engines.habits import HABITS, Habit, Treatment
from engines.profile import EngineKind, Operation
from engines.registry import PROFILES
from tests.conftest import ROOT

POLICIES = {"pass", "rename", "translate", "emulate", "drop", "reject"}
ALL_HABITS = [habit for habits in HABITS.values() for habit in habits]


def test_the_page_is_up_to_date() -> None:
    """`turnout engines capabilities --markdown > docs/engines.md` renews it."""
    assert (ROOT / "docs/engines.md").read_text(encoding="utf-8") == engines_page()


def test_every_parameter_has_a_word() -> None:
    """On each engine that serves the operation, in every table: no row is open."""
    for engine in capabilities():
        for operation, served in engine["operations"].items():
            if served["parameters"] is None:
                continue
            assert {row["policy"] for row in served["parameters"].values()} <= POLICIES
            assert set(OPENAI[Operation(operation)]) <= served["parameters"].keys()
        for variant in engine["variants"]:
            for changes in variant["parameters"].values():
                assert changes
                assert {row["policy"] for row in changes.values()} <= POLICIES


def test_capabilities_are_plain_values() -> None:
    """They go through JSON as they are."""
    assert json.loads(json.dumps(capabilities())) == capabilities()
    assert [engine["kind"] for engine in capabilities()] == [kind.value for kind in EngineKind]


def test_cells_of_the_page_do_not_break_its_tables() -> None:
    """Every table has as many cells in each row as in its head."""
    width = 0
    for line in engines_page().splitlines():
        cells = line.replace("\\|", "").count("|")
        assert not (width and cells) or cells == width, line
        width = cells


@pytest.mark.parametrize("habit", ALL_HABITS, ids=lambda habit: habit.what[:60])
def test_a_habit_is_held_by_tests_or_has_its_reason(habit: Habit) -> None:
    """What is made the same or refused names its tests; tests that are named exist."""
    assert habit.how
    assert habit.engines
    assert habit.tests or habit.treatment is Treatment.PASSED_ON
    for test in habit.tests:
        file, _, name = test.partition("::")
        assert name in functions(ROOT / file), test


def functions(file: Path) -> set[str]:
    """The names of the functions in a file of tests."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_habits_are_said_once() -> None:
    """Two rows about the same thing would drift apart."""
    said = [habit.what for habit in ALL_HABITS]
    assert len(said) == len(set(said))
    for kind in PROFILES:
        assert any(kind in habit.engines for habit in ALL_HABITS)
