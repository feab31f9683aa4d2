"""The settings tree: every key of the configuration file, with its meaning, its unit and its default.

The models only say what a value is. What holds between several keys (names that must exist, names that may be used
once) is in `crosscheck`, because those checks also have to run while other parts of the file are wrong.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from engines.profile import EngineKind, Unknown
from gateway.settings.problems import ConfigErrors, Problem, did_you_mean
from gateway.settings.values import (
    AtLeastOne,
    Duration,
    EngineUrls,
    FormatName,
    HeaderName,
    Name,
    Origin,
    ParserName,
    PathText,
    PositiveDuration,
    PositiveFloat,
    PositiveNumber,
    PositiveSize,
    ReasoningName,
    RefusedValueError,
    Secret,
    Share,
    TcpPort,
    WholeNumber,
    engine_url,
)

Policy = Literal["round_robin", "weighted", "least_requests", "power_of_two", "prefix_affinity", "session_affinity"]
FallbackCause = Literal["overload", "engine_loss", "context_length"]
Task = Literal["chat", "embedding", "rerank"]


class Section(BaseModel):
    """A part of the tree. A key written without a value counts as left out."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, given: object) -> object:
        return without_blanks(given, cls.model_fields)


def without_blanks(given: object, known: Iterable[str]) -> object:
    """`given` without the known keys that have no value; None (a section without content) becomes an empty mapping."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return given
    return {key: value for key, value in given.items() if value is not None or key not in known}


class Server(Section):
    """The address that clients talk to, and how patient the gateway is with them."""

    host: Name = Field(default="127.0.0.1", description="address to listen on", examples=["0.0.0.0"])
    port: TcpPort = Field(default=8080, description="port to listen on; 0 takes a free one")
    workers: PositiveNumber = Field(
        default=1, description="processes that serve; max_in_flight and the retry budget hold in each one by itself"
    )
    max_body: PositiveSize = Field(default=64 * 2**20, description="largest request body in bytes; 413 above it")
    cors_origins: tuple[Origin, ...] = Field(
        default=(), description="browser origins that may call", examples=["[https://chat.example.org]"]
    )
    drain: Duration = Field(default=30.0, description="seconds that streams may take to finish on shutdown")
    write_timeout: PositiveDuration = Field(
        default=60.0, description="seconds after which a client that stops reading is cut"
    )
    keep_alive: PositiveDuration = Field(default=75.0, description="seconds that an idle client connection stays open")
    heartbeat: PositiveDuration | None = Field(
        default=None,
        description="seconds between signs of life in a stream whose first token is awaited; default: none, so that an "
        "error before the first token still has its own status",
        examples=["15s"],
    )
    access_log: bool = Field(default=False, description="one log line per request", examples=["true"])


class Timeouts(Section):
    """How long an engine may take, in seconds, phase by phase."""

    connect: PositiveDuration = Field(default=2.0, description="until the connection is there")
    first_token: PositiveDuration = Field(
        default=60.0,
        description="from the request to the first bytes of the answer; the default is for streams only, a limit that "
        "is written down also holds for answers that come in one piece",
    )
    idle: PositiveDuration = Field(default=60.0, description="between two pieces of an answer")
    total: PositiveDuration = Field(default=900.0, description="from the request to the end of the answer")


class ModelTimeouts(Section):
    """What a model needs other than its engines' timeouts say, in seconds."""

    first_token: PositiveDuration | None = Field(default=None, description="see engines.*.timeouts", examples=["5m"])
    idle: PositiveDuration | None = Field(default=None, description="see engines.*.timeouts", examples=["2m"])
    total: PositiveDuration | None = Field(default=None, description="see engines.*.timeouts", examples=["1h"])


class Health(Section):
    """How an engine's endpoints are checked while nobody asks."""

    interval: PositiveDuration = Field(default=5.0, description="seconds between two checks")
    path: PathText | None = Field(
        default=None, description="path to ask; default: the engine kind's own", examples=["/health"]
    )


class Engine(Section):
    """A named group of replicas of one inference server."""

    kind: EngineKind = Field(description="which software it is")
    urls: EngineUrls = Field(description="base addresses, one per replica", examples=["[http://127.0.0.1:8000]"])
    api_key: Secret | None = Field(
        default=None, description="sent to the engine as a bearer token", examples=["${ENGINE_KEY}"]
    )
    max_in_flight: PositiveNumber | None = Field(
        default=None, description="requests at once per replica; default: unlimited"
    )
    embeddings: bool = Field(default=False, description="the engine also serves embeddings", examples=["false"])
    parser: ParserName | None = Field(
        default=None,
        description="the tool parser that it was started with, or none; default: found out",
        examples=["hermes", "none"],
    )
    guided_decoding: bool = Field(
        default=False,
        description="trtllm only: it was started with a guided decoding backend, so that tool calls can be forced",
        examples=["false"],
    )
    timeouts: Timeouts = Timeouts()
    health: Health = Health()


class Target(Section):
    """One of several engines that serve a model."""

    engine: Name = Field(description="name of an engine", examples=["qwen"])
    model: Name | None = Field(default=None, description="the engine's name for the model", examples=["llama"])
    weight: PositiveFloat = Field(default=1.0, description="share of the requests, relative to the other targets")


class Reasoning(Section):
    """How clients get what a model thought before it answered."""

    format: ReasoningName = Field(
        default="auto",
        description="how it is fenced in the text: a reasoning parser's name, or off; auto: as the model's format has "
        "it, and a leading <think> block",
        examples=["deepseek_r1"],
    )
    opened: bool = Field(
        default=False,
        description="the chat template already opens the block, so that only its end is in the text",
        examples=["false"],
    )
    field: Literal["reasoning", "reasoning_content", "both"] = Field(
        default="both", description="the member of messages and deltas that holds it"
    )


class Tools(Section):
    """How the model writes tool calls, and who reads them."""

    format: FormatName = Field(
        default="auto",
        description="a format of docs/tool-calls.md, or any engine's name for it; auto: by the engine's parser, or by "
        "the model's name",
        examples=["hermes"],
    )
    parse: Literal["auto", "engine", "gateway", "off"] = Field(
        default="auto",
        description="gateway: out of the raw text; engine: its own parser, put right; auto: whichever gives the truth",
    )


class Affinity(Section):
    """What keeps requests together under an affinity policy."""

    by: tuple[Literal["header", "prompt_cache_key", "user"], ...] = Field(
        default=("header", "prompt_cache_key", "user"),
        description="session_affinity: where the key is looked for; the first that a request has counts",
        examples=["[header, user]"],
    )
    header: HeaderName = Field(default="x-session-id", description="session_affinity: the name of the header")
    factor: AtLeastOne = Field(
        default=1.25, description="prefix_affinity: most load of a replica, as a multiple of the mean; at least 1"
    )


class Model(Section):
    """A name that applications ask for."""

    engine: Name | None = Field(default=None, description="name of the engine that serves it", examples=["qwen"])
    model: Name | None = Field(default=None, description="the engine's name for it; default: the same name")
    targets: tuple[Target, ...] = Field(
        default=(), description="several engines instead of one", examples=["[{engine: qwen, weight: 3}]"]
    )
    aliases: tuple[Name, ...] = Field(default=(), description="further names for it", examples=["[gpt-4o-mini]"])
    policy: Policy = Field(default="least_requests", description="which replica is next")
    affinity: Affinity = Affinity()
    max_in_flight: PositiveNumber | None = Field(
        default=None, description="requests at once over all replicas; default: unlimited"
    )
    timeouts: ModelTimeouts = ModelTimeouts()
    fallbacks: tuple[Name, ...] = Field(
        default=(), description="models that stand in, the first that can", examples=["[small-model]"]
    )
    fallback_on: tuple[FallbackCause, ...] = Field(
        default=("overload", "engine_loss"), description="what a fallback model stands in for"
    )
    task: Task = Field(default="chat", description="what the model does")
    tools: Tools = Tools()
    reasoning: Reasoning = Reasoning()
    extras: Literal["keep", "strip"] = Field(
        default="keep", description="members and nulls in answers that OpenAI's do not have"
    )
    unknown_parameters: Unknown = Field(
        default=Unknown.DROP, description="what happens to parameters that no profile knows"
    )
    token_inputs: Literal["reject", "pass"] = Field(default="reject", description="embedding inputs given as token ids")

    def targets_of(self, name: str) -> tuple[Target, ...]:
        """Every engine that serves this model, which is configured under `name`; each target's `model` is filled in."""
        fallback = self.model or name
        if self.engine is not None:
            return (Target(engine=self.engine, model=fallback),)
        return tuple(target.model_copy(update={"model": target.model or fallback}) for target in self.targets)


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


class Settings(BaseSettings):
    """The whole configuration; immutable.

    Building one in code reads nothing but its arguments: files and environment variables come in through `load`.
    Without models, the gateway serves every model that the engines list.
    """

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, env_prefix="TURNOUT_")

    server: Server = Server()
    engines: dict[str, Engine] = Field(
        default={}, description="where models run", examples=["{qwen: {kind: vllm, urls: […]}}"]
    )
    models: dict[str, Model] = Field(
        default={}, description="what applications ask for", examples=["{chat: {engine: qwen}}"]
    )
    retry: Retry = Retry()
    admission: Admission = Admission()
    admin: Admin = Admin()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only the arguments count."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, given: object) -> object:
        return without_blanks(given, cls.model_fields)

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
