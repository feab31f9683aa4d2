"""The models section: what applications ask for."""

from typing import Literal

from pydantic import Field

from engines.profile import Unknown
from gateway.settings.keys import LimitSet
from gateway.settings.section import Section
from gateway.settings.values import (
    AtLeastOne,
    FormatName,
    HeaderName,
    Name,
    PositiveDuration,
    PositiveFloat,
    PositiveNumber,
    ReasoningName,
)

Policy = Literal["round_robin", "weighted", "least_requests", "power_of_two", "prefix_affinity", "session_affinity"]
FallbackCause = Literal["overload", "engine_loss", "context_length"]
Task = Literal["chat", "embedding", "rerank"]


class ModelTimeouts(Section):
    """What a model needs other than its engines' timeouts say, in seconds."""

    first_token: PositiveDuration | None = Field(default=None, description="see engines.*.timeouts", examples=["5m"])
    idle: PositiveDuration | None = Field(default=None, description="see engines.*.timeouts", examples=["2m"])
    total: PositiveDuration | None = Field(default=None, description="see engines.*.timeouts", examples=["1h"])


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
    model: Name | None = Field(
        default=None, description="the engine's name for it; default: the same name", examples=["Qwen/Qwen3-8B"]
    )
    targets: tuple[Target, ...] = Field(
        default=(), description="several engines instead of one", examples=["[{engine: qwen, weight: 3}]"]
    )
    aliases: tuple[Name, ...] = Field(default=(), description="further names for it", examples=["[gpt-4o-mini]"])
    policy: Policy = Field(default="least_requests", description="which replica is next")
    affinity: Affinity = Affinity()
    max_in_flight: PositiveNumber | None = Field(
        default=None, description="requests at once over all replicas; default: unlimited", examples=["512"]
    )
    limits: LimitSet = LimitSet()
    timeouts: ModelTimeouts = ModelTimeouts()
    fallbacks: tuple[Name, ...] = Field(
        default=(), description="models that stand in, the first that can", examples=["[small-model]"]
    )
    fallback_on: tuple[FallbackCause, ...] = Field(
        default=("overload", "engine_loss"), description="what a fallback model stands in for"
    )
    hedge: Literal["p95"] | None = Field(
        default=None,
        description="p95: a stream whose first token takes longer than that of 95% of the recent ones is asked for at "
        "another replica too, and the first that answers is taken; counts against retry.budget; default: never",
        examples=["p95"],
    )
    task: Task = Field(default="chat", description="what the model does")
    context: PositiveNumber | None = Field(
        default=None,
        description="tokens that applications count on, prompt and answer; turnout doctor compares it with the engine",
        examples=["32768"],
    )
    tools: Tools = Tools()
    reasoning: Reasoning = Reasoning()
    extras: Literal["keep", "strip"] = Field(
        default="keep", description="members and nulls in answers that OpenAI's do not have"
    )
    unknown_parameters: Unknown = Field(
        default=Unknown.DROP, description="what happens to parameters that no profile knows"
    )
    token_inputs: Literal["reject", "pass"] = Field(default="reject", description="embedding inputs given as token ids")
    log_prompts: bool = Field(
        default=False,
        description="where logs.requests writes a line for a request, its prompt is in it, cut after 2000 characters",
        examples=["false"],
    )

    def targets_of(self, name: str) -> tuple[Target, ...]:
        """Every engine that serves this model, which is configured under `name`; each target's `model` is filled in."""
        fallback = self.model or name
        if self.engine is not None:
            return (Target(engine=self.engine, model=fallback),)
        return tuple(target.model_copy(update={"model": target.model or fallback}) for target in self.targets)
