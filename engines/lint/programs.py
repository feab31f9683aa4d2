"""Which engine a command starts, whatever stands before it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from engines.lint import legacy
from engines.lint.docker_run import read_run
from engines.lint.finding import At, Finding
from engines.lint.start import Container, Start
from engines.lint.words import UnclosedError, Word, split_lines
from engines.profile import EngineKind

_BEFORE: Final = frozenset({"exec", "sudo", "nohup", "time", "env", "stdbuf", "trtllm-llmapi-launch", "command"})
_KEYWORDS: Final = frozenset({"if", "then", "else", "elif", "while", "until", "do", "{", "!"})
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_PYTHON: Final = re.compile(r"python[0-9.]*")
_VLLM_MODULE: Final = "vllm.entrypoints.openai.api_server"


@dataclass(frozen=True, slots=True)
class Around:
    """What is known about a command before it is read."""

    file: str
    environment: Mapping[str, str] = field(default_factory=dict)
    container: Container | None = None
    name: str = ""
    behind: bool = False


def starts(words: Sequence[Word], around: Around) -> Iterator[Start | Finding]:
    """The engines that a command starts (usually one or none), and programs that are gone."""
    words, around = _stripped(words, around)
    if not words:
        return
    program, line = words[0].text.rpartition("/")[2], words[0].line
    rest = tuple(words[1:])
    if program in {"docker", "podman", "nerdctl"}:
        yield from _contained(rest, around)
    elif program in {"sh", "bash", "ash"} and (inner := _script(rest)) is not None:
        for command in _lines(inner):
            yield from starts(command, around)
    elif program in {"mpirun", "mpiexec", "srun", "uv", "numactl", "tini", "timeout"}:
        yield from _later(rest, around)
    elif (kind := _kind(program, rest)) is not None:
        start, skipped, module = kind
        yield Start(
            start,
            rest[skipped:],
            around.file,
            line,
            around.environment,
            around.container,
            around.name,
            module,
            around.behind,
        )
    else:
        script = rest[0].text.rpartition("/")[2] if _PYTHON.fullmatch(program) and rest else program
        yield from legacy.program(script, At(around.file, line))


def _stripped(words: Sequence[Word], around: Around) -> tuple[tuple[Word, ...], Around]:
    """The words without variables and wrappers before the program."""
    environment, at = dict(around.environment), 0
    while at < len(words):
        text = words[at].text
        if _ASSIGNED.match(text):
            name, _, value = text.partition("=")
            environment[name] = value
        elif text.rpartition("/")[2] not in _BEFORE | _KEYWORDS and not (at and text == "-E"):
            break
        at += 1
    return tuple(words[at:]), replace(around, environment=environment)


def _kind(program: str, rest: Sequence[Word]) -> tuple[EngineKind, int, bool] | None:
    """The engine that a program is, how many words belong to the program's name, and whether it is vLLM's module."""
    first = rest[0].text if rest else ""
    if program == "vllm" and first == "serve":
        return EngineKind.VLLM, 1, False
    if program == "trtllm-serve":
        return EngineKind.TRTLLM, 0, False
    if not _PYTHON.fullmatch(program):
        return (EngineKind.TRITON, 0, False) if program == "main.py" else None
    if first == "-m" and len(rest) > 1 and rest[1].text == _VLLM_MODULE:
        return EngineKind.VLLM, 2, True
    if first.endswith("openai_frontend/main.py"):
        return EngineKind.TRITON, 1, False
    return None


def _contained(words: tuple[Word, ...], around: Around) -> Iterator[Start | Finding]:
    texts = [word.text for word in words]
    if "run" not in texts:
        return
    run = read_run(words[texts.index("run") + 1 :])
    if run is None:
        return
    inside = replace(around, container=run.container, behind=around.behind or run.behind)
    inside = replace(inside, environment={**around.environment, **run.environment})
    line = words[texts.index("run")].line
    entrypoint = None if run.entrypoint is None else [Word(part, line) for part in run.entrypoint.split()]
    yield from in_image(entrypoint, run.words, inside, line)


def in_image(
    entrypoint: Sequence[Word] | None, words: Sequence[Word], around: Around, line: int
) -> Iterator[Start | Finding]:
    """What runs in a container: the entry point is the image's own unless another is given."""
    image = around.container.image if around.container is not None else ""
    if entrypoint is None:
        entrypoint = [Word("vllm", line), Word("serve", line)] if "vllm-openai" in image else []
    yield from starts((*entrypoint, *words), around)


def _later(words: Sequence[Word], around: Around) -> Iterator[Start | Finding]:
    """A program that another one starts, somewhere in its arguments."""
    for at, word in enumerate(words):
        name = word.text.rpartition("/")[2]
        known = name in {"vllm", "trtllm-serve", *legacy.PROGRAMS}
        if known or _PYTHON.fullmatch(name):
            yield from starts(words[at:], around)
            return


def _script(words: Sequence[Word]) -> Word | None:
    """What `sh -c` is given."""
    for at, word in enumerate(words[:-1]):
        if re.fullmatch(r"-[a-z]*c", word.text):
            return words[at + 1]
    return None


def _lines(script: Word) -> Iterator[tuple[Word, ...]]:
    try:
        for line in list(split_lines(script.text)):
            yield tuple(Word(word.text, script.line + word.line - 1) for word in line.words)
    except UnclosedError:
        return
