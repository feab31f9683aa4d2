"""What is examined: a replica of an engine, and a model on it, with all that the file says about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from engines.policy import Members, ParameterRefused
from engines.profile import Operation, Profile
from gateway.doctor.asking import How, Question
from gateway.settings.document import Document
from gateway.settings.engines import Engine
from gateway.settings.models import Model
from gateway.settings.problems import Path, dotted
from gateway.wire.shape import ReasoningField
from gateway.wire.tools import Facts, Parse, ReasoningRule, Tooled, known_format


@dataclass(frozen=True, slots=True)
class Lines:
    """Where things stand in the configuration file."""

    file: str
    document: Document

    def at(self, *path: str | int) -> str:
        """`turnout.yaml:7: engines.qwen.kind`; for what is not in the file, the line of what is around it."""
        return f"{self.file}:{self.document.place(path).key.line}: {dotted(path)}"

    def has(self, *path: str | int) -> bool:
        """Whether the file says it."""
        return path in self.document.places


@dataclass(frozen=True, slots=True)
class Site:
    """One replica of an engine.

    ``first``: the one whose models are looked at closely. ``address``: the one of several that its name stands for.
    """

    engine: str
    url: str
    settings: Engine
    profile: Profile
    lines: Lines
    first: bool = True
    address: str = ""

    @property
    def place(self) -> str:
        """Where it is, for people; no two replicas of an engine are at the same place."""
        return f"{self.url} ({self.address})" if self.address else self.url

    @property
    def keyed(self) -> bool:
        """Whether the file has a key for the engine."""
        return bool(self.settings.credentials)

    def at(self, *path: str | int) -> str:
        """The line of one of the engine's keys."""
        return self.lines.at("engines", self.engine, *path)

    @property
    def keep_alive(self) -> float:
        """Seconds that the engine keeps an idle connection, as far as the gateway knows."""
        return self.settings.keep_alive or self.profile.keep_alive

    @property
    def url_path(self) -> Path:
        """Where the replica's address stands."""
        urls = self.settings.urls
        plain = [url.removeprefix("dns+") for url in urls]
        return ("urls", plain.index(self.url)) if self.url in plain else ("urls",)


@dataclass(frozen=True, slots=True)
class Subject:
    """A model on a replica. ``name``: as configured; ``model``: as the engine is said to call it."""

    site: Site
    name: str
    model: str
    settings: Model

    @property
    def profile(self) -> Profile:
        """The engine's."""
        return self.site.profile

    def at(self, *path: str | int) -> str:
        """The line of one of the model's keys."""
        return self.site.lines.at("models", self.name, *path)

    def engine_at(self, *path: str | int) -> str:
        """The line of one of the engine's keys."""
        return self.site.at(*path)

    @property
    def facts(self) -> Facts:
        """What is known when tool calls are concerned."""
        engine = self.site.settings
        found = known_format(self.settings.tools.format, engine.parser, engine.kind, self.model, self.name)
        return Facts(
            engine.kind, Parse(self.settings.tools.parse), found, engine.parser, guided=engine.guided_decoding is True
        )

    @property
    def rule(self) -> ReasoningRule:
        """How the model's reasoning is read."""
        given = self.settings.reasoning
        return ReasoningRule(given.format, given.opened, ReasoningField(given.field))

    def asks(
        self,
        operation: Operation,
        members: Mapping[str, object],
        *,
        tooled: Tooled | None = None,
        how: How = How.WHOLE,
    ) -> Question | None:
        """The request that the gateway would send for a client's; None if it would refuse it."""
        path = self.profile.paths.get(operation)
        if path is None:
            return None
        asked = raw(members) if tooled is None or tooled.members is None else tooled.members
        try:
            prepared = self.profile.prepare(operation, asked, self.settings.unknown_parameters)
        except ParameterRefused:
            return None
        sent = asked if prepared.members is None else prepared.members
        return self.plainly(path.decode(), sent, tokens=_limit(members), how=how)

    def plainly(self, path: str, members: Members, *, tokens: int, how: How = How.WHOLE) -> Question:
        """A request as it stands."""
        body = msgspec.json.encode(members | raw({"model": self.model}))
        return Question(path, body, tokens=tokens, how=how, metrics=self.profile.metrics_path)


def raw(members: Mapping[str, object]) -> dict[str, msgspec.Raw]:
    """Members as the wire has them."""
    return {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in members.items()}


def user(text: str) -> list[dict[str, Any]]:
    """A conversation that begins."""
    return [{"role": "user", "content": text}]


def _limit(members: Mapping[str, object]) -> int:
    given = members.get("max_tokens")
    return given if isinstance(given, int) else 0


GREETING: Final = "Hello"
"""What every chat model has an answer to."""
