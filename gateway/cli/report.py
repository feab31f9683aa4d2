"""Shows a configuration's problems, each with a pointer into the file."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from gateway.settings import ConfigErrors, Loaded, Problem, load
from gateway.settings.problems import Level

_STYLES: Final[Mapping[Level, str]] = {Level.ERROR: "bold red", Level.WARNING: "bold yellow"}
_WIDEST: Final = 110  # columns of a shown line; a longer one is cut around the mistake


def read_settings(path: Path | None) -> Loaded:
    """The configuration at `path`, or the default one.

    Raises:
        typer.Exit: code 2, after all its problems have been shown on stderr.
    """
    try:
        return load(path, os.environ)
    except ConfigErrors as errors:
        show_problems(errors.problems, errors.lines_of)
        raise typer.Exit(2) from None


def show_problems(problems: Sequence[Problem], lines_of: Callable[[Problem], Sequence[str]]) -> None:
    """Writes every problem to stderr: one line, then the line of the file with a caret below the place."""
    console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
    for problem in problems:
        console.print(_headline(problem))
        for line, style in zip(pointer(problem, lines_of(problem)), ("dim", _STYLES[problem.level]), strict=False):
            console.print(Text(line, style=style))
    errors = sum(problem.level is Level.ERROR for problem in problems)
    if errors > 1:
        console.print(Text(f"{errors} problems", style="bold"))


def as_json(problems: Sequence[Problem], *, ok: bool) -> str:
    """One object: `ok`, and every problem with its place, as far as it has one."""
    shown = [
        {
            "level": problem.level.value,
            "rule": problem.rule or None,
            "key": problem.key,
            "message": problem.message,
            "suggestion": problem.suggestion,
            "file": problem.file,
            "line": problem.line,
            "column": problem.column,
            "variable": problem.variable,
        }
        for problem in problems
    ]
    return json.dumps({"ok": ok, "problems": shown}, indent=2, ensure_ascii=False)


def as_github(problem: Problem) -> str:
    """A workflow command that GitHub Actions turns into an annotation at the place.

    Its escapes: docs.github.com, "Workflow commands for GitHub Actions"; line breaks and percent signs everywhere,
    commas and colons in properties too.
    """
    suggestion = f" ({problem.suggestion})" if problem.suggestion else ""
    text = ": ".join(part for part in (problem.variable, problem.key, problem.message) if part) + suggestion
    return github_line(problem.level.value, problem.file, problem.line, problem.rule, text, problem.column)


def github_line(level: str, file: str | None, line: int | None, rule: str, text: str, column: int | None = None) -> str:
    """The same for any place; what is None is left out."""
    place = {"file": file, "line": line, "col": column, "title": f"turnout {rule}".strip()}
    given = ",".join(f"{key}={_property(str(value))}" for key, value in place.items() if value is not None)
    return f"::{level} {given}::{_escaped(text)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def pointer(problem: Problem, lines: Sequence[str]) -> tuple[str, ...]:
    """The file's line with a caret below the place of `problem`; nothing for a problem without a place."""
    if problem.line is None or problem.column is None or not 0 < problem.line <= len(lines):
        return ()
    shown = "".join(char if char.isprintable() else " " for char in lines[problem.line - 1])
    skipped = max(0, problem.column - 1 - _WIDEST // 2) if len(shown) > _WIDEST else 0
    mark = " " * cell_len(shown[skipped : problem.column - 1]) + "^"
    gutter = f"{problem.line:>6} | "
    return (gutter + shown[skipped : skipped + _WIDEST].rstrip(), f"{'':>6} | {mark}")


def _headline(problem: Problem) -> Text:
    text = str(problem)
    place_end = text.find(": ") + 1
    told = Text.assemble((text[:place_end], "bold"), text[place_end:])
    if problem.level is Level.WARNING:
        told.highlight_words([" warning: "], style="yellow")
    return told
