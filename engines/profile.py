"""The vocabulary of engine profiles: one `Profile` per engine kind says how that software differs from OpenAI.

Profiles are data: paths, probes, parameter tables, error rules. Nothing here does I/O.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from engines import faults, prepare
from engines.answers import Answers
from engines.faults import Fault, FaultKind, FaultRule
from engines.policy import (
    UNCHANGED,
    Default,
    Drop,
    Emulate,
    Members,
    ParameterRefused,
    Pass,
    Policy,
    Prepared,
    Reject,
    Rename,
    Split,
    Table,
    Translate,
    Unknown,
)

__all__ = [
    "Answers",
    "Build",
    "Default",
    "Drop",
    "Emulate",
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
    "Split",
    "Table",
    "Translate",
    "Unknown",
    "Variant",
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
class Build:
    """What a running engine says about itself, or its operator of it, as far as profiles depend on it."""

    version: str | None = None
    rust_frontend: bool = False
    guided: bool | None = None
    """Whether it was started with guided decoding; None where nobody says so. Only an operator can (trtllm-serve)."""


@dataclass(frozen=True, slots=True)
class Variant:
    """What is different in some builds of an engine kind: tables that take the place of the usual ones, missing paths.

    `since` and `before` bound the version, the second exclusive; empty means open. An engine whose version is not
    known has none that is bounded.
    """

    title: str
    tables: Mapping[Operation, Table] = field(default_factory=dict)
    lacks: frozenset[Operation] = frozenset()
    since: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    rust_frontend: bool = False
    unguided: bool = False
    """For engines of which it is said that they have no guided decoding."""

    def fits(self, build: Build) -> bool:
        """Say whether an engine of this build is meant."""
        if self.rust_frontend and not build.rust_frontend:
            return False
        if self.unguided and build.guided is not False:
            return False
        if not self.since and not self.before:
            return True
        version = version_numbers(build.version)
        return bool(version) and version >= self.since and (not self.before or version < self.before)


def version_numbers(version: str | None) -> tuple[int, ...]:
    """Read the numbers a version begins with, `0.32.0+cpu` as (0, 32, 0); nothing for what begins otherwise."""
    found = _NUMBERS.match(version or "")
    return tuple(map(int, found[0].split("."))) if found is not None else ()


_NUMBERS = re.compile(r"\d{1,9}(?:\.\d{1,9})*", re.ASCII)


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
    answers: Answers = field(default_factory=Answers)
    models_path: str = "/v1/models"
    metrics_path: str = "/metrics"
    version_path: str | None = "/version"
    variants: tuple[Variant, ...] = ()
    keep_alive: float = 5.0
    """Seconds after its last answer until the engine closes an idle connection (uvicorn's default, all three kinds)."""

    def prepare(self, operation: Operation, members: Members, unknown: Unknown = Unknown.DROP) -> Prepared:
        """Give the request members this engine wants. Never changes `members`, never touches `model`.

        Raises:
            ParameterRefused: the engine cannot serve a member as asked; the client gets a 400 that names it.
        """
        table = self.tables.get(operation)
        if table is None or table.quiet.issuperset(members):  # the same test as in prepare.prepare, one call earlier
            return UNCHANGED
        return prepare.prepare(table, members, unknown)

    def for_build(self, build: Build) -> "Profile":
        """Give the profile as the variants that fit a build change it; itself when none does."""
        fitting = [variant for variant in self.variants if variant.fits(build)]
        if not fitting:
            return self
        tables = dict(self.tables)
        lacking: set[Operation] = set()
        for variant in fitting:
            tables.update(variant.tables)
            lacking |= variant.lacks
        paths = {operation: path for operation, path in self.paths.items() if operation not in lacking}
        return replace(self, tables=tables, paths=paths)

    def classify(self, status: int, body: bytes) -> Fault:
        """Say what an HTTP error answer of this engine means, in words a client may see."""
        return faults.classify(status, body, self.fault_rules)

    def classify_event(self, body: bytes) -> Fault | None:
        """Say what an SSE event's JSON that carries an error means; None for any other event."""
        return faults.classify_event(body, self.fault_rules)
