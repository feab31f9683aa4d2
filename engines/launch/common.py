"""What every launch has, whatever the engine: where it listens, on which GPUs, and how its container is made."""

from typing import Annotated, Literal

from pydantic import Field

from engines.launch.values import (
    Bytes,
    Device,
    Host,
    Mount,
    Option,
    Port,
    Text,
    VariableName,
    Word,
)
from engines.section import Section

CUDA: str = "CUDA C++ Programming Guide, CUDA environment variables"


class Container(Section):
    """How the engine's container is made; `run` and `command` do not look at it."""

    image: Text | None = Field(
        default=None,
        description="the image; default: the engine's own, in the version that these settings are for",
        examples=["vllm/vllm-openai:v0.32.0"],
    )
    weights: Text = Field(
        default="models",
        description="a volume's name, a folder (with a slash in it), or a claim in Kubernetes; downloaded weights are "
        "kept there, at /models",
    )
    weights_size: Bytes = Field(default=100 * 2**30, description="Kubernetes only: size of the claim for the weights")
    volumes: tuple[Mount, ...] = Field(
        default=(),
        description="further mounts, SOURCE:/TARGET or SOURCE:/TARGET:ro",
        examples=["[./templates:/templates:ro]"],
    )
    shared_memory: Bytes | None = Field(
        default=None,
        description="size of /dev/shm; default: the host's in compose with GPUs, else 4 GiB, and 16 GiB in Kubernetes",
        examples=["8GiB"],
    )
    profiles: tuple[Text, ...] = Field(
        default=(), description="compose only starts it when one of these is asked for", examples=["[gpu]"]
    )


class Launch(Section):
    """What all kinds have."""

    host: Annotated[Host | None, Option("--host")] = Field(
        default=None,
        description="address to listen at; default: 127.0.0.1 where the engine's URL names this machine, else 0.0.0.0; "
        "containers always listen at 0.0.0.0",
        examples=["0.0.0.0"],
    )
    port: Annotated[Port | None, Option(bounds="1 to 65535")] = Field(
        default=None, description="port to listen at; default: that of the engine's first URL", examples=["8000"]
    )
    devices: Annotated[tuple[Device, ...], Option(variable="CUDA_VISIBLE_DEVICES", default="all", source=CUDA)] = Field(
        default=(),
        description="the GPUs it may use, by number or UUID; Kubernetes chooses by itself",
        examples=["[0]"],
    )
    environment: dict[VariableName, Word] = Field(
        default={}, description="further environment variables", examples=["{NCCL_DEBUG: WARN}"]
    )
    extra_args: tuple[Word, ...] = Field(
        default=(),
        description="passed on as they are, at the end, and checked against the flags that the engine knows",
        examples=['["--seed", 7]'],
    )
    container: Container = Container()


Dtype = Literal["auto", "half", "float16", "bfloat16", "float", "float32"]
