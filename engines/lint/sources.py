"""What a text is, and its faults: compose files, shell scripts and command lines. Routing files are read elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Final, assert_never

from engines.lint import compose, container_rules, gpu_memory, triton_command, trtllm_command, vllm_command
from engines.lint.finding import Finding
from engines.lint.flag_rules import flag_rules
from engines.lint.programs import Around, starts
from engines.lint.start import Start
from engines.lint.words import UnclosedError, split_lines
from engines.lint.yaml_lines import YamlFault, read_yaml
from engines.profile import EngineKind

COMMAND: Final = "command"
"""What stands for the file where a command line was given."""


class Source(Enum):
    """What a text is."""

    COMPOSE = auto()
    ROUTING = auto()
    SCRIPT = auto()


class Unreadable(Exception):
    """Nothing that could be looked into; says why."""


def what_is(name: str, text: str) -> Source:
    """What a file is, by its name and its text.

    Raises:
        Unreadable: neither a compose nor a routing file, nor anything with command lines.
    """
    if "\0" in text or not text.strip():
        raise Unreadable("this is no text that could be looked into")
    if not name.endswith((".yaml", ".yml", ".json")):
        return Source.SCRIPT
    tree = _tree(text)
    if isinstance(tree, Mapping) and "services" in tree:
        return Source.COMPOSE
    if isinstance(tree, Mapping) and ("engines" in tree or "models" in tree):
        return Source.ROUTING
    raise Unreadable("neither a compose file (services:) nor a routing file (engines:)")


def lint_text(text: str, kind: Source, file: str) -> Iterator[Finding]:
    """The faults of a compose file, of a script, or of a command line.

    Raises:
        Unreadable: it is not what it seems, or nothing in it starts an engine.
    """
    match kind:
        case Source.COMPOSE:
            tree = _tree(text)
            yield from _compose(list(compose.services(tree, file)) if isinstance(tree, Mapping) else [])
        case Source.SCRIPT:
            yield from _script(text, file)
        case Source.ROUTING:
            raise Unreadable("a routing file is read as a whole")
        case _:
            assert_never(kind)


_ABSENT: Final = frozenset(
    {
        "no-model",
        "no-parser",
        "no-auto-tools",
        "no-lora",
        "no-role",
        "no-repository",
        "no-tokenizer",
        "loopback-in-container",
        "port-not-served",
        "health-port",
        "stray-argument",
    }
)
"""Rules about what is not there, which a variable may have."""


def start_rules(given: Sequence[Start]) -> Iterator[Finding]:
    """The faults of each of several starts."""
    for start in given:
        if start.kind is not EngineKind.TRTLLM or not trtllm_command.other_flags(start):
            for finding in _rules(start):
                if not (start.hides and finding.rule in _ABSENT):
                    yield finding


def _rules(start: Start) -> Iterator[Finding]:
    yield from flag_rules(start)
    match start.kind:
        case EngineKind.VLLM:
            yield from vllm_command.rules(start)
        case EngineKind.TRTLLM:
            yield from trtllm_command.rules(start)
        case EngineKind.TRITON:
            yield from triton_command.rules(start)
        case _:
            assert_never(start.kind)
    yield from container_rules.rules(start)


def together(given: Sequence[Start]) -> Iterator[Finding]:
    """The faults of starts that run at the same time on one machine."""
    yield from gpu_memory.rules(given)
    yield from gpu_memory.samples(given)


def _compose(services: Sequence[compose.Service]) -> Iterator[Finding]:
    yield from compose.taken_ports(services)
    for service in services:
        yield from service.findings
        yield from start_rules(service.starts)
    for group in compose.groups(services):
        yield from together([start for service in group for start in service.starts])


def _script(text: str, file: str) -> Iterator[Finding]:
    found: list[Start | Finding] = []
    try:
        for line in split_lines(text):
            found += starts(line.words, Around(file, behind=line.behind))
    except UnclosedError as error:
        raise Unreadable(str(error)) from None
    if not found:
        raise Unreadable("no command that starts an engine (vllm serve, trtllm-serve, openai_frontend/main.py)")
    yield from (one for one in found if isinstance(one, Finding))
    given = [one for one in found if isinstance(one, Start)]
    yield from start_rules(given)
    behind = [start for start in given if start.behind or start is given[-1]]
    yield from together(behind)
    for start in given:
        if start not in behind:
            yield from together([start])


def _tree(text: str) -> object:
    try:
        return read_yaml(text)
    except YamlFault as fault:
        raise Unreadable(f"line {fault.line}: this is no YAML: {fault.message}") from None
