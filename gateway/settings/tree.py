"""The settings tree: every key of the configuration file, with its meaning, its unit and its default.

The models only say what a value is. What holds between several keys (names that must exist, names that may be used
once) is in `crosscheck`, because those checks also have to run while other parts of the file are wrong.
"""

from collections.abc import Iterable
from typing import Literal, Self

from pydantic import Field

from engines.profile import EngineKind
from gateway.settings.engines import Engine
from gateway.settings.keys import Key, Limits, State
from gateway.settings.logs import Logs
from gateway.settings.models import Model
from gateway.settings.problems import ConfigErrors, Problem, did_you_mean
from gateway.settings.section import Section
from gateway.settings.server import Server
from gateway.settings.values import (
    Name,
    PositiveDuration,
    PositiveNumber,
    RefusedValueError,
    Secret,
    Share,
    WholeNumber,
    engine_url,
)


class Retry(Section):
    """When a request is tried again elsewhere, before the client has seen a byte of an answer."""

    attempts: PositiveNumber = Field(default=3, description="tries per request, the first included")
    budget: Share = Field(default=0.2, description="retries as a share of recent requests", examples=["20%"])
    on_timeout: bool = Field(
        default=False, description="also try again when the first token is late", examples=["false"]
    )


class Admission(Section):
    """Who waits when everything that may serve a model is at its limit."""

    queue: WholeNumber = Field(default=512, description="requests that may wait, per model; 0: none")
    wait: PositiveDuration = Field(default=10.0, description="seconds that a request waits at most")


class Admin(Section):
    """Who may look at the inside and change it."""

    token: Secret | None = Field(
        default=None,
        description="asked for at /admin; default: none, and only this machine is let in",
        examples=["${TURNOUT_ADMIN_TOKEN}"],
    )


class Settings(Section):
    """The whole configuration; immutable.

    Building one in code reads nothing but its arguments: files and environment variables come in through `load`.
    Without models, the gateway serves every model that the engines list.
    """

    server: Server = Server()
    engines: dict[str, Engine] = Field(
        default={}, description="where models run", examples=["{qwen: {kind: vllm, urls: […]}}"]
    )
    models: dict[str, Model] = Field(
        default={}, description="what applications ask for", examples=["{chat: {engine: qwen}}"]
    )
    retry: Retry = Retry()
    admission: Admission = Admission()
    keys: tuple[Key, ...] = Field(
        default=(), description="who may call; default: everybody", examples=['[{name: team-a, hash: "sha256:…"}]']
    )
    keys_file: Name | None = Field(
        default=None, description="a file with more keys, a list like `keys`", examples=["keys.yaml"]
    )
    limits: Limits = Limits()
    state: State = State()
    logs: Logs = Logs()
    admin: Admin = Admin()

    @property
    def asks_for_keys(self) -> bool:
        """Whether callers have to show a key. An empty list of keys lets nobody in."""
        return bool({"keys", "keys_file"} & self.model_fields_set)

    @property
    def logged_requests(self) -> Literal["off", "errors", "all"] | float:
        """Which requests have a line in the log; `server.access_log` is the short way to say all."""
        said = "requests" in self.logs.model_fields_set
        return "all" if self.server.access_log and not said else self.logs.requests

    @property
    def discovers_models(self) -> bool:
        """No model is configured: the engines are asked which ones they have."""
        return not self.models

    @classmethod
    def from_engines(cls, engines: Iterable[tuple[str, str]], server: Server | None = None) -> Self:
        """Settings for engines given as (kind, url) on a command line; their models are discovered later.

        Each URL is an engine of its own, named `vllm`, `vllm-2`, …: two servers may have different models.

        Raises:
            ConfigErrors: every unknown kind and malformed URL.
        """
        found: dict[str, Engine] = {}
        problems: list[Problem] = []
        for kind, url in engines:
            same = sum(engine.kind == kind for engine in found.values())
            try:
                found[f"{kind}-{same + 1}" if same else kind] = _engine(kind, url)
            except RefusedValueError as error:
                problems.append(Problem(str(error), suggestion=error.fix, variable=f"--engine {kind}=…"))
        if problems:
            raise ConfigErrors(problems)
        return cls(engines=found, server=server or Server())


def _engine(kind: str, url: str) -> Engine:
    kinds = [known.value for known in EngineKind]
    if kind not in kinds:
        raise RefusedValueError(f"expected one of {', '.join(kinds)}", did_you_mean(kind, kinds))
    return Engine(kind=EngineKind(kind), urls=(engine_url(url),))
