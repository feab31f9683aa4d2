"""What an engine does that OpenAI does not, and what became of it on the way to a client."""

from dataclasses import dataclass
from enum import StrEnum

from engines.profile import EngineKind

VLLM = (EngineKind.VLLM,)
TRTLLM = (EngineKind.TRTLLM,)
TRITON = (EngineKind.TRITON,)
STRICT = (EngineKind.TRTLLM, EngineKind.TRITON)
EVERY = tuple(EngineKind)


class Treatment(StrEnum):
    """What a client sees of a habit."""

    SAME = "made the same"
    """Clients see what OpenAI does."""
    REFUSED = "refused"
    """Clients are told that it cannot be had here, with the parameter's name."""
    PASSED_ON = "passed on"
    """Clients see it, for the reason given."""


@dataclass(frozen=True, slots=True)
class Habit:
    """One habit. `tests` are pytest node ids that hold the treatment; only what is passed on needs none."""

    what: str
    engines: tuple[EngineKind, ...]
    treatment: Treatment
    how: str
    tests: tuple[str, ...] = ()


def same(what: str, engines: tuple[EngineKind, ...], how: str, *tests: str) -> Habit:
    """A habit that clients do not see."""
    return Habit(what, engines, Treatment.SAME, how, tests)


def refused(what: str, engines: tuple[EngineKind, ...], how: str, *tests: str) -> Habit:
    """A habit that makes the gateway say no."""
    return Habit(what, engines, Treatment.REFUSED, how, tests)


def passed_on(what: str, engines: tuple[EngineKind, ...], reason: str, *tests: str) -> Habit:
    """A habit that stays."""
    return Habit(what, engines, Treatment.PASSED_ON, reason, tests)
