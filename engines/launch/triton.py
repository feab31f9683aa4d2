"""Launch settings of Triton's OpenAI frontend: its command line, and the models of its repository."""

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue, WrapValidator

from engines.launch.command import Command, SecretFile, Word, flag_words
from engines.launch.common import Launch
from engines.launch.flags.triton import FLAGS, TOOL_PARSERS
from engines.launch.trtllm_engine import TrtllmEngine
from engines.launch.values import Bytes, KeyFile, ModelName, Number, Option, Port, Text
from engines.launch.vllm_engine import VllmEngine
from engines.section import Section, UnfitValueError

FRONTEND: Final = "openai_frontend/main.py, 2.73"
IMAGE: Final = "nvcr.io/nvidia/tritonserver:26.09-vllm-python-py3"
IMAGE_TRTLLM: Final = "nvcr.io/nvidia/tritonserver:26.09-trtllm-python-py3"
IN_IMAGE: Final = "/opt/tritonserver/python/openai/openai_frontend/main.py"


def _flag(name: str, default: str, unit: str = "", bounds: str = "") -> Option:
    return Option(f"--{name}", default=default, unit=unit, bounds=bounds, source=FRONTEND)


class VllmModel(VllmEngine):
    """A model of the repository that runs on Triton's vLLM backend."""

    backend: Literal["vllm"] = Field(description="which of Triton's backends runs it")
    loras: dict[Text, Text] = Field(
        default={}, description="LoRA adapters: name and folder", examples=["{sql: /loras/sql}"]
    )
    count: Number = Field(default=1, description="instances; each is an engine with memory of its own")
    arguments: dict[Text, JsonValue] = Field(
        default={}, description="further arguments of vLLM's engine", examples=["{seed: 7}"]
    )


class TrtllmModel(TrtllmEngine):
    """A model of the repository that runs on TensorRT-LLM's LLM-API backend."""

    backend: Literal["tensorrtllm"] = Field(description="which of Triton's backends runs it")
    decoupled: bool = Field(default=True, description="answers may come in pieces")
    arguments: dict[Text, JsonValue] = Field(
        default={}, description="further members of model.yaml", examples=["{cuda_graph_config: {}}"]
    )


def _model(given: object, several: object) -> VllmModel | TrtllmModel:
    del several  # pydantic's own way to choose, which tries both
    if isinstance(given, VllmModel | TrtllmModel):
        return given
    backend = given.get("backend") if isinstance(given, dict) else None
    if backend == "vllm":
        return VllmModel.model_validate(given)
    if backend == "tensorrtllm":
        return TrtllmModel.model_validate(given)
    raise UnfitValueError(
        "expected a model with a backend, vllm or tensorrtllm", "{backend: vllm, model: Qwen/Qwen3-8B}"
    )


RepositoryModel = Annotated[VllmModel | TrtllmModel, WrapValidator(_model)]


class Restriction(Section):
    """Parts of the server that ask for a header with a secret value. A bearer token is not what they look at."""

    apis: tuple[Literal["inference", "model-repository", "metrics", "health"], ...] = Field(
        description="which parts", examples=["[model-repository]"]
    )
    header: Text = Field(description="the header's name", examples=["x-admin-key"])
    value_file: KeyFile = Field(description="a file with its value", examples=["/run/secrets/triton_key"])


class TritonLaunch(Launch):
    """How Triton's OpenAI frontend is started. One tokenizer, parser and template serve all its models."""

    repository: Annotated[Text, _flag("model-repository", "none: it must be given")] = Field(
        description="folder of the model repository", examples=["./models"]
    )
    tokenizer: Annotated[ModelName | None, _flag("tokenizer", "none, and then no chat")] = Field(
        default=None, description="name on Hugging Face, or a folder", examples=["Qwen/Qwen3-8B"]
    )
    backend: Annotated[
        Literal["vllm", "tensorrtllm"] | None, _flag("backend", "what each model's configuration says")
    ] = Field(default=None, description="how requests are put to the models", examples=["vllm"])
    tool_parser: Annotated[Literal["llama3", "mistral"] | None, _flag("tool-call-parser", "tool calls are refused")] = (
        Field(default=None, description="reads tool calls", examples=[TOOL_PARSERS[0]])
    )
    chat_template: Annotated[Text | None, _flag("chat-template", "the tokenizer's")] = Field(
        default=None, description="a file with another chat template", examples=["/templates/tools.jinja"]
    )
    default_max_tokens: Annotated[Number | None, _flag("default-max-tokens", "16", "tokens", "1 and more")] = Field(
        default=None, description="length of answers to requests that do not say one", examples=["1024"]
    )
    max_tool_call_parse_bytes: Annotated[
        Bytes | None, _flag("max-tool-call-parse-bytes", "128 KiB", "bytes", "1 and more")
    ] = Field(default=None, description="tool calls that are longer end the answer", examples=["256KiB"])
    lora_separator: Annotated[Text | None, _flag("lora-separator", "none: adapters cannot be asked for")] = Field(
        default=None, description="stands between a model's name and an adapter's", examples=["_lora_"]
    )
    model_control_mode: Annotated[Literal["none", "explicit"] | None, _flag("model-control-mode", "none: all load")] = (
        Field(default=None, description="explicit: models are loaded and unloaded while it runs", examples=["explicit"])
    )
    load_models: Annotated[tuple[Text, ...], _flag("load-model", "none")] = Field(
        default=(), description="explicit only: what is loaded at the start", examples=["[qwen]"]
    )
    restricted: tuple[Restriction, ...] = Field(
        default=(),
        description="parts that ask for a secret header",
        examples=["[{apis: [model-repository], header: x-admin-key, value_file: /run/secrets/triton_key}]"],
    )
    http_max_input_size: Annotated[Bytes | None, _flag("http-max-input-size", "64 MiB", "bytes", "1 and more")] = Field(
        default=None, description="longest request", examples=["64MiB"]
    )
    kserve: bool = Field(default=False, description="also serve KServe's HTTP and gRPC, with load and unload")
    kserve_http_port: Annotated[Port | None, _flag("kserve-http-port", "8000", "", "1 to 65535")] = Field(
        default=None, description="kserve only", examples=["8000"]
    )
    kserve_grpc_port: Annotated[Port | None, _flag("kserve-grpc-port", "8001", "", "1 to 65535")] = Field(
        default=None, description="kserve only", examples=["8001"]
    )
    models: dict[Text, RepositoryModel] = Field(
        default={},
        description="what `turnout engines repository` makes the repository of",
        examples=["{qwen: {backend: vllm, model: Qwen/Qwen3-8B}}"],
    )
    frontend: Text = Field(default=IN_IMAGE, description="where the frontend's program is")

    @property
    def gpus(self) -> int:
        """GPUs that the server's models need on its machine, if each has its own; at least one."""
        return max((model.gpus for model in self.models.values()), default=1)


def command(launch: TritonLaunch, host: str, port: int) -> Command:
    """The command line and the environment that start it."""
    words: list[Word] = ["python3", launch.frontend, "--host", host, "--openai-port", str(port)]
    words += flag_words(launch, FLAGS, {"load_models", "host"})
    for name in launch.load_models:
        words += ["--load-model", name]
    if launch.kserve:
        words.append("--enable-kserve-frontends")
    for rule in launch.restricted:
        words += ["--openai-restricted-api", ",".join(rule.apis), rule.header, SecretFile(rule.value_file)]
    return Command((*words, *launch.extra_args), dict(_environment(launch)))


def _environment(launch: TritonLaunch) -> Iterator[tuple[str, Word]]:
    if launch.devices:
        yield "CUDA_VISIBLE_DEVICES", ",".join(launch.devices)
    yield from launch.environment.items()
