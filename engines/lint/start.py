"""One start of an engine, however it is written: its words, its variables, and the container around it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from engines.launch.flags.table import FlagTable, Given, read_flags
from engines.launch.kinds import FLAGS
from engines.lint.finding import At
from engines.lint.numbers import number_of
from engines.lint.words import Word
from engines.profile import EngineKind

ALL: Final = ("all",)
_PARALLEL: Final[Mapping[EngineKind, tuple[str, ...]]] = {
    EngineKind.VLLM: ("--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size"),
    EngineKind.TRTLLM: ("--tensor_parallel_size", "--pipeline_parallel_size", "--context_parallel_size"),
    EngineKind.TRITON: (),
}
_PORTS: Final = {
    EngineKind.VLLM: ("--port", 8000),
    EngineKind.TRTLLM: ("--port", 8000),
    EngineKind.TRITON: ("--openai-port", 9000),
}


@dataclass(frozen=True, slots=True)
class Container:
    """What is around an engine. `gpus` are numbers or UUIDs, or ALL; `ports` pairs of the host's and its own."""

    image: str = ""
    gpus: tuple[str, ...] = ()
    shared: float | None = None
    """Bytes of /dev/shm, if they are said."""
    host_ipc: bool = False
    host_network: bool = False
    ports: tuple[tuple[int | None, int], ...] = ()
    limits: frozenset[str] = frozenset()
    health: tuple[int, str] | None = None
    """The port and the path that a health check asks for, if that is known."""
    lines: Mapping[str, int] = field(default_factory=dict)

    def line(self, key: str, otherwise: int) -> int:
        """The line of one of its keys; that of the container itself where the key is not written."""
        return self.lines.get(key) or self.lines.get("", otherwise)


@dataclass(frozen=True)
class Start:
    """A start of an engine: the words after its program, and the line that it begins at."""

    kind: EngineKind
    words: tuple[Word, ...]
    file: str
    line: int
    environment: Mapping[str, str] = field(default_factory=dict)
    container: Container | None = None
    name: str = ""
    module: bool = False
    """Started as a Python module, which takes no model as an argument."""
    behind: bool = False

    @property
    def table(self) -> FlagTable:
        """The flags that its program knows."""
        return FLAGS[self.kind]

    @cached_property
    def given(self) -> tuple[Given, ...]:
        """The flags that it has."""
        return tuple(read_flags(self.table, [word.text for word in self.words]))

    @cached_property
    def arguments(self) -> tuple[Word, ...]:
        """The words that belong to no flag."""
        taken: set[int] = set()
        for flag in self.given:
            inside = "=" in self.words[flag.at].text
            following = len(flag.values) if flag.flag is not None else self._unknown(flag.at)
            taken |= {flag.at} if inside else set(range(flag.at, flag.at + 1 + following))
        return tuple(word for index, word in enumerate(self.words) if index not in taken)

    @cached_property
    def hides(self) -> bool:
        """Whether there may be flags that are not seen, in a variable or in what a script is given."""
        return any(word.text.startswith("$") for word in self.arguments)

    def _unknown(self, at: int) -> int:
        """Words that probably belong to a flag that is not known."""
        count = 0
        for word in self.words[at + 1 :]:
            if word.text.startswith("-"):
                break
            count += 1
        return count

    def flag(self, name: str) -> Given | None:
        """The flag of that usual name, as it was last given."""
        return next((one for one in reversed(self.given) if one.flag is not None and one.flag.name == name), None)

    def text(self, name: str) -> str | None:
        """The value of a flag."""
        given = self.flag(name)
        return given.values[0] if given is not None and given.values else None

    def number(self, name: str) -> float | None:
        """The value of a flag, if it is a number."""
        return number_of(self.text(name))

    def has(self, name: str) -> bool:
        """Whether a switch is on."""
        given = self.flag(name)
        return given is not None and not given.written.startswith("--no-")

    def at(self, *names: str) -> At:
        """The place of the first of these flags that is given; that of the whole start otherwise."""
        for name in names:
            given = self.flag(name)
            if given is not None:
                return At(self.file, self.words[given.at].line)
        return At(self.file, self.line)

    @cached_property
    def port(self) -> int | None:
        """The port that it listens at; None if a variable says it."""
        name, default = _PORTS[self.kind]
        if self.flag(name) is None:
            return default
        number = self.number(name)
        return None if number is None else int(number)

    @cached_property
    def gpus(self) -> int:
        """How many GPUs it runs on."""
        count = 1.0
        for name in _PARALLEL[self.kind]:
            count *= self.number(name) or 1
        return int(count)

    @cached_property
    def visible(self) -> tuple[str, ...] | None:
        """The GPUs that it may use, as the machine numbers them; None if that is not known."""
        outer = self.container.gpus if self.container is not None else ALL
        chosen = self.environment.get("CUDA_VISIBLE_DEVICES")
        if chosen is None:
            return None if outer == ALL else outer
        if "$" in chosen:
            return None
        inner = tuple(one.strip() for one in chosen.split(",") if one.strip())
        if outer == ALL:
            return inner
        numbers = [int(one) for one in inner if one.isdigit() and int(one) < len(outer)]
        return tuple(outer[number] for number in numbers)

    @property
    def on_cpu(self) -> bool:
        """Whether it computes on the processor, as far as is seen."""
        image = self.container.image if self.container is not None else ""
        return "cpu" in image or any(name.startswith("VLLM_CPU_") for name in self.environment)
