"""What is known of GPUs, engines and families of models, each with its source. All were looked up by 2026-12-01.

Sources:

- memory: NVIDIA's data sheets, in GiB as the boards are sold. `ecc`: GDDR boards whose error correction takes one
  sixteenth of it; HBM boards have their own cells for that, and 1 % is counted as taken by the driver.
- compute capability: the table of GPUs at developer.nvidia.com/cuda-gpus.
- TensorRT-LLM: the hardware page of its documentation (1.2). vLLM: its GPU installation page (0.32).
- parsers: `vllm serve --help` (0.32), `trtllm-serve --help` (1.2 and 2026), `openai_frontend/main.py` (2.73); which
  model writes which format: the tool calling page of vLLM's documentation.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

GIB: Final = 2**30

VLLM_CAPABILITY: Final = 7.5
"""The lowest compute capability that vLLM supports."""
VLLM_CUDA: Final = "12.9"
"""What vLLM's released binaries are built with."""
FP8_CAPABILITY: Final = 8.9
"""Tensor cores compute FP8 from here on; below it vLLM only keeps weights in FP8."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One model of GPU, with one size of memory."""

    name: str
    gib: int
    capability: float
    trtllm: bool = False
    """It is on TensorRT-LLM's list."""
    ecc: bool = False
    cuda: str = ""
    """The lowest CUDA that knows it, where that is newer than what the engines need anyway."""
    unified: bool = False
    """Its memory is also the machine's."""
    measured: int = 0
    """Bytes of memory that nvidia-smi says, of a GPU that is here."""

    @property
    def memory(self) -> int:
        """Bytes that programs see."""
        if self.measured:
            return self.measured
        return self.gib * GIB * 15 // 16 if self.ecc else self.gib * GIB * 99 // 100

    @property
    def trtllm_fp8(self) -> bool:
        """TensorRT-LLM computes FP8 on it: H100 and later."""
        return self.trtllm and self.capability >= 9.0


GPUS: Final = (
    Gpu("B300", 288, 10.3, trtllm=True, cuda="12.9"),
    Gpu("GB300", 288, 10.3, trtllm=True, cuda="12.9"),
    Gpu("B200", 180, 10.0, trtllm=True, cuda="12.8"),
    Gpu("GB200", 186, 10.0, trtllm=True, cuda="12.8"),
    Gpu("DGX Spark", 128, 12.1, trtllm=True, cuda="12.9", unified=True),
    Gpu("H200", 141, 9.0, trtllm=True),
    Gpu("H100", 80, 9.0, trtllm=True),
    Gpu("H100 NVL", 94, 9.0, trtllm=True),
    Gpu("GH200", 96, 9.0, trtllm=True),
    Gpu("GH200 144GB", 144, 9.0, trtllm=True),
    Gpu("A100", 80, 8.0, trtllm=True),
    Gpu("A100 40GB", 40, 8.0, trtllm=True),
    Gpu("L40S", 48, 8.9, trtllm=True, ecc=True),
    Gpu("L40", 48, 8.9, trtllm=True, ecc=True),
    Gpu("L20", 48, 8.9, trtllm=True, ecc=True),
    Gpu("L4", 24, 8.9, ecc=True),
    Gpu("A40", 48, 8.6, ecc=True),
    Gpu("A30", 24, 8.0),
    Gpu("A10", 24, 8.6, ecc=True),
    Gpu("A10G", 24, 8.6, ecc=True),
    Gpu("T4", 16, 7.5, ecc=True),
    Gpu("V100", 32, 7.0),
    Gpu("V100 16GB", 16, 7.0),
    Gpu("P100", 16, 6.0),
    Gpu("RTX PRO 6000", 96, 12.0, ecc=True, cuda="12.8"),
    Gpu("RTX 6000 Ada", 48, 8.9, ecc=True),
    Gpu("RTX A6000", 48, 8.6, ecc=True),
    Gpu("RTX 5090", 32, 12.0, cuda="12.8"),
    Gpu("RTX 4090", 24, 8.9),
    Gpu("RTX 3090", 24, 8.6),
)

_NOISE: Final = re.compile(r"nvidia|geforce|tesla|graphics|generation|sxm\d?|pcie|hbm\d?e?|ampere|superchip|[-_/,]")
_SIZE: Final = re.compile(r"\b(\d+) ?g(?:i?b)?\b")


def find_gpu(text: str) -> Gpu | None:
    """The GPU that people or nvidia-smi mean by a text such as `h100` or `NVIDIA A100-SXM4-40GB`; None if unknown."""
    plain = " ".join(_NOISE.sub(" ", text.lower()).split())
    size = _SIZE.search(plain)
    stem = " ".join(_SIZE.sub(" ", plain).split())
    stem = {"gb10": "dgx spark", "spark": "dgx spark"}.get(stem, stem)
    alike = [gpu for gpu in GPUS if _stem(gpu.name) == stem]
    if size is None:
        return alike[0] if alike else None
    return next((gpu for gpu in alike if abs(gpu.gib - int(size[1])) <= gpu.gib // 16), None)


def _stem(name: str) -> str:
    return " ".join(_SIZE.sub(" ", name.lower()).split())


@dataclass(frozen=True, slots=True)
class Family:
    """How models of a family write tool calls and thoughts, as the parsers of each kind call it; "": no parser."""

    vllm: str = ""
    trtllm: str = ""
    triton: str = ""
    vllm_reasoning: str = ""
    trtllm_reasoning: str = ""
    attention: str = "full"
    """Where the configuration names a window but not its layers: full, all, even (layers 0, 2, …), sixth (5 of 6)."""
    norms: int = 2
    """Norms of the hidden size in each layer."""
    head_norms: bool = False
    """Queries and keys have norms of their own."""
    tied: bool = False
    """The output layer is the embedding unless the configuration says otherwise."""
    qkv_bias: bool = False


FAMILIES: Final[Mapping[str, Family]] = MappingProxyType(
    {
        "llama": Family(vllm="llama3_json", triton="llama3"),
        "mistral": Family(vllm="mistral", triton="mistral", attention="all"),
        "mixtral": Family(vllm="mistral", triton="mistral", attention="all"),
        "qwen2": Family(vllm="hermes", trtllm="qwen3", qkv_bias=True),
        "qwen2_moe": Family(vllm="hermes", trtllm="qwen3", qkv_bias=True),
        "qwen3": Family(
            vllm="hermes", trtllm="qwen3", vllm_reasoning="qwen3", trtllm_reasoning="qwen3", head_norms=True
        ),
        "qwen3_moe": Family(
            vllm="hermes", trtllm="qwen3", vllm_reasoning="qwen3", trtllm_reasoning="qwen3", head_norms=True
        ),
        "gemma2": Family(attention="even", norms=4, tied=True),
        "gemma3_text": Family(attention="sixth", norms=4, head_norms=True, tied=True),
        "phi3": Family(attention="all"),
        "gpt_oss": Family(vllm="openai", vllm_reasoning="openai_gptoss", attention="even"),
        "deepseek_v3": Family(vllm="deepseek_v3", trtllm="deepseek_v3"),
        "deepseek_v2": Family(),
    }
)
"""By `model_type` of the model's config.json."""

SCATTERED: Final = frozenset(
    {
        "mamba",
        "mamba2",
        "jamba",
        "bamba",
        "zamba",
        "zamba2",
        "falcon_mamba",
        "recurrent_gemma",
        "rwkv",
        "granitemoehybrid",
    }
    | {"qwen3_next", "nemotron_h", "falcon_h1", "lfm2", "minimax", "plamo2"}
)
"""Families with layers that keep a state instead of keys and values: the arithmetic here is not theirs."""
