"""Launch settings of `trtllm-serve`, and the command line and the file of settings made of them."""

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue

from engines.launch.command import Command, SettingsPath, Word, flag_words, members_of, option_of
from engines.launch.common import Launch
from engines.launch.flags.trtllm import EMBEDDINGS, FLAGS, REASONING_PARSERS, TOOL_PARSERS
from engines.launch.trtllm_engine import SERVE, TrtllmEngine, flag, member
from engines.launch.values import NumberOrNone, Option, Text, named

IMAGE: Final = "nvcr.io/nvidia/tensorrt-llm/release:1.2.1"


class TrtllmLaunch(Launch, TrtllmEngine):
    """How TensorRT-LLM's server is started: `trtllm-serve`, one model per process, on loopback by itself."""

    task: Annotated[Literal["chat", "embedding"], Option(source=SERVE, default="chat")] = Field(
        default="chat", description="embedding: started as `trtllm-serve embeddings`, which has no chat"
    )
    tool_parser: Annotated[Text | None, flag("tool_parser", "calls stay in the text"), named(*TOOL_PARSERS)] = Field(
        default=None, description="reads tool calls", examples=["qwen3"]
    )
    reasoning_parser: Annotated[Text | None, flag("reasoning_parser", "none"), named(*REASONING_PARSERS)] = Field(
        default=None, description="keeps a model's thoughts apart from its answer", examples=["qwen3"]
    )
    chat_template: Annotated[Text | None, flag("chat_template", "the model's")] = Field(
        default=None, description="a file with another chat template", examples=["/templates/tools.jinja"]
    )
    served_name: Annotated[Text | None, flag("served_model_name", "the model's name", since="newer than 1.2")] = Field(
        default=None, description="what clients call the model", examples=["qwen"]
    )
    num_postprocess_workers: Annotated[
        NumberOrNone | None, flag("num_postprocess_workers", "0", "processes", "0 and more")
    ] = Field(default=None, description="processes that make text of tokens", examples=["4"])
    return_perf_metrics: Annotated[bool | None, member("return_perf_metrics", "false")] = Field(
        default=None,
        description="serve /prometheus/metrics; /metrics loses what one reader has read",
        examples=["true"],
    )
    settings: dict[Text, JsonValue] = Field(
        default={},
        description="further members of the file of settings (--config); they win over the flags",
        examples=["{cuda_graph_config: {enable_padding: true}}"],
    )
    settings_file: Text | None = Field(
        default=None,
        description="where that file is kept, from the folder of the command or of the compose file; default: "
        "NAME.trtllm.yaml",
        examples=["./config/engines/trtllm.yaml"],
    )


def command(launch: TrtllmLaunch, host: str, port: int) -> Command:
    """The command line, the environment, and the members of the file that --config names."""
    start: list[Word] = ["trtllm-serve", launch.model]
    if launch.task == "embedding":
        start = ["trtllm-serve", "embeddings", launch.model]
    start += ["--host", host, "--port", str(port)]
    without = {"model", "host"}
    if launch.task == "embedding":
        options = ((name, option_of(info)) for name, info in TrtllmLaunch.model_fields.items())
        without |= {name for name, option in options if option is not None and option.flag not in EMBEDDINGS}
    settings = _settings(launch) if launch.task == "chat" else {}
    words = [*start, *flag_words(launch, FLAGS, without)]
    if settings:
        words += ["--config", SettingsPath()]
    return Command((*words, *launch.extra_args), dict(_environment(launch)), settings or None)


def _settings(launch: TrtllmLaunch) -> dict[str, object]:
    with_flags = {
        name
        for name, info in TrtllmLaunch.model_fields.items()
        if (option := option_of(info)) is not None and option.flag
    }
    return {**members_of(launch, with_flags), **launch.settings}


def overridden(launch: TrtllmLaunch) -> Iterator[tuple[str, str]]:
    """Settings that are written twice: as a key of the launch and as a member that wins over it."""
    for name, info in TrtllmLaunch.model_fields.items():
        option = option_of(info)
        if (
            option is not None
            and option.member.partition(".")[0] in launch.settings
            and getattr(launch, name) is not None
        ):
            yield name, option.member


def _environment(launch: TrtllmLaunch) -> Iterator[tuple[str, Word]]:
    if launch.devices:
        yield "CUDA_VISIBLE_DEVICES", ",".join(launch.devices)
    yield from launch.environment.items()
