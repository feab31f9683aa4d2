"""The project's own Python files, taken apart once."""

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from tests.conftest import ROOT

PRODUCT = ("gateway", "engines", "loadtests")
EVERYTHING = (*PRODUCT, "tests")

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    """The path from the project's folder."""
    text: str
    tree: ast.Module

    def nodes(self) -> Iterator[ast.AST]:
        return ast.walk(self.tree)

    def functions(self) -> Iterator[Function]:
        return (node for node in self.nodes() if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))

    def at(self, node: ast.AST) -> str:
        """Where a node is, as editors and terminals understand it."""
        return f"{self.name}:{getattr(node, 'lineno', 1)}"


@cache
def files() -> tuple[Path, ...]:
    """All files that belong to the project: those under version control and those about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return tuple(ROOT / name for name in sorted(set(names)) if name and (ROOT / name).is_file())


@cache
def sources(*folders: str) -> tuple[Source, ...]:
    found = []
    for path in files():
        name = path.relative_to(ROOT)
        if name.suffix == ".py" and name.parts[0] in folders:
            text = path.read_text()
            found.append(Source(str(name), text, ast.parse(text)))
    return tuple(found)
