"""The engine kinds there are: one row each."""

from collections.abc import Mapping
from types import MappingProxyType

from engines import triton, trtllm, vllm
from engines.profile import EngineKind, Profile

PROFILES: Mapping[EngineKind, Profile] = MappingProxyType(
    {
        EngineKind.VLLM: vllm.PROFILE,
        EngineKind.TRTLLM: trtllm.PROFILE,
        EngineKind.TRITON: triton.PROFILE,
    }
)


def profile(kind: EngineKind) -> Profile:
    """Give the profile of an engine kind."""
    return PROFILES[kind]
