"""Habits that the linters do not cover, or that a comment could switch off there."""

import ast
import re
from collections.abc import Callable, Iterator

import pytest

from tests.architecture.sources import EVERYTHING, PRODUCT, Source, files, sources
from tests.conftest import ROOT


def imported(node: ast.AST) -> Iterator[str]:
    """The dotted names that an import statement brings in."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def blind_excepts(source: Source) -> Iterator[ast.AST]:
    """Handlers that catch everything and do not pass it on."""
    for node in source.nodes():
        if isinstance(node, ast.ExceptHandler):
            everything = node.type is None or (
                isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}
            )
            passed_on = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
            if everything and not passed_on:
                yield node


def imports_in_functions(source: Source) -> Iterator[ast.AST]:
    for function in source.functions():
        yield from (node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom))


def mocks(source: Source) -> Iterator[ast.AST]:
    """Stand-ins are scripted engines on real sockets, never patched objects."""
    for node in source.nodes():
        patched = isinstance(node, ast.Attribute) and node.attr == "setattr"
        if patched or any(name.split(".")[:2] == ["unittest", "mock"] for name in imported(node)):
            yield node


def buffering_middleware(source: Source) -> Iterator[ast.AST]:
    """Starlette's function-style middleware makes a streamed chunk ten times dearer."""
    for node in source.nodes():
        if any(name.endswith(".BaseHTTPMiddleware") for name in imported(node)):
            yield node


def loose_tasks(source: Source) -> Iterator[ast.AST]:
    """A task is owned by a TaskGroup, or its failure is lost."""
    for node in source.nodes():
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func)
            if called.endswith((".create_task", ".ensure_future")) and "group" not in called:
                yield node


LATER = {
    "gateway/api/ops.py",
    "gateway/app.py",
    "gateway/background/shared/client.py",
    "gateway/cli/__init__.py",
    "gateway/cli/commands.py",
    "gateway/cli/serving.py",
    "gateway/cli/sparing.py",
    "gateway/kserve/control.py",
    "gateway/settings/environment.py",
    "gateway/settings/launching.py",
}


def text_as_code(source: Source) -> Iterator[ast.AST]:
    """What somebody wrote is data. Modules are imported later by the tables of commands, and where few need them."""
    for node in source.nodes():
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            imports = called.endswith("import_module") and source.name not in LATER
            if imports or called in {"eval", "exec", "compile", "__import__"}:
                yield node


def stubs(source: Source) -> Iterator[ast.AST]:
    """Nothing is left for later."""
    for node in source.nodes():
        if isinstance(node, ast.Raise):
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(raised, ast.Name) and raised.id == "NotImplementedError":
                yield node


@pytest.mark.parametrize(
    ("folders", "offences"),
    [
        (EVERYTHING, blind_excepts),
        (EVERYTHING, imports_in_functions),
        (EVERYTHING, mocks),
        (PRODUCT, buffering_middleware),
        (PRODUCT, loose_tasks),
        (PRODUCT, text_as_code),
        (EVERYTHING, stubs),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_there_are_none(folders: tuple[str, ...], offences: Callable[[Source], Iterator[ast.AST]]) -> None:
    assert [source.at(node) for source in sources(*folders) for node in offences(source)] == []


def test_test_folders_are_packages() -> None:
    """Otherwise two test files of one name would shadow each other."""
    folders = {path.parent for path in files() if path.name.startswith("test_") and path.suffix == ".py"}

    assert sorted(str(folder) for folder in folders if not (folder / "__init__.py").is_file()) == []


# Written so that no pattern matches itself.
FOREIGN = {
    "a task for later": re.compile(r"\b(TO[D]O|FIX[M]E|X{3})\b"),
    "a folder of one machine": re.compile(r"(?<![\w.$}])/(wor[k]|roo[t]|hom[e]|opt/pyp[i]|opt/wheel[s])(/|-)"),
    "a package registry": re.compile(r"py[p]i\.org|python[h]osted\.org|npm[j]s\.org|deb\.[d]ebian|download\.[p]ytorch"),
    "how the work was organised": re.compile(r"(?i)\b(this|last|next|previous) [s]ession\b"),
}
THIRD_PARTY = {"LICENSE"}


@pytest.mark.parametrize("what", FOREIGN)
def test_no_file_mentions(what: str) -> None:
    found = []
    for path in files():
        name = str(path.relative_to(ROOT))
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        if name not in THIRD_PARTY:
            found += [f"{name}:{number}" for number, line in enumerate(lines, 1) if FOREIGN[what].search(line)]

    assert found == []
