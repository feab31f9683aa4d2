"""Images, and what containers of each kind need, whatever makes them."""

from dataclasses import dataclass
from typing import Final, assert_never

from engines.launch import triton, trtllm, vllm
from engines.launch.kinds import AnyLaunch, kind_of
from engines.launch.triton import TritonLaunch, TrtllmModel
from engines.launch.trtllm import TrtllmLaunch
from engines.launch.vllm import VllmLaunch
from engines.profile import EngineKind
from engines.registry import profile

GIB: Final = 2**30
START: Final = 30 * 60
"""Seconds that weights may take to be fetched and loaded before an engine counts as failed."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What the container of an engine needs."""

    image: str
    gpus: int
    entrypoint: int
    """How many of the command's first words take the place of the image's entry point; 0 keeps that."""
    limits: bool
    """Unlimited locked memory and a large stack (NVIDIA's containers ask for both)."""
    health: str | None
    """The path that tells whether it serves; None: that asks for a secret, and the open port has to do."""
    grace: int
    """Seconds from SIGTERM to the end."""
    alive: str | None
    """A path that fails only when a restart helps; None: none does, and the open port has to do."""
    further_ports: tuple[tuple[str, int], ...]
    """Ports beside the one that serves, with names."""


def needs_of(launch: AnyLaunch) -> Needs:
    """What an engine's container needs."""
    kind = kind_of(launch)
    guarded = isinstance(launch, TritonLaunch) and any("health" in rule.apis for rule in launch.restricted)
    health = None if guarded else profile(kind).health.path
    grace = 10 + (launch.shutdown_timeout or 0 if isinstance(launch, VllmLaunch) else 0)
    # Triton's readiness also flaps while any model is unloaded.
    alive = None if kind is EngineKind.TRITON else health
    entrypoint = 2 if kind is EngineKind.VLLM else 0
    limits = kind is not EngineKind.VLLM
    return Needs(_image(launch), launch.gpus, entrypoint, limits, health, grace, alive, _further_ports(launch))


def _further_ports(launch: AnyLaunch) -> tuple[tuple[str, int], ...]:
    if not isinstance(launch, TritonLaunch) or not launch.kserve:
        return ()
    return ("kserve-http", launch.kserve_http_port or 8000), ("kserve-grpc", launch.kserve_grpc_port or 8001)


def _image(launch: AnyLaunch) -> str:
    if launch.container.image is not None:
        return launch.container.image
    match launch:
        case VllmLaunch():
            return vllm.IMAGES[launch.device]
        case TrtllmLaunch():
            return trtllm.IMAGE
        case TritonLaunch():
            models = launch.models.values()
            trt = launch.backend == "tensorrtllm" or (models and all(isinstance(one, TrtllmModel) for one in models))
            return triton.IMAGE_TRTLLM if trt else triton.IMAGE
    assert_never(launch)
