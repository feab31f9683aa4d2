"""The vocabulary of engine profiles: one `Profile` per engine kind says how that software differs from OpenAI.

Profiles are data: paths, probes, parameter tables, error rules. Nothing here does I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from engines import faults, policy
from engines.answers import Answers
from engines.faults import Fault, FaultKind, FaultRule
from engines.policy import (
    UNCHANGED,
    Default,
    Drop,
    Members,
    ParameterRefused,
    Pass,
    Policy,
    Prepared,
    Reject,
    Rename,
    Table,
    Translate,
    Unknown,
)

__all__ = [
    "Answers",
    "Default",
    "Drop",
    "EngineKind",
    "Fault",
    "FaultKind",
    "FaultRule",
    "Health",
    "HealthProbe",
    "Members",
    "Operation",
    "ParameterRefused",
    "Pass",
    "Policy",
    "Prepared",
    "Profile",
    "Reject",
    "Rename",
    "Table",
    "Translate",
    "Unknown",
]


class EngineKind(StrEnum):
    """The software an engine runs."""

    VLLM = "vllm"
    TRTLLM = "trtllm"
    TRITON = "triton"


class Operation(StrEnum):
    """What a client asks for, independent of any path."""

    CHAT = "chat"
    COMPLETIONS = "completions"
    EMBEDDINGS = "embeddings"
    RESPONSES = "responses"
    MESSAGES = "messages"
    COUNT_TOKENS = "count_tokens"
    RERANK = "rerank"
    SCORE = "score"
    TOKENIZE = "tokenize"
    DETOKENIZE = "detokenize"


_ANTHROPIC: frozenset[str] = frozenset({"anthropic-version", "anthropic-beta"})
FORWARDED_HEADERS: Mapping[Operation, frozenset[str]] = {
    Operation.MESSAGES: _ANTHROPIC,
    Operation.COUNT_TOKENS: _ANTHROPIC,
}
"""Headers of a client, in lower case, that belong to the request of an operation and go on to the engine with it.

Credentials never do: Anthropic clients send theirs as `x-api-key`.
"""


class Health(StrEnum):
    """What a health answer says."""

    READY = "ready"
    NOT_READY = "not_ready"
    """It answers and says that it does not serve (starting, unloading a model, its engine process dead)."""
    BROKEN = "broken"
    """Not an answer that this kind of engine gives: perhaps another server at this address."""


@dataclass(frozen=True, slots=True)
class HealthProbe:
    """Where an engine says how it is, and which statuses say what."""

    path: str
    ready: frozenset[int] = frozenset({200})
    not_ready: frozenset[int] = frozenset({503})

    def judge(self, status: int) -> Health:
        """Say what this status of the health path means."""
        if status in self.ready:
            return Health.READY
        return Health.NOT_READY if status in self.not_ready else Health.BROKEN


@dataclass(frozen=True, slots=True)
class Profile:
    """How one kind of engine is spoken to."""

    kind: EngineKind
    title: str
    """The name for people, as in messages and documents."""
    paths: Mapping[Operation, bytes]
    """Where an operation lives; one that is missing is not served by this kind."""
    tables: Mapping[Operation, Table]
    """What becomes of request members; an operation with a path and no table is passed on whole."""
    health: HealthProbe
    fault_rules: tuple[FaultRule, ...] = ()
    answers: Answers = Answers()
    models_path: str = "/v1/models"
    metrics_path: str = "/metrics"
    version_path: str | None = "/version"
    keep_alive: float = 5.0
    """Seconds after its last answer until the engine closes an idle connection (uvicorn's default, all three kinds)."""

    def prepare(self, operation: Operation, members: Members, unknown: Unknown = Unknown.DROP) -> Prepared:
        """Give the request members this engine wants. Never changes `members`, never touches `model`.

        Raises:
            ParameterRefused: the engine cannot serve a member as asked; the client gets a 400 that names it.
        """
        table = self.tables.get(operation)
        if table is None or table.quiet.issuperset(members):  # the same test as in policy.prepare, one call earlier
            return UNCHANGED
        return policy.prepare(table, members, unknown)

    def classify(self, status: int, body: bytes) -> Fault:
        """Say what an HTTP error answer of this engine means, in words a client may see."""
        return faults.classify(status, body, self.fault_rules)

    def classify_event(self, body: bytes) -> Fault | None:
        """Say what an SSE event's JSON that carries an error means; None for any other event."""
        return faults.classify_event(body, self.fault_rules)
