"""What a fault scenario is made of. All of it is plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

from engines.simulator import NO_FAULTS, Faults, Pace

USUAL: Final = Pace(first_token=0.02, inter_token=0.01, batch_slowdown=0.005)
"""An answer of twenty tokens takes about a quarter of a second."""


class Excuse(StrEnum):
    """Why a request could not be saved by anybody."""

    BEGUN = "its client had seen the beginning of the answer when its replica failed"
    NONE_LEFT = "no replica could serve at that time"
    NO_GATEWAY = "the gateway had been told to stop, and nobody else was listening"


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL."""

    at: float
    replica: int = 0


@dataclass(frozen=True, slots=True)
class Start:
    """Starts a replica again, on its old port; `pace`: how fast it is for now."""

    at: float
    replica: int = 0
    pace: Pace = USUAL


@dataclass(frozen=True, slots=True)
class Terminate:
    """SIGTERM, and vLLM's answer to it: nobody can connect, and running streams fall silent for good."""

    at: float
    replica: int = 0


@dataclass(frozen=True, slots=True)
class Freeze:
    """SIGSTOP: the kernel still accepts connections, and nobody ever answers, health checks included."""

    at: float
    replica: int = 0


@dataclass(frozen=True, slots=True)
class Thaw:
    """SIGCONT."""

    at: float
    replica: int = 0


@dataclass(frozen=True, slots=True)
class Trouble:
    """Replicas misbehave from now on, and seem healthy."""

    at: float
    faults: Faults = NO_FAULTS
    replicas: tuple[int, ...] = (0,)
    pace: Pace = USUAL


@dataclass(frozen=True, slots=True)
class Ease:
    """Replicas behave again, at their usual pace or at `pace`."""

    at: float
    replicas: tuple[int, ...] = (0,)
    pace: Pace = USUAL


@dataclass(frozen=True, slots=True)
class Rename:
    """The engine's name stands for these replicas now."""

    at: float
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EndGateway:
    """SIGTERM for the gateway; `successor`: another one has taken over the port before."""

    at: float
    successor: bool = False


@dataclass(frozen=True, slots=True)
class Reload:
    """Another configuration in the gateway's file, and a SIGHUP every second time: else it has to notice by itself."""

    at: float


Act: TypeAlias = Kill | Start | Terminate | Freeze | Thaw | Trouble | Ease | Rename | EndGateway | Reload


@dataclass(frozen=True, slots=True)
class Guests:
    """Rude clients beside the load, `count` of each kind at a time."""

    vanishing: int = 0
    """They leave before the answer or in the middle of it, and come again."""
    deaf: int = 0
    """They ask for a long stream and never read."""
    dripping: int = 0
    """They send a byte now and then."""


@dataclass(frozen=True, slots=True)
class FaultScenario:
    """A load, what happens to the replicas meanwhile, and which failures are allowed. Times are seconds."""

    name: str
    about: str
    acts: tuple[Act, ...] = ()
    """In the order of their moments, which count from the beginning of a cycle."""
    seconds: float = 4.0
    """One cycle. The short form has one, the long form as many as fill a minute."""
    per_second: float = 25.0
    every: float | None = None
    """Instead of random moments, so many seconds pass between two bursts of `per_second * every` requests."""
    tokens: int = 20
    """Of each answer."""
    replicas: int = 3
    pace: Pace = USUAL
    paces: Mapping[int, Pace] = field(default_factory=dict)
    """Of replicas that differ from the start."""
    engine: Mapping[str, Any] = field(default_factory=dict)
    """More keys of the engine in the gateway's configuration."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """More sections of it."""
    keep_alive: float = 5.0
    """After so long the replicas close idle connections."""
    guests: Guests = Guests()
    excuses: frozenset[Excuse] = frozenset()
    notice: float = 0.0
    """How long the gateway may take to see that a replica is back."""
    shares: Mapping[int, float] = field(default_factory=dict)
    """The largest share of the requests that a replica may be given."""
    names: bool = False
    """The replicas are found by name, as `dns+http://`."""
    once: bool = False
    """Its acts cannot be repeated: the long form has one cycle too."""
    only_long: bool = False
    long_seconds: float = 60.0
