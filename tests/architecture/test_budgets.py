"""Files and functions stay small enough to be read in one go.

Medians do not tell good code from bad; tails do. So there is a hard limit, and a soft one that few may pass.
"""

import ast

from tests.architecture.sources import PRODUCT, Function, sources

FILE, FILE_HARD = 300, 350
FUNCTION, FUNCTION_HARD = 40, 60
FEW = 0.05
"""The share of files, or functions, that may be between the soft and the hard limit."""

TABLES = {
    "gateway/wire/toolcalls/formats.py": "the tool-call formats, one after another",
}
"""Files that may be of any length, each with the reason: tables of data, one row after another."""


def length(function: Function) -> int:
    """Lines from ``def`` to the end, without the docstring: explaining is not punished."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


def test_no_file_passes_the_hard_limit_and_few_the_soft_one() -> None:
    lengths = {source.name: source.text.count("\n") for source in sources(*PRODUCT) if source.name not in TABLES}
    above = {name: lines for name, lines in lengths.items() if lines > FILE}

    assert {name: lines for name, lines in above.items() if lines > FILE_HARD} == {}
    assert len(above) <= max(1, FEW * len(lengths)), above


def test_no_function_passes_the_hard_limit_and_few_the_soft_one() -> None:
    lengths = {
        f"{source.at(function)} {function.name}": length(function)
        for source in sources(*PRODUCT)
        for function in source.functions()
    }
    above = {name: lines for name, lines in lengths.items() if lines > FUNCTION}

    assert {name: lines for name, lines in above.items() if lines > FUNCTION_HARD} == {}
    assert len(above) <= max(1, FEW * len(lengths)), above


def test_exempt_tables_exist_and_are_long() -> None:
    lengths = {source.name: source.text.count("\n") for source in sources(*PRODUCT)}

    assert {name for name in TABLES if lengths.get(name, 0) <= FILE_HARD} == set()
