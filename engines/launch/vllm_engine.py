"""The settings of vLLM's engine itself, which `vllm serve` and Triton's vLLM backend share.

Sources: `vllm serve --help=all` of 0.32.0, compared with the installed one by a test; environment variables:
`vllm/envs.py` of the same version.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from engines.launch.common import Dtype
from engines.launch.values import Bytes, ContextLength, Count, Fraction, ModelName, Number, Option, Text
from engines.section import Section

HELP: Final = "vllm serve --help=all, 0.32.0"
ENVS: Final = "vllm/envs.py, 0.32.0"


def flag(name: str, default: str, unit: str = "", bounds: str = "") -> Option:
    return Option(f"--{name}", member=name.replace("-", "_"), default=default, unit=unit, bounds=bounds, source=HELP)


class VllmEngine(Section):
    """What one vLLM engine loads, and how much memory it takes."""

    model: ModelName = Field(description="name on Hugging Face, or a folder", examples=["Qwen/Qwen3-8B"])
    dtype: Annotated[Dtype | None, flag("dtype", "auto")] = Field(
        default=None, description="type of the weights in memory", examples=["bfloat16"]
    )
    quantization: Annotated[Text | None, flag("quantization", "what the checkpoint says")] = Field(
        default=None, description="how the weights are quantized", examples=["fp8", "awq"]
    )
    gpu_memory_utilization: Annotated[
        Fraction | None, flag("gpu-memory-utilization", "0.92", "share of a GPU's memory", "0 to 1")
    ] = Field(
        default=None,
        description="what this engine takes of each of its GPUs, weights included; engines on one GPU must share it",
        examples=["0.9"],
    )
    kv_cache_memory_bytes: Annotated[
        Bytes | None, flag("kv-cache-memory-bytes", "what the share leaves", "bytes per GPU", "1 and more")
    ] = Field(
        default=None,
        description="size of the KV cache; the share (gpu_memory_utilization) then counts no more",
        examples=["8GiB"],
    )
    kv_cache_dtype: Annotated[Text | None, flag("kv-cache-dtype", "auto: as the model")] = Field(
        default=None, description="type of the KV cache", examples=["fp8"]
    )
    max_model_len: Annotated[
        ContextLength | None, flag("max-model-len", "the model's own limit", "tokens", "1 and more, or auto")
    ] = Field(
        default=None,
        description="prompt and answer together; auto: as much as fits the memory",
        examples=["8K", "auto"],
    )
    max_num_seqs: Annotated[
        Number | None,
        flag("max-num-seqs", "256; 1024 with 70 GiB of GPU memory and more; 128 on CPUs", "requests", "1 and more"),
    ] = Field(default=None, description="requests that are computed at once; more wait inside", examples=["256"])
    max_num_batched_tokens: Annotated[
        Count | None,
        flag("max-num-batched-tokens", "2048; 8192 from 70 GiB on, 16384 from 160 GiB on", "tokens", "1 and more"),
    ] = Field(default=None, description="tokens that are computed at once", examples=["8K"])
    tensor_parallel_size: Annotated[Number | None, flag("tensor-parallel-size", "1", "GPUs", "1 and more")] = Field(
        default=None, description="GPUs that each layer is split over, on one machine", examples=["2"]
    )
    pipeline_parallel_size: Annotated[
        Number | None, flag("pipeline-parallel-size", "1", "groups of GPUs", "1 and more")
    ] = Field(default=None, description="groups of layers, each on other GPUs; usually one per machine", examples=["2"])
    enforce_eager: Annotated[bool | None, flag("enforce-eager", "false")] = Field(
        default=None, description="no CUDA graphs: starts fastest, answers slower", examples=["true"]
    )
    enable_prefix_caching: Annotated[bool | None, flag("enable-prefix-caching", "true for chat models")] = Field(
        default=None, description="keep the KV cache of prompts for others that begin alike", examples=["true"]
    )
    trust_remote_code: Annotated[bool | None, flag("trust-remote-code", "false")] = Field(
        default=None, description="run the code that comes with the model", examples=["true"]
    )
    tokenizer: Annotated[ModelName | None, flag("tokenizer", "the model's")] = Field(
        default=None, description="another tokenizer than the model's own", examples=["Qwen/Qwen3-8B"]
    )
    revision: Annotated[Text | None, flag("revision", "the default branch")] = Field(
        default=None, description="branch, tag or commit of the model", examples=["main"]
    )
    runner: Annotated[Literal["auto", "generate", "pooling", "draft"] | None, flag("runner", "auto")] = Field(
        default=None, description="generate: chat and completions; pooling: embeddings, rerank", examples=["pooling"]
    )
    convert: Annotated[Literal["auto", "embed", "classify", "none"] | None, flag("convert", "auto")] = Field(
        default=None, description="make a chat model give embeddings or classes", examples=["embed"]
    )
    scheduling_policy: Annotated[Literal["fcfs", "priority"] | None, flag("scheduling-policy", "fcfs")] = Field(
        default=None, description="priority: requests carry one, and the lowest goes first", examples=["priority"]
    )
    max_loras: Annotated[Number | None, flag("max-loras", "1", "adapters", "1 and more")] = Field(
        default=None, description="LoRA adapters in one batch", examples=["4"]
    )
    max_lora_rank: Annotated[
        Number | None, flag("max-lora-rank", "16", "", "1, 8, 16, 32, 64, 128, 256, 320 or 512")
    ] = Field(default=None, description="the highest rank among the LoRA adapters", examples=["32"])

    @property
    def gpus(self) -> int:
        """GPUs that the engine needs."""
        return (self.tensor_parallel_size or 1) * (self.pipeline_parallel_size or 1)
