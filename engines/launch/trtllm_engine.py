"""The settings of TensorRT-LLM's engine itself, which `trtllm-serve` and Triton's LLM-API backend share.

Checkpoints of Hugging Face load directly: PyTorch is the only execution backend since 2026. Sources:
`tensorrt_llm/commands/serve.py` and `llmapi/llm_args.py`, 1.2; not tried on a GPU.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from engines.launch.values import Bytes, Count, Fraction, ModelName, Number, Option, Text
from engines.section import Section

SERVE: Final = "tensorrt_llm/commands/serve.py, 1.2"
LLM_ARGS: Final = "tensorrt_llm/llmapi/llm_args.py, 1.2"


def flag(name: str, default: str, unit: str = "", bounds: str = "", *, member: str = "", since: str = "") -> Option:
    """A setting with a flag, and a member of the same name unless another is given."""
    return Option(
        f"--{name}", member=member or name, default=default, unit=unit, bounds=bounds, source=SERVE, since=since
    )


def member(name: str, default: str, unit: str = "", bounds: str = "") -> Option:
    """A setting without a flag."""
    return Option(member=name, default=default, unit=unit, bounds=bounds, source=LLM_ARGS)


class TrtllmEngine(Section):
    """What one TensorRT-LLM engine loads, and how much memory it takes."""

    model: ModelName = Field(description="name on Hugging Face, or a folder", examples=["Qwen/Qwen3-8B"])
    tokenizer: Annotated[ModelName | None, flag("tokenizer", "the model's")] = Field(
        default=None, description="another tokenizer than the model's own", examples=["Qwen/Qwen3-8B"]
    )
    tensor_parallel_size: Annotated[Number | None, flag("tensor_parallel_size", "1", "GPUs", "1 and more")] = Field(
        default=None, description="GPUs that each layer is split over", examples=["2"]
    )
    pipeline_parallel_size: Annotated[
        Number | None, flag("pipeline_parallel_size", "1", "groups of GPUs", "1 and more")
    ] = Field(default=None, description="groups of layers, each on other GPUs", examples=["2"])
    moe_expert_parallel_size: Annotated[
        Number | None, flag("moe_expert_parallel_size", "chosen by itself", "GPUs", "1 and more")
    ] = Field(
        default=None,
        description="GPUs that the experts are split over; within the tensor parallel ones",
        examples=["2"],
    )
    max_batch_size: Annotated[Number | None, flag("max_batch_size", "2048", "requests", "1 and more")] = Field(
        default=None, description="requests that are computed at once", examples=["256"]
    )
    max_num_tokens: Annotated[Count | None, flag("max_num_tokens", "8192", "tokens", "1 and more")] = Field(
        default=None, description="tokens that are computed at once", examples=["8K"]
    )
    max_seq_len: Annotated[Count | None, flag("max_seq_len", "the model's own limit", "tokens", "1 and more")] = Field(
        default=None, description="prompt and answer together", examples=["8K"]
    )
    kv_cache_free_gpu_memory_fraction: Annotated[
        Fraction | None,
        flag(
            "kv_cache_free_gpu_memory_fraction",
            "0.9",
            "share of the memory that is free once the weights are loaded",
            "0 to 1",
            member="kv_cache_config.free_gpu_memory_fraction",
        ),
    ] = Field(default=None, description="size of the KV cache", examples=["0.85"])
    kv_cache_dtype: Annotated[
        Literal["auto", "fp8", "nvfp4"] | None,
        flag("kv_cache_dtype", "auto", member="kv_cache_config.dtype", since="newer than 1.2"),
    ] = Field(default=None, description="type of the KV cache", examples=["fp8"])
    enable_block_reuse: Annotated[bool | None, member("kv_cache_config.enable_block_reuse", "true")] = Field(
        default=None, description="keep the KV cache of prompts for others that begin alike", examples=["true"]
    )
    host_cache_size: Annotated[Bytes | None, member("kv_cache_config.host_cache_size", "none", "bytes")] = Field(
        default=None, description="further KV cache in the machine's memory", examples=["16GiB"]
    )
    enable_chunked_prefill: Annotated[bool | None, flag("enable_chunked_prefill", "false")] = Field(
        default=None, description="long prompts are computed in pieces", examples=["true"]
    )
    guided_decoding_backend: Annotated[
        Literal["xgrammar", "llguidance"] | None, member("guided_decoding_backend", "none: formats are not enforced")
    ] = Field(default=None, description="keeps answers to a JSON schema; named tools need it", examples=["xgrammar"])
    trust_remote_code: Annotated[bool | None, flag("trust_remote_code", "false")] = Field(
        default=None, description="run the code that comes with the model", examples=["true"]
    )
    revision: Annotated[Text | None, flag("revision", "the default branch")] = Field(
        default=None, description="branch, tag or commit of the model", examples=["main"]
    )

    @property
    def gpus(self) -> int:
        """GPUs that the engine needs."""
        return (self.tensor_parallel_size or 1) * (self.pipeline_parallel_size or 1)
