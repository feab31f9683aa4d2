"""From a file and an environment to settings, or to everything that is wrong with them."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path as File
from typing import Final, TypeAlias

from pydantic import ValidationError

from gateway.settings.crosscheck import crosscheck
from gateway.settings.document import Document, Position, read_document
from gateway.settings.environment import apply, origin_of, overrides
from gateway.settings.explain import explain
from gateway.settings.problems import ConfigErrors, Finding, Level, Path, Problem, dotted
from gateway.settings.secrets import SECRET_FILE
from gateway.settings.tree import Settings
from gateway.settings.unsupported import not_yet

FILE_VARIABLE: Final = "TURNOUT_CONFIG"
WRITES_ONE: Final = "turnout init writes one for engines that run"
DEFAULT_FILES: Final = (File("turnout.yaml"), File("config/turnout.yaml"))

Advise: TypeAlias = Callable[[Settings], Iterable[Finding]]
"""Says what is probably not meant."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, the file they come from, and the SHA-256 of what was read (64 hex digits).

    `files` are all files whose text is part of it: the source, the keys file if there is one, and those of secrets.
    `warnings` are about what is allowed and probably not meant, for those who want them; `lines` are the source's,
    secrets masked.
    """

    settings: Settings
    source: File
    text_hash: str
    files: tuple[File, ...] = ()
    warnings: tuple[Problem, ...] = ()
    lines: tuple[str, ...] = ()

    def lines_of(self, problem: Problem) -> tuple[str, ...]:
        """The lines of the file that a warning is about, as far as they are kept: the source's."""
        return self.lines if problem.file == str(self.source) else ()


def load(path: File | None, environ: Mapping[str, str], advise: Advise | None = None) -> Loaded:
    """Reads `path`, else the file that TURNOUT_CONFIG names, else `./turnout.yaml`, else `config/turnout.yaml`.

    Without `advise` there are no warnings (`advice.load_advised`).

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
    further = _further_keys(tree, source, environ)
    settings, findings = validate(tree, document.lost | further.lost)
    problems += place.document_problems() + further.problems
    problems += [further.placed(finding) or place.placed(finding) for finding in findings]
    if problems or settings is None:
        raise ConfigErrors(problems, document.lines, {further.file: further.lines})
    texts = text if further.text is None else f"{text}\0{further.text}"
    keys = () if further.text is None else (File(further.file),)
    files = (source, *keys, *dict.fromkeys(_secret_files(tree)))
    odd = () if advise is None else advise(settings)
    placed = [(further.placed(one) or place.placed(one), one.rule) for one in odd]
    warned = (replace(problem, level=Level.WARNING, rule=rule) for problem, rule in placed)
    warnings = tuple(sorted(warned, key=lambda problem: problem.order))
    text_hash = hashlib.sha256(texts.encode()).hexdigest()
    return Loaded(settings, source, text_hash, files, warnings, tuple(document.lines))


@dataclass(slots=True)
class _FurtherKeys:
    """The keys file: what was wrong with it, and where its entries are among the keys of the tree."""

    file: str = ""
    text: str | None = None
    first: int = 0
    """The index of its first entry in the tree."""
    placer: "_Placer | None" = None
    problems: list[Problem] = field(default_factory=list)
    lost: set[Path] = field(default_factory=set)

    @property
    def lines(self) -> list[str]:
        return self.placer.document.lines if self.placer is not None else []

    def placed(self, finding: Finding) -> Problem | None:
        """The finding as a problem of this file; None if it is about something else."""
        match finding.path:
            case ("keys", int(index), *rest) if self.placer is not None and index >= self.first:
                return self.placer.placed(replace(finding, path=(index - self.first, *rest)))
            case _:
                return None


def _further_keys(tree: dict[str, object], source: File, environ: Mapping[str, str]) -> _FurtherKeys:
    """Reads the keys file that the tree names, if it does, and adds its entries to the tree."""
    name, keys = tree.get("keys_file"), tree.get("keys", [])
    if not isinstance(name, str) or not name or not isinstance(keys, list):
        return _FurtherKeys()
    file = source.parent / name
    further = _FurtherKeys(str(file), first=len(keys))
    try:
        further.text = _text(file, further=True)
    except ConfigErrors as errors:
        further.problems = list(errors.problems)
        return further
    document = read_document(further.text, environ)
    further.placer = placer = _Placer(further.file, document)
    further.problems = placer.document_problems()
    entries = document.tree or []
    if isinstance(entries, list):
        tree["keys"] = [*keys, *entries]
        further.lost = {
            ("keys", path[0] + further.first, *path[1:]) for path in document.lost if isinstance(path[0], int)
        }
    elif not further.problems:
        message = "expected a list of keys"
        further.problems = [Problem(message, suggestion='- {name: team-a, hash: "sha256:…"}', file=further.file)]
    return further


def _secret_files(value: object) -> Iterator[File]:
    """The files that secrets stand in."""
    if isinstance(value, str) and value.startswith(f"{SECRET_FILE}/"):
        yield File(value.removeprefix(SECRET_FILE))
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _secret_files(inner)


def _default_file(environ: Mapping[str, str]) -> File:
    if environ.get(FILE_VARIABLE):
        return File(environ[FILE_VARIABLE])
    for candidate in DEFAULT_FILES:
        if candidate.is_file():
            return candidate
    looked = " and ".join(map(str, DEFAULT_FILES))
    message = f"no configuration file: looked for {looked}"
    raise ConfigErrors([Problem(message, suggestion=f"name one, or set {FILE_VARIABLE}; {WRITES_ONE}")])


def _text(source: File, *, further: bool = False) -> str:
    suggestion = None
    try:
        return source.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        message, suggestion = "no such file", None if further else WRITES_ONE
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        message = "is not UTF-8 text"
    except ValueError:
        message = "is not a valid path"
    raise ConfigErrors([Problem(message, suggestion=suggestion, file=str(source))])


def validate(tree: dict[str, object], lost: AbstractSet[Path] = frozenset()) -> tuple[Settings | None, list[Finding]]:
    """The settings of plain values, or None, and what is wrong; nothing is said twice about one place or what is below
    it. Values at ``lost`` could not be read.
    """
    settings = None
    found = list(not_yet(tree))
    silent = {finding.path for finding in found}
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        explained = (explain(one, tree) for one in error.errors(include_url=False))
        found += _news(explained, silent, lost)
    silent |= {finding.path for finding in found}
    found += _news(crosscheck(tree), silent, lost)
    return settings, found


def _news(findings: Iterable[Finding], silent: set[Path], lost: AbstractSet[Path]) -> list[Finding]:
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

    def placed(self, finding: Finding) -> Problem:
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
