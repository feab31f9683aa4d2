"""What a scenario is made of. All of it is plain data."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from engines.profile import EngineKind
from engines.simulator import Pace


@dataclass(frozen=True, slots=True)
class Replicas:
    """Simulated engines that are all alike, each a process."""

    name: str
    kind: EngineKind
    count: int
    models: tuple[str, ...]
    """As `turnout simulate --model` takes them."""
    pace: Pace


@dataclass(frozen=True, slots=True)
class Served:
    """A model behind the gateway: what applications call it, and what its engines call it."""

    name: str
    replicas: str
    engine_model: str
    task: str = "chat"


class Path(StrEnum):
    """Where requests go."""

    CHAT = "/v1/chat/completions"
    COMPLETIONS = "/v1/completions"
    EMBEDDINGS = "/v1/embeddings"


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of request. `body` is everything but the model."""

    name: str
    model: str
    body: dict[str, Any] = field(hash=False)
    path: Path = Path.CHAT
    weight: float = 1.0
    """Its share among the scenario's shapes."""

    @property
    def streamed(self) -> bool:
        """Whether the answer comes in events."""
        return bool(self.body.get("stream"))


@dataclass(frozen=True, slots=True)
class Steady:
    """Requests arrive at random (Poisson), whether or not earlier ones are answered: an open loop."""

    per_second: float


@dataclass(frozen=True, slots=True)
class Bursts:
    """`size` requests arrive at the same instant, every `every` seconds: an open loop."""

    size: int
    every: float


@dataclass(frozen=True, slots=True)
class Clients:
    """Each client sends its next request when it has its answer: a closed loop, which shows throughput.

    Its latencies are those of a load that waits for the system, so they say little about one that does not.
    """

    count: int


Arrivals: TypeAlias = Steady | Bursts | Clients


@dataclass(frozen=True, slots=True)
class SlowReaders:
    """Clients beside the load that open one stream each and hardly read it. Their own latencies are not reported."""

    count: int
    bytes_per_second: int
    shape: Shape


@dataclass(frozen=True, slots=True)
class Scenario:
    """A load and what is expected of it."""

    name: str
    about: str
    """What it is like and what to look at; for readers of the report."""
    arrivals: Arrivals
    shapes: tuple[Shape, ...]
    seconds: float = 6.0
    """How long requests arrive."""
    grace: float = 5.0
    """Seconds that the last answers may take after that; what is still open then counts as unfinished."""
    slow: SlowReaders | None = None
    expected: frozenset[str] = frozenset()
    """Errors, by kind, that belong to the scenario."""
