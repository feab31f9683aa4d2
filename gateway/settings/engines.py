"""The engines section: where models run."""

from collections.abc import Mapping

from pydantic import Field

from engines.profile import EngineKind
from gateway.settings.launching import Launch
from gateway.settings.section import Section
from gateway.settings.values import (
    EngineUrls,
    HostPort,
    KeyHeader,
    ParserName,
    PathText,
    PositiveDuration,
    PositiveNumber,
    Secret,
    ServerUrl,
)


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


class Health(Section):
    """How an engine's endpoints are checked while nobody asks."""

    interval: PositiveDuration = Field(default=5.0, description="seconds between two checks")
    path: PathText | None = Field(
        default=None, description="path to ask; default: the engine kind's own", examples=["/health"]
    )
    warm_up: bool = Field(
        default=False,
        description="a replica that starts or comes back is given traffic only after it has answered one small request",
        examples=["true"],
    )


class KServe(Section):
    """Where a Triton shows its model repository: one of the two."""

    http: ServerUrl | None = Field(
        default=None, description="base address of KServe over HTTP", examples=["http://127.0.0.1:8000"]
    )
    grpc: HostPort | None = Field(default=None, description="address of KServe over gRPC", examples=["127.0.0.1:8001"])


class Engine(Section):
    """A named group of replicas of one inference server."""

    kind: EngineKind = Field(description="which software it is")
    urls: EngineUrls = Field(description="base addresses, one per replica", examples=["[http://127.0.0.1:8000]"])
    api_key: Secret | None = Field(
        default=None, description="sent to the engine as a bearer token", examples=["${ENGINE_KEY}"]
    )
    api_key_header: KeyHeader | None = Field(
        default=None,
        description="header that carries the key as it is, for engines that take no bearer token (Triton's "
        "--openai-restricted-api)",
        examples=["triton-key"],
    )
    max_in_flight: PositiveNumber | None = Field(
        default=None, description="requests at once per replica; default: unlimited", examples=["256"]
    )
    max_batch: PositiveNumber | None = Field(
        default=None,
        description="vllm only: inputs of an embeddings request; longer lists are split; default: unlimited",
        examples=["256"],
    )
    embeddings: bool = Field(default=False, description="the engine also serves embeddings", examples=["false"])
    parser: ParserName | None = Field(
        default=None,
        description="the tool parser that it was started with, or none; default: found out",
        examples=["hermes", "none"],
    )
    guided_decoding: bool | None = Field(
        default=None,
        description="trtllm only: it was started with a guided decoding backend. true: tool calls can be forced. "
        "false: formats for the answer are refused. default: not known, so they are passed on",
        examples=["true"],
    )
    priorities: bool | None = Field(
        default=None,
        description="vllm only: it was started with --scheduling-policy priority, and gets the priority of the "
        "request's key; default: as `launch` says, else no",
        examples=["true"],
    )
    keep_alive: PositiveDuration | None = Field(
        default=None,
        description="seconds after which the engine closes an idle connection; default: 5, as every kind does unless "
        "it is told otherwise",
        examples=["5s"],
    )
    kserve: KServe | None = Field(
        default=None,
        description="triton only: where its models are loaded, unloaded and asked for readiness (the extra `triton`)",
        examples=["{http: http://127.0.0.1:8000}", "{grpc: 127.0.0.1:8001}"],
    )
    timeouts: Timeouts = Timeouts()
    health: Health = Health()
    launch: Launch = Field(
        default=None,
        description="how the engine is started: `turnout engines command NAME`, compose, kubernetes, run; the keys are "
        "those of its kind (docs/launch.md)",
        examples=["{model: Qwen/Qwen3-8B, max_model_len: 8K, tool_parser: hermes}"],
    )

    @property
    def ranks(self) -> bool:
        """Whether the engine is told the priority of a request's key."""
        if self.priorities is not None:
            return self.priorities and self.kind is EngineKind.VLLM
        return self.kind is EngineKind.VLLM and getattr(self.launch, "scheduling_policy", None) == "priority"

    @property
    def credentials(self) -> Mapping[str, str]:
        """The header that lets the gateway in; nothing without a key."""
        key = self.api_key.get_secret_value() if self.api_key is not None else ""
        if not key:
            return {}
        return {"authorization": f"Bearer {key}"} if self.api_key_header is None else {self.api_key_header: key}
