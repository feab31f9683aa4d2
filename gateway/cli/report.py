"""Shows a configuration's problems, each with a pointer into the file."""

import os
from pathlib import Path
from typing import Final

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from gateway.settings import ConfigErrors, Loaded, Problem, load

_WIDEST: Final = 110  # columns of a shown line; a longer one is cut around the mistake


def read_settings(path: Path | None) -> Loaded:
    """The configuration at `path`, or the default one.

    Raises:
        typer.Exit: code 2, after all its problems have been shown on stderr.
    """
    try:
        return load(path, os.environ)
    except ConfigErrors as errors:
        show_problems(errors)
        raise typer.Exit(2) from None


def show_problems(errors: ConfigErrors) -> None:
    """Writes every problem to stderr: one line, then the line of the file with a caret below the place."""
    console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
    for problem in errors.problems:
        console.print(_headline(problem))
        for line, style in zip(pointer(problem, errors.lines_of(problem)), ("dim", "bold red"), strict=False):
            console.print(Text(line, style=style))
    count = len(errors.problems)
    if count > 1:
        console.print(Text(f"{count} problems", style="bold"))


def pointer(problem: Problem, lines: tuple[str, ...]) -> tuple[str, ...]:
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
    return Text.assemble((text[:place_end], "bold"), text[place_end:])
