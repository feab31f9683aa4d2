"""Models of Triton's Python backend."""

import ast
import sys
from collections.abc import Iterator
from typing import Final

from engines.lint.finding import At, Finding
from engines.lint.model_files import Configured

CLASS: Final = "TritonPythonModel"


def rules(model: Configured) -> Iterator[Finding]:
    """The faults of the program of each version that is served."""
    own = model.model
    name = model.config.default_model_filename or "model.py"
    for version in model.served:
        path = f"{version}/{name}"
        text = own.text(path)
        if text is None:
            message = f"no {name}: Triton has been seen to hang while it loads such a model, and its log says nothing"
            yield At(f"{own.name}/{version}").error("no-model-py", message, f"put {name} here")
            continue
        if text.strip():  # a link to a place that only the server has is empty here
            yield from _program(model, path, text)


def _program(model: Configured, path: str, text: str) -> Iterator[Finding]:
    own = model.model
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = (error.lineno or 1) if isinstance(error, SyntaxError) else 1
        what = error.msg if isinstance(error, SyntaxError) else str(error)
        message = f"this is no Python (of version {sys.version_info.major}.{sys.version_info.minor}): {what}"
        yield own.at(path, line).error("python-syntax", message, "mend the line")
        return
    if CLASS not in _names(tree):
        message = f"no class {CLASS}: Triton does not find what it runs"
        yield own.at(path).error("no-model-class", message, f"class {CLASS}:")
    folder = path.rpartition("/")[0]
    beside = any(isinstance(node, ast.ImportFrom) and node.module == "helpers" for node in tree.body)
    if beside and f"{folder}/helpers.py" not in own.files and "sys.path" not in text:
        message = "model.py wants helpers.py beside it"
        yield own.at(path).error("no-helpers", message, "take helpers.py from where model.py comes from")


def _names(tree: ast.Module) -> set[str]:
    """What a module defines or imports at its top."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name):
                found.add(name)
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                found |= {alias.asname or alias.name for alias in names}
            case ast.Assign(targets=targets):
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found | ({CLASS} if "*" in found else set())
