"""How much of a GPU's memory launches claim, where their settings say so."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, assert_never

from engines.launch.kinds import AnyLaunch
from engines.launch.triton import TritonLaunch, VllmModel
from engines.launch.trtllm import TrtllmLaunch
from engines.launch.vllm import VllmLaunch

VLLM_SHARE: Final = 0.92
"""What vLLM takes of a GPU's memory unless it is told otherwise (0.32)."""

TRTLLM_SHARE: Final = 0.9
"""What TensorRT-LLM takes of the memory that is free once the weights are loaded, unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The share of a GPU's memory that an engine takes, and the key of its launch settings that says so.

    `of_rest`: a share of what is free once the weights are loaded, so that whoever starts first takes most.
    """

    key: tuple[str, ...]
    share: float
    of_rest: bool = False


def claims(launch: AnyLaunch) -> Iterator[Claim]:
    """What a launch claims of each of its GPUs. One that says its size in bytes claims nothing that is known here."""
    match launch:
        case VllmLaunch(device="cpu"):
            return
        case VllmLaunch():
            if launch.kv_cache_memory_bytes is None:
                yield Claim(("gpu_memory_utilization",), launch.gpu_memory_utilization or VLLM_SHARE)
        case TrtllmLaunch():
            share = launch.kv_cache_free_gpu_memory_fraction or TRTLLM_SHARE
            yield Claim(("kv_cache_free_gpu_memory_fraction",), share, of_rest=True)
        case TritonLaunch():
            for name, model in launch.models.items():
                if not isinstance(model, VllmModel):
                    share = model.kv_cache_free_gpu_memory_fraction or TRTLLM_SHARE
                    yield Claim(("models", name, "kv_cache_free_gpu_memory_fraction"), share, of_rest=True)
                elif model.kv_cache_memory_bytes is None:
                    share = (model.gpu_memory_utilization or VLLM_SHARE) * model.count
                    yield Claim(("models", name, "gpu_memory_utilization"), share)
        case _:
            assert_never(launch)
