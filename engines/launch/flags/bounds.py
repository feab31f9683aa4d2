"""What numbers flags take, beyond being numbers; data. Sources: as the tables of flags."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Bounds:
    """From `least` to `most`; `above` leaves `least` itself out."""

    least: float
    most: float = math.inf
    above: bool = False

    def holds(self, number: float) -> bool:
        """Whether a number is within."""
        return (number > self.least if self.above else number >= self.least) and number <= self.most

    def __str__(self) -> str:
        """In words."""
        if math.isinf(self.most):
            return f"at least {self.least:g}"
        return f"{'above' if self.above else 'from'} {self.least:g} {'and up ' if self.above else ''}to {self.most:g}"


_SHARE: Final = Bounds(0, 1, above=True)
_PORT: Final = Bounds(1, 65535)
_SOME: Final = Bounds(1)
_ANY: Final = Bounds(0)

VLLM: Final[Mapping[str, Bounds]] = MappingProxyType(
    {
        "--gpu-memory-utilization": _SHARE,
        "--port": _PORT,
        "--max-num-seqs": _SOME,
        "--max-num-batched-tokens": _SOME,
        "--max-num-queued-reqs": _SOME,
        "--kv-cache-memory-bytes": _SOME,
        "--tensor-parallel-size": _SOME,
        "--pipeline-parallel-size": _SOME,
        "--data-parallel-size": _SOME,
        "--max-loras": _SOME,
        "--max-cpu-loras": _SOME,
        "--stream-interval": _SOME,
        "--cpu-offload-gb": _ANY,
        "--shutdown-timeout": _ANY,
        "--sse-keep-alive-interval": _ANY,
        "--api-server-count": _ANY,
    }
)
TRTLLM: Final[Mapping[str, Bounds]] = MappingProxyType(
    {
        "--kv_cache_free_gpu_memory_fraction": _SHARE,
        "--port": _PORT,
        "--max_beam_width": _SOME,
        "--max_batch_size": _SOME,
        "--max_num_tokens": _SOME,
        "--max_seq_len": _SOME,
        "--tensor_parallel_size": _SOME,
        "--pipeline_parallel_size": _SOME,
        "--context_parallel_size": _SOME,
        "--moe_expert_parallel_size": _SOME,
        "--gpus_per_node": _SOME,
        "--num_postprocess_workers": _ANY,
    }
)
TRITON: Final[Mapping[str, Bounds]] = MappingProxyType(
    {
        "--openai-port": _PORT,
        "--kserve-http-port": _PORT,
        "--kserve-grpc-port": _PORT,
        "--default-max-tokens": _SOME,
        "--max-tool-call-parse-bytes": _SOME,
        "--http-max-input-size": _SOME,
    }
)
