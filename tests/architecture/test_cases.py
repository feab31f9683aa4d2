"""Each known way in which gateways go wrong has a test that says how this one does right: `tests/cases/*.toml`.

One file per section, one table per case. ``tests`` are pytest node ids without parameters. A case that no test of this
project can hold has a ``why`` instead.
"""

import ast
import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.json_type import Json

CASES = ROOT / "tests/cases"
NUMBERS: Mapping[str, tuple[int, ...]] = {
    "A": (1, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17, 19, 20, 21),
    "B": (23, 24, 25),
    "C": (27, 28, 29, 31, 32, 33, 35, 36, 37),
    "D": (39, 40, 41, 43, 44, 45, 47, 48, 49, 51, 52, 53),
    "E": (55, 56, 57, 59, 60, 61),
    "F": (63, 64, 65, 67, 68, 69, 71, 72, 73, 75, 76, 77),
    "G": (79, 80, 81, 83, 84, 85, 87, 88),
    "H": (89, 91, 92, 93, 95, 96, 97),
    "I": (99, 100, 101, 103, 104, 105),
    "J": (107, 108, 109, 111, 112, 113),
    "K": (115, 116, 117, 119, 120, 121, 123),
    "L": (124, 125),
}
"""The cases by section. The numbering has gaps."""
FILES = sorted(path.stem for path in CASES.glob("*.toml"))


@functools.cache
def functions(file: Path) -> frozenset[str]:
    """The names of the functions in a file of tests."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def cases(section: str) -> list[Json]:
    found: list[Json] = tomllib.loads((CASES / f"{section}.toml").read_text(encoding="utf-8"))["case"]
    return found


def test_every_file_is_a_section() -> None:
    assert FILES
    assert set(FILES) <= NUMBERS.keys()


@pytest.mark.parametrize("section", FILES)
def test_a_section_has_all_its_cases_once_and_in_order(section: str) -> None:
    assert [case["id"] for case in cases(section)] == [f"{section}{number}" for number in NUMBERS[section]]


@pytest.mark.parametrize("section", FILES)
def test_each_case_has_a_test_that_exists_or_says_why_none(section: str) -> None:
    for case in cases(section):
        assert case.keys() <= {"id", "title", "right", "tests", "why"}, case
        assert case["title"], case
        assert case["right"], case
        assert case["tests"] or case["why"], case
        for test in case["tests"]:
            file, _, name = test.partition("::")
            assert name.startswith("test_"), test
            assert name in functions(ROOT / file), test
