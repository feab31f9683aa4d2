"""Routing files, for `turnout engines lint`: what `turnout check` says, and the faults of the launches in them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from engines.launch.command import option_of
from engines.launch.kinds import AnyLaunch, command_of
from engines.launch.place import place_of
from engines.launch.triton import TritonLaunch
from engines.lint.finding import At, Finding, Level
from engines.lint.programs import Around, starts
from engines.lint.repository import lint_repository
from engines.lint.sources import start_rules, together
from engines.lint.start import Start
from engines.lint.words import Word
from engines.lint.yaml_lines import line_of, read_yaml
from gateway.cli.engines.repository import texts
from gateway.settings import ConfigErrors, Loaded, Problem
from gateway.settings.advice import load_advised

_SAME: Final = frozenset({"unknown-flag", "flag-value", "contradiction", "unknown-parser"})
"""Rules of `turnout check` that these ones know more about."""


def lint_routing(path: Path) -> Iterator[Finding]:
    """The faults of a routing file."""
    try:
        loaded = load_advised(path, os.environ)
    except ConfigErrors as errors:
        yield from (_as_finding(problem, path) for problem in errors.problems)
        return
    tree = read_yaml(path.read_text(encoding="utf-8"))
    own = [finding for name in loaded.settings.engines for finding in _engine(loaded, tree, name, str(path))]
    warned = [_as_finding(problem, path) for problem in loaded.warnings]
    known = {finding.line for finding in warned}
    mistaken = {finding.line for finding in own if finding.level is Level.ERROR}
    yield from (one for one in warned if one.line not in mistaken or one.rule not in _SAME)
    yield from (one for one in own if one.level is Level.ERROR or one.line not in known)


def _as_finding(problem: Problem, path: Path) -> Finding:
    level = Level.ERROR if problem.level.value == "error" else Level.WARNING
    message = f"{problem.key}: {problem.message}" if problem.key else problem.message
    file, fix = problem.file or str(path), problem.suggestion or "see docs/operations.md"
    return Finding(level, file, problem.line or 0, problem.rule or "settings", message, fix)


def _engine(loaded: Loaded, tree: object, name: str, file: str) -> Iterator[Finding]:
    engine = loaded.settings.engines[name]
    launch = engine.launch
    if launch is None:
        return
    here = ("engines", name, "launch")
    place = place_of(name, engine.kind, engine.urls, launch)
    lines = {flag: line_of(tree, (*here, key)) for flag, key in _keys(launch).items()}
    first, words = line_of(tree, here), list[Word]()
    line = first
    command = command_of(launch, place.host, place.port)
    for index, word in enumerate(command.words):
        text = word if isinstance(word, str) else "$SECRET"
        if text.startswith("-"):
            extra = index >= len(command.words) - len(launch.extra_args)
            line = line_of(tree, (*here, "extra_args")) if extra else lines.get(text, first)
        words.append(Word(text, line))
    variables = {key: value for key, value in command.environment.items() if isinstance(value, str)}
    found = [one for one in starts(words, Around(file, variables, name=name)) if isinstance(one, Start)]
    yield from start_rules(found)
    yield from together(found)
    if isinstance(launch, TritonLaunch) and launch.models:
        try:
            files = {path: text.encode() for path, text in texts(launch, "lint").items()}
        except ValueError as error:
            at = At(file, line_of(tree, (*here, "models")))
            yield at.error("model-name", str(error), "another name")
            return
        for finding in lint_repository(files):
            model = finding.file.partition("/")[0]
            at = At(file, line_of(tree, (*here, "models", model)))
            yield Finding(finding.level, at.file, at.line, finding.rule, finding.message, finding.fix)


def _keys(launch: AnyLaunch) -> dict[str, str]:
    """The keys of launch settings by the flags that they become."""
    found = {"--enable-auto-tool-choice": "tool_parser", "--enable-lora": "loras", "--config": "settings"}
    for name, info in type(launch).model_fields.items():
        option = option_of(info)
        if option is not None and option.flag:
            found[option.flag] = name
    return found
