"""Overrides from the environment: `TURNOUT_SERVER__PORT=9090` sets `server.port`.

Only names with a double underscore are overrides. Others that begin with TURNOUT_ belong to somebody else: a variable
that the file refers to, or what Kubernetes sets for a service called turnout.
"""

import importlib
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gateway.settings.explain import unknown_key
from gateway.settings.problems import Path, Problem, dotted
from gateway.settings.schema import example_of, holds_names, section_at
from gateway.settings.unsupported import names_not_yet

PREFIX: Final = "TURNOUT_"
_DELIMITER: Final = "__"


@dataclass(frozen=True, slots=True)
class Override:
    """One value that a variable gives."""

    variable: str
    path: Path
    value: object


def overrides(environ: Mapping[str, str], tree: Mapping[str, object]) -> tuple[list[Override], list[Problem]]:
    """The overrides in `environ`, and what is wrong with them.

    Names of engines and models are found in `tree` whatever their case, with `_` for every other character.
    """
    found: list[Override] = []
    problems: list[Problem] = []
    for variable in sorted(environ):
        parts = variable.removeprefix(PREFIX).split(_DELIMITER)
        if not variable.startswith(PREFIX) or len(parts) < 2:
            continue
        path = _resolve(parts, tree)
        if isinstance(path, Problem):
            problems.append(_named(path, variable))
            continue
        try:
            value = _decoded(path, environ[variable])
        except ValueError:
            hint = example_of(path)
            problems.append(
                Problem("expected JSON", dotted(path), f"for example {hint}" if hint else None, variable=variable)
            )
        else:
            found.append(Override(variable, path, value))
    return found, problems


def apply(tree: dict[str, object], found: list[Override]) -> dict[Path, str]:
    """Puts the overrides into `tree`, and tells which variable gave which path."""
    origins: dict[Path, str] = {}
    for override in found:
        for path, value in _leaves(override.path, override.value):
            _set(tree, path, value)
            origins[path] = override.variable
    return origins


def origin_of(path: Path, origins: Mapping[Path, str], in_file: Container[Path]) -> str | None:
    """The variable to blame for what is wrong at `path`; None blames the file.

    That is the one that gave the value or something around it, or else, where the file has nothing, something below it.
    """
    for end in range(len(path), 0, -1):
        around = path[:end]
        if around in origins:
            return origins[around]
        if around in in_file:
            return None
        below = [variable for other, variable in origins.items() if other[:end] == around]
        if below:
            return below[0]
    return None


def _resolve(parts: list[str], root: object) -> Path | Problem:
    path: Path = ()
    tree = root
    for part in parts:
        if holds_names(path, root):
            name = _existing(part, tree)
        else:
            section = section_at(path, root)
            name = part.lower()
            if name in names_not_yet(path):
                return (*path, *(rest.lower() for rest in parts[len(path) :]))
            if section is None or name not in section.model_fields:
                return _unknown(path, name, root)
        path = (*path, name)
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    return path


def _unknown(above: Path, name: str, root: object) -> Problem:
    path = (*above, name)
    if section_at(above, root) is None:
        return Problem("a single value has nothing below it", dotted(above), "shorten the variable's name")
    message, suggestion = unknown_key(path, root)
    return Problem(message, dotted(path), suggestion)


def _named(problem: Problem, variable: str) -> Problem:
    return Problem(problem.message, problem.key, problem.suggestion, variable=variable)


def _existing(part: str, tree: object) -> str:
    """The name in the file that `part` means; a new name, in lower case, if there is none."""
    names = list(tree) if isinstance(tree, Mapping) else []
    if part in names:
        return part
    return next((name for name in names if _as_variable(name) == part.upper()), part.lower())


def _as_variable(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", name).upper()


def _decoded(path: Path, text: str) -> object:
    """The value that a text means at a path. Raises ValueError."""
    value: object = importlib.import_module("gateway.settings.decoding").decoded(path, text)
    return value


def _leaves(path: Path, value: object) -> Iterator[tuple[Path, object]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves((*path, str(key)), inner)
    else:
        yield path, value


def _set(tree: dict[str, object], path: Path, value: object) -> None:
    """Sets a value deep inside; not below something that is no mapping, which is reported anyway."""
    here = tree
    for part in path[:-1]:
        if here.get(str(part)) is None:
            here[str(part)] = {}
        inner = here[str(part)]
        if not isinstance(inner, dict):
            return
        here = inner
    here[str(path[-1])] = value
