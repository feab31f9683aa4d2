"""`turnout engines lint`."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from engines.lint.finding import Finding, Level
from engines.lint.repository import lint_repository
from engines.lint.sources import COMMAND, Source, Unreadable, lint_text, what_is
from gateway.cli.engines.lint_routing import lint_routing
from gateway.cli.report import github_line

_LARGEST: Final = 1 << 20  # bytes of a file that rules look into; what is larger is weights
_PARTS: Final = frozenset({"config.pbtxt", "model.json", "multi_lora.json", "model.yaml"})


class Format(StrEnum):
    """Who reads what `lint` says."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def lint(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR|FILE",
            help="A Triton model repository, or one model of it; a compose file, a routing file or a script.",
        ),
    ] = None,
    command: Annotated[
        str | None, typer.Option("--command", help="A command line instead, in quotes: 'vllm serve …', 'docker run …'.")
    ] = None,
    form: Annotated[
        Format,
        typer.Option("--format", help="text for people, json for programs, github for annotations of a pull request."),
    ] = Format.TEXT,
) -> None:
    """Find what is wrong with a repository, a file or a command line that starts engines. Nothing is started.

    Exit code 0 without errors (there may be warnings), 1 with errors, 2 if it cannot be read.
    """
    if (path is None) == (command is None):
        raise typer.BadParameter("give a folder, a file, or --command '…'")
    try:
        found = _lint(path) if path is not None else lint_text(command or "", Source.SCRIPT, COMMAND)
        findings = sorted(set(found), key=lambda finding: finding.order)
    except (Unreadable, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        typer.echo(f"turnout: {path if path is not None else COMMAND}: {reason}", err=True)
        raise typer.Exit(2) from None
    _show(findings, form)
    if any(finding.level is Level.ERROR for finding in findings):
        raise typer.Exit(1)


def _lint(path: Path) -> Iterable[Finding]:
    if path.is_dir():
        return _lint_folder(path)
    if path.name in _PARTS:
        model = path.parent if path.name == "config.pbtxt" else path.parent.parent
        return _at(model.parent, lint_repository(files_of(model, model.resolve().name)))
    text = _text(path)
    kind = what_is(path.name, text)
    return lint_routing(path) if kind is Source.ROUTING else lint_text(text, kind, str(path))


def _lint_folder(path: Path) -> Iterable[Finding]:
    single = _is_model(path)
    files = files_of(path, path.resolve().name if single else "")
    if not any(name.rpartition("/")[2] in _PARTS or name.endswith(".engine") for name in files):
        raise Unreadable("no model repository: there is no MODEL/config.pbtxt")
    return _at(path.parent if single else path, lint_repository(files))


def _text(path: Path) -> str:
    if path.stat().st_size > _LARGEST:
        raise Unreadable("too large for a file that people write")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Unreadable("this is not UTF-8 text") from None


def _is_model(folder: Path) -> bool:
    """Whether a folder is one model rather than a repository of them."""
    return (folder / "config.pbtxt").is_file() or any((folder / "1").glob("model.*"))


def files_of(folder: Path, prefix: str) -> dict[str, bytes]:
    """The files below a folder, as the rules want them: contents only of those that they look into."""
    files: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        name = "/".join(part for part in (prefix, path.relative_to(folder).as_posix()) if part)
        if path.is_dir():
            if not any(path.iterdir()):
                files[f"{name}/"] = b""
            continue
        readable = path.is_file() and (path.name in _PARTS or path.suffix == ".py") and path.stat().st_size <= _LARGEST
        files[name] = path.read_bytes() if readable else b""
    return files


def _at(root: Path, findings: Iterable[Finding]) -> Iterator[Finding]:
    for finding in findings:
        yield replace(finding, file=str(root / finding.file))


def _show(findings: Sequence[Finding], form: Format) -> None:
    match form:
        case Format.JSON:
            typer.echo(json.dumps([_plain(finding) for finding in findings], indent=2, ensure_ascii=False))
        case Format.GITHUB:
            for finding in findings:
                text = f"{finding.message} ({finding.fix})"
                typer.echo(github_line(finding.level.value, finding.file, finding.line, finding.rule, text))
        case Format.TEXT:
            for finding in findings:
                place = f"{finding.file}:{finding.line}" if finding.line else finding.file
                typer.echo(f"{place}: {finding.level.value}: {finding.message} ({finding.fix}) [{finding.rule}]")
            errors = sum(finding.level is Level.ERROR for finding in findings)
            typer.echo(_told(errors, len(findings) - errors))


def _plain(finding: Finding) -> dict[str, object]:
    return {
        "level": finding.level.value,
        "file": finding.file,
        "line": finding.line or None,
        "rule": finding.rule,
        "message": finding.message,
        "fix": finding.fix,
    }


def _told(errors: int, warnings: int) -> str:
    parts = [(errors, "error"), (warnings, "warning")]
    told = [f"{count} {word}{'s' if count > 1 else ''}" for count, word in parts if count]
    return " and ".join(told) or "nothing found"
