"""The launches of each engine kind: one row each."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias, assert_never

from engines.launch import triton, trtllm, vllm
from engines.launch.command import Command
from engines.launch.flags import triton as triton_flags
from engines.launch.flags import trtllm as trtllm_flags
from engines.launch.flags import vllm as vllm_flags
from engines.launch.flags.table import FlagTable
from engines.launch.triton import TritonLaunch
from engines.launch.trtllm import TrtllmLaunch
from engines.launch.vllm import VllmLaunch
from engines.profile import EngineKind

AnyLaunch: TypeAlias = VllmLaunch | TrtllmLaunch | TritonLaunch

LAUNCHES: Final[Mapping[EngineKind, type[AnyLaunch]]] = MappingProxyType(
    {EngineKind.VLLM: VllmLaunch, EngineKind.TRTLLM: TrtllmLaunch, EngineKind.TRITON: TritonLaunch}
)
FLAGS: Final[Mapping[EngineKind, FlagTable]] = MappingProxyType(
    {EngineKind.VLLM: vllm_flags.FLAGS, EngineKind.TRTLLM: trtllm_flags.FLAGS, EngineKind.TRITON: triton_flags.FLAGS}
)


def kind_of(launch: AnyLaunch) -> EngineKind:
    """The kind that a launch is for."""
    match launch:
        case VllmLaunch():
            return EngineKind.VLLM
        case TrtllmLaunch():
            return EngineKind.TRTLLM
        case TritonLaunch():
            return EngineKind.TRITON
    assert_never(launch)


def command_of(launch: AnyLaunch, host: str, port: int) -> Command:
    """What starts the engine so that it listens at `host` and `port`."""
    match launch:
        case VllmLaunch():
            return vllm.command(launch, host, port)
        case TrtllmLaunch():
            return trtllm.command(launch, host, port)
        case TritonLaunch():
            return triton.command(launch, host, port)
    assert_never(launch)
