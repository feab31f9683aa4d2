"""How each engine is installed, in its makers' words: what refusals and the setup page say."""

from collections.abc import Mapping
from typing import Final

from engines.profile import EngineKind

INSTALL: Final[Mapping[EngineKind, str]] = {
    EngineKind.VLLM: "uv pip install vllm --torch-backend=auto",
    EngineKind.TRTLLM: "docker pull nvcr.io/nvidia/tensorrt-llm/release:1.2.1",
    EngineKind.TRITON: "docker pull nvcr.io/nvidia/tritonserver:26.09-vllm-python-py3",
}
"""vLLM: in a fresh environment with Python 3.10 to 3.13; takes the torch that fits the CUDA driver. The others: their
containers."""
