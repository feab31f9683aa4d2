"""From a file and an environment to settings, or to everything that is wrong with them."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path as File
from typing import Final

from pydantic import ValidationError

from gateway.settings.crosscheck import crosscheck
from gateway.settings.document import Document, Position, read_document
from gateway.settings.environment import apply, origin_of, overrides
from gateway.settings.explain import explain
from gateway.settings.problems import ConfigErrors, Finding, Path, Problem, dotted
from gateway.settings.tree import Settings
from gateway.settings.unsupported import not_yet

FILE_VARIABLE: Final = "TURNOUT_CONFIG"
DEFAULT_FILES: Final = (File("turnout.yaml"), File("config/turnout.yaml"))


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, the file they come from, and the SHA-256 of its text (64 hex digits)."""

    settings: Settings
    source: File
    text_hash: str


def load(path: File | None, environ: Mapping[str, str]) -> Loaded:
    """Reads `path`, else the file that TURNOUT_CONFIG names, else `./turnout.yaml`, else `config/turnout.yaml`.

    Raises:
        ConfigErrors: with every mistake that can be seen at once.
    """
    source = path or _default_file(environ)
    text = _text(source)
    document = read_document(text, environ)
    place = _Placer(str(source), document)
    if not isinstance(document.tree, dict):
        raise ConfigErrors(place.document_problems() or [place.no_mapping()], document.lines)
    tree: dict[str, object] = document.tree
    found, problems = overrides(environ, tree)
    place.origins = apply(tree, found)
    settings, findings = _validate(tree, document.lost)
    problems += place.document_problems() + place.problems(findings)
    if problems or settings is None:
        raise ConfigErrors(problems, document.lines)
    return Loaded(settings, source, hashlib.sha256(text.encode()).hexdigest())


def _default_file(environ: Mapping[str, str]) -> File:
    if environ.get(FILE_VARIABLE):
        return File(environ[FILE_VARIABLE])
    for candidate in DEFAULT_FILES:
        if candidate.is_file():
            return candidate
    looked = " and ".join(map(str, DEFAULT_FILES))
    message = f"no configuration file: looked for {looked}"
    raise ConfigErrors([Problem(message, suggestion=f"give --config FILE, or set {FILE_VARIABLE}")])


def _text(source: File) -> str:
    try:
        return source.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        message = "no such file"
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        message = "is not UTF-8 text"
    except ValueError:
        message = "is not a valid path"
    raise ConfigErrors([Problem(message, file=str(source))])


def _validate(tree: dict[str, object], lost: set[Path]) -> tuple[Settings | None, list[Finding]]:
    """The settings, or None, and what is wrong; nothing is said twice about one place or what is below it."""
    settings = None
    found = list(not_yet(tree))
    silent = {finding.path for finding in found}
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        found += _news(map(explain, error.errors(include_url=False)), silent, lost)
    silent |= {finding.path for finding in found}
    found += _news(crosscheck(tree), silent, lost)
    return settings, found


def _news(findings: Iterable[Finding], silent: set[Path], lost: set[Path]) -> list[Finding]:
    """Findings about places of which nothing is known yet; a lost value can still have a wrong key."""
    news: list[Finding] = []
    for finding in findings:
        around = {finding.path[:end] for end in range(1, len(finding.path) + 1)}
        if not around & silent and (finding.at_key or not around & lost):
            news.append(finding)
    return news


@dataclass(slots=True)
class _Placer:
    """Turns findings into problems: a place in the file, or the variable that gave the value."""

    file: str
    document: Document
    origins: Mapping[Path, str] | None = None

    def document_problems(self) -> list[Problem]:
        return [self._at(finding, position) for finding, position in self.document.findings]

    def no_mapping(self) -> Problem:
        message = "expected a mapping with engines and models" if self.document.tree else "the file is empty"
        suggestion = "engines: {qwen: {kind: vllm, urls: [http://127.0.0.1:8000]}}"
        return self._at(Finding((), message, suggestion), Position(1, 1))

    def problems(self, findings: Iterable[Finding]) -> list[Problem]:
        return [self._placed(finding) for finding in findings]

    def _placed(self, finding: Finding) -> Problem:
        variable = origin_of(finding.path, self.origins or {}, self.document.places)
        if variable is not None:
            return Problem(finding.message, dotted(finding.path), finding.suggestion, variable=variable)
        place = self.document.place(finding.path)
        at_key = finding.at_key or finding.path not in self.document.places
        return self._at(finding, place.key if at_key else place.value)

    def _at(self, finding: Finding, position: Position) -> Problem:
        message = finding.message
        literal = self.document.place(finding.path).literal
        if literal is not None:
            message += finding.value_as.format(literal)
        key = dotted(finding.path)
        return Problem(message, key, finding.suggestion, self.file, position.line, position.column)
