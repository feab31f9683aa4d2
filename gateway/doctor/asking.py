"""The vocabulary between checks and those who ask: a question to one replica, and what was heard."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeAlias

import msgspec


class How(Enum):
    """How a question is asked."""

    WHOLE = auto()
    """Until the end of the answer."""
    LEAVE = auto()
    """The connection is closed after the first bytes of the answer, while the engine's metrics are watched."""
    IDLE = auto()
    """The connection is kept after the answer, until the engine closes it."""


@dataclass(frozen=True, slots=True)
class Question:
    """One request. Two that are equal are asked once, whoever wants to know.

    ``tokens``: most that the engine generates for it. ``metrics``: the path that is watched (`How.LEAVE`).
    """

    path: str
    body: bytes | None = None
    with_key: bool = True
    tokens: int = 0
    how: How = How.WHOLE
    metrics: str = ""


@dataclass(frozen=True, slots=True)
class Left:
    """Requests that the engine had running: before the question, during its answer, and after its client had gone.

    None: it did not say. ``seconds``: how long the last was watched.
    """

    before: float | None
    during: float | None
    after: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Heard:
    """What came back. Without an answer, ``status`` is 0 and ``failure`` says why; an answer may also break off.

    Args:
        trust: the failure is about the certificate.
        refused: nobody listened.
        seconds: until the end of the answer.
        at: Unix seconds, by our clock, when the answer had come.
        expires: Unix seconds at which the engine's certificate ends.
        idle: seconds until the engine closed the idle connection; None: longer than was waited.
    """

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    failure: str = ""
    trust: bool = False
    refused: bool = False
    seconds: float = 0.0
    at: float = 0.0
    expires: float | None = None
    idle: float | None = None
    left: Left | None = None

    @property
    def ok(self) -> bool:
        """A whole answer with status 200."""
        return self.status == 200 and not self.failure

    def json(self) -> dict[str, object]:
        """The body as a JSON object; empty if it is none."""
        try:
            decoded = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}
        return decoded if isinstance(decoded, dict) else {}


Answers: TypeAlias = Mapping[Question, Heard]
"""What was heard to each question."""
