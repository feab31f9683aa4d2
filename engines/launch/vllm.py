"""Launch settings of `vllm serve`, and the command line made of them."""

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue

from engines.launch.command import Command, SecretFile, Word, flag_words, json_text
from engines.launch.common import Launch
from engines.launch.flags.vllm import FLAGS
from engines.launch.flags.vllm_parsers import REASONING_PARSERS, TOOL_PARSERS
from engines.launch.values import Bytes, KeyFile, Number, NumberOrNone, Option, Text, named
from engines.launch.vllm_engine import ENVS, VllmEngine, flag

GIB: Final = 2**30
IMAGES: Final = {"gpu": "vllm/vllm-openai:v0.32.0", "cpu": "vllm/vllm-openai-cpu:v0.32.0"}


def _variable(name: str, default: str, unit: str = "") -> Option:
    return Option(variable=name, default=default, unit=unit, source=ENVS)


class VllmLaunch(Launch, VllmEngine):
    """How a vLLM server is started: `vllm serve`, one model per process."""

    served_names: Annotated[tuple[Text, ...], flag("served-model-name", "the model as it is written")] = Field(
        default=(), description="what clients call the model; the first is used in answers", examples=["[qwen]"]
    )
    api_key_file: Annotated[KeyFile | None, _variable("VLLM_API_KEY", "no key is asked for")] = Field(
        default=None, description="a file with the key that /v1 asks for", examples=["/run/secrets/vllm_key"]
    )
    tool_parser: Annotated[Text | None, flag("tool-call-parser", "tool calls are refused"), named(*TOOL_PARSERS)] = (
        Field(default=None, description="reads tool calls; also allows tool_choice auto", examples=["hermes"])
    )
    reasoning_parser: Annotated[Text | None, flag("reasoning-parser", "none"), named(*REASONING_PARSERS)] = Field(
        default=None, description="keeps a model's thoughts apart from its answer", examples=["qwen3"]
    )
    chat_template: Annotated[Text | None, flag("chat-template", "the model's")] = Field(
        default=None, description="a file with another chat template", examples=["/templates/tools.jinja"]
    )
    chat_template_kwargs: Annotated[dict[Text, JsonValue], flag("default-chat-template-kwargs", "none")] = Field(
        default={}, description="what every chat template gets", examples=["{enable_thinking: false}"]
    )
    exclude_tools_when_none: Annotated[bool | None, flag("exclude-tools-when-tool-choice-none", "false")] = Field(
        default=None, description="tool_choice none also keeps the tools out of the prompt", examples=["true"]
    )
    loras: Annotated[dict[Text, Text], flag("lora-modules", "none")] = Field(
        default={},
        description="LoRA adapters, each a model of its own: name and folder",
        examples=["{sql: /loras/sql}"],
    )
    structured_outputs_backend: Annotated[
        Literal["auto", "xgrammar", "guidance", "outlines", "lm-format-enforcer"] | None,
        flag("structured-outputs-config", "auto"),
    ] = Field(default=None, description="what keeps answers to a JSON schema or a grammar", examples=["xgrammar"])
    generation_config: Annotated[Text | None, flag("generation-config", "auto: the model's")] = Field(
        default=None, description="default sampling values; vllm: none of the model's own", examples=["vllm"]
    )
    enable_prompt_tokens_details: Annotated[bool | None, flag("enable-prompt-tokens-details", "false")] = Field(
        default=None, description="usage tells how many prompt tokens came from the cache", examples=["true"]
    )
    max_num_queued_reqs: Annotated[Number | None, flag("max-num-queued-reqs", "no limit", "requests", "1 and more")] = (
        Field(default=None, description="running and waiting requests; above it 503", examples=["1024"])
    )
    shutdown_timeout: Annotated[NumberOrNone | None, flag("shutdown-timeout", "0: abort", "seconds", "0 and more")] = (
        Field(default=None, description="how long running answers may finish after SIGTERM", examples=["30"])
    )
    sse_keep_alive_interval: Annotated[
        NumberOrNone | None, flag("sse-keep-alive-interval", "0: none", "seconds", "0 and more")
    ] = Field(default=None, description="signs of life in streams that wait", examples=["15"])
    keep_alive: Annotated[Number | None, _variable("VLLM_HTTP_TIMEOUT_KEEP_ALIVE", "5", "seconds")] = Field(
        default=None, description="how long an idle connection stays open", examples=["75"]
    )
    data_parallel_size: Annotated[Number | None, flag("data-parallel-size", "1", "copies", "1 and more")] = Field(
        default=None, description="copies of the engine behind one port, each on GPUs of its own", examples=["2"]
    )
    device: Literal["gpu", "cpu"] = Field(default="gpu", description="what it computes on; cpu needs vLLM's CPU build")
    cpu_kv_cache: Annotated[Bytes | None, _variable("VLLM_CPU_KVCACHE_SPACE", "by the memory's share", "whole GiB")] = (
        Field(default=None, description="cpu only: size of the KV cache", examples=["8GiB"])
    )
    cpu_threads: Annotated[Text | None, _variable("VLLM_CPU_OMP_THREADS_BIND", "auto")] = Field(
        default=None, description="cpu only: the cores of its threads, or auto", examples=["0-7"]
    )

    @property
    def gpus(self) -> int:
        """GPUs that the server needs on its machine."""
        return 0 if self.device == "cpu" else super().gpus * (self.data_parallel_size or 1)


def command(launch: VllmLaunch, host: str, port: int) -> Command:
    """The command line and the environment that start it."""
    words: list[Word] = ["vllm", "serve", launch.model, "--host", host, "--port", str(port)]
    special = {"model", "loras", "structured_outputs_backend", "tool_parser", "chat_template_kwargs", "host"}
    words += flag_words(launch, FLAGS, special)
    words += [*_tools(launch), *_adapters(launch)]
    if launch.structured_outputs_backend is not None:
        words += ["--structured-outputs-config", json_text({"backend": launch.structured_outputs_backend})]
    if launch.chat_template_kwargs:
        words += ["--default-chat-template-kwargs", json_text(launch.chat_template_kwargs)]
    return Command((*words, *launch.extra_args), dict(_environment(launch)))


def _tools(launch: VllmLaunch) -> list[str]:
    if launch.tool_parser is None:
        return []
    return ["--enable-auto-tool-choice", "--tool-call-parser", launch.tool_parser]


def _adapters(launch: VllmLaunch) -> list[str]:
    if not launch.loras:
        return []
    return ["--enable-lora", "--lora-modules", *(f"{name}={path}" for name, path in launch.loras.items())]


def _environment(launch: VllmLaunch) -> Iterator[tuple[str, Word]]:
    if launch.devices:
        yield "CUDA_VISIBLE_DEVICES", ",".join(launch.devices)
    if launch.api_key_file is not None:
        yield "VLLM_API_KEY", SecretFile(launch.api_key_file)
    if launch.keep_alive is not None:
        yield "VLLM_HTTP_TIMEOUT_KEEP_ALIVE", str(launch.keep_alive)
    if launch.device == "cpu" and launch.cpu_kv_cache is not None:
        yield "VLLM_CPU_KVCACHE_SPACE", str(max(1, launch.cpu_kv_cache // GIB))
    if launch.device == "cpu" and launch.cpu_threads is not None:
        yield "VLLM_CPU_OMP_THREADS_BIND", launch.cpu_threads
    yield from launch.environment.items()
