"""How an attempt on an endpoint ended: a closed union, so that no ending goes unjudged.

`verdict` is the one place that says which endings count against an endpoint. A client's mistake (`Rejected`), a client
that left (`ClientGone`) and a limit the client set itself never do, whatever the engine made of them.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias, assert_never


class Phase(StrEnum):
    """The part of an attempt a timeout belongs to."""

    CONNECT = "connect"
    FIRST_TOKEN = "first_token"
    IDLE = "idle"
    TOTAL = "total"


@dataclass(frozen=True, slots=True)
class Served:
    """A complete answer. Use the shared `SERVED`: the success path allocates nothing and compares identities."""


@dataclass(frozen=True, slots=True)
class Refused:
    """No connection could be made, so no work was done."""


@dataclass(frozen=True, slots=True)
class Stale:
    """A reused connection died before any byte of an answer: the engine closed it while it was idle."""


@dataclass(frozen=True, slots=True)
class Overloaded:
    """The engine says that it is full (429, or 503 busy). `retry_after` is what it asked for, in seconds."""

    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Broken:
    """A 5xx, or death of the connection, before anything was committed to the client.

    `died` marks the second kind: the connection ended without an answer, which may mean that this very request
    killed the replica.
    """

    status: int | None = None
    died: bool = False


@dataclass(frozen=True, slots=True)
class Truncated:
    """The answer broke off after its first bytes had been committed to the client."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The engine refused the request itself (4xx other than 429). Never the endpoint's fault."""

    status: int


@dataclass(frozen=True, slots=True)
class TimedOut:
    """A phase took longer than allowed. `by_client`: the limit was the client's own, lower than ours."""

    phase: Phase
    by_client: bool = False


@dataclass(frozen=True, slots=True)
class ClientGone:
    """The client left. Nobody's fault."""


Outcome: TypeAlias = Served | Refused | Stale | Overloaded | Broken | Truncated | Rejected | TimedOut | ClientGone

SERVED: Final = Served()
REFUSED: Final = Refused()
STALE: Final = Stale()
TRUNCATED: Final = Truncated()
CLIENT_GONE: Final = ClientGone()


class Verdict(StrEnum):
    """What an outcome says about the endpoint."""

    GOOD = "good"
    BAD = "bad"
    BUSY = "busy"
    NEUTRAL = "neutral"


def verdict(outcome: Outcome) -> Verdict:
    """Judge the endpoint by one outcome.

    A total timeout is neutral: a long answer that ran into the limit was being served. A stale connection is
    neutral: closing an idle connection is every engine's right.
    """
    match outcome:
        case Served():
            return Verdict.GOOD
        case Refused() | Broken() | Truncated():
            return Verdict.BAD
        case Overloaded():
            return Verdict.BUSY
        case TimedOut(phase=phase, by_client=by_client):
            return Verdict.NEUTRAL if by_client or phase is Phase.TOTAL else Verdict.BAD
        case Stale() | Rejected() | ClientGone():
            return Verdict.NEUTRAL
        case _:
            assert_never(outcome)


def label(outcome: Outcome) -> str:
    """A short name for logs and metric labels; the set of names is closed."""
    name: str
    match outcome:
        case Served():
            name = "served"
        case Refused():
            name = "refused"
        case Stale():
            name = "stale"
        case Overloaded():
            name = "overloaded"
        case Broken():
            name = "broken"
        case Truncated():
            name = "truncated"
        case Rejected():
            name = "rejected"
        case TimedOut(phase=phase):
            name = f"timeout_{phase.value}"
        case ClientGone():
            name = "client_gone"
        case _:
            assert_never(outcome)
    return name
