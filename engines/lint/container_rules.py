"""What a container around an engine must have."""

from collections.abc import Iterator, Mapping
from typing import Final, assert_never

from engines.lint.finding import At, Finding
from engines.lint.start import Container, Start
from engines.profile import EngineKind

_LEAST_SHARED: Final = 2**30
_HEALTH: Final[Mapping[EngineKind, tuple[str, ...]]] = {
    EngineKind.VLLM: ("/health", "/ping", "/v1/models", "/version", "/metrics", "/load"),
    EngineKind.TRTLLM: ("/health", "/health_generate", "/v1/models", "/version"),
    EngineKind.TRITON: ("/health/ready", "/v1/models", "/metrics"),
}
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def rules(start: Start) -> Iterator[Finding]:
    """The faults of the container around a start."""
    container = start.container
    if container is None:
        return
    yield from _listening(start, container)
    yield from _gpus(start, container)
    yield from _memory(start, container)
    yield from _health(start, container)


def _health(start: Start, container: Container) -> Iterator[Finding]:
    if container.health is None or start.port is None:
        return
    port, path = container.health
    at, known = At(start.file, container.line("health", start.line)), _HEALTH[start.kind]
    kserve = start.kind is EngineKind.TRITON and start.has("--enable-kserve-frontends")
    if port != start.port and not kserve:
        message = f"the health check asks port {port}, and the engine listens at {start.port}"
        yield at.error("health-port", message, f"port {start.port}")
    elif port == start.port and path not in known:
        message = f"the health check asks for {path}, which this engine does not have"
        yield at.error("health-path", message, known[0])


def _listening(start: Start, container: Container) -> Iterator[Finding]:
    host = start.text("--host")
    if host is None and start.kind is EngineKind.TRTLLM:
        message = "trtllm-serve listens at localhost by itself: nobody outside of the container reaches it"
        yield start.at().error("loopback-in-container", message, "--host 0.0.0.0")
    elif host in _LOOPBACK and not container.host_network:
        message = f"it listens at {host}: nobody outside of the container reaches it"
        yield start.at("--host").error("loopback-in-container", message, "--host 0.0.0.0")
    own = {port for _, port in container.ports}
    if own and start.port is not None and start.port not in own and not container.host_network:
        at = At(start.file, container.line("ports", start.line))
        told = ", ".join(map(str, sorted(own)))
        message = f"port {told} is published, and the engine listens at {start.port}"
        yield at.error("port-not-served", message, f"publish {start.port}")


def _gpus(start: Start, container: Container) -> Iterator[Finding]:
    others = ("cpu", "rocm", "xpu", "tpu", "hpu", "neuron", "gaudi")
    if container.gpus or any(word in container.image for word in others) or start.on_cpu:
        return
    match start.kind:
        case EngineKind.VLLM:
            needs = "vllm-openai" in container.image
        case EngineKind.TRTLLM:
            needs = True
        case EngineKind.TRITON:
            needs = False
        case _:
            assert_never(start.kind)
    if needs:
        at = At(start.file, container.line("gpus", start.line))
        yield at.error("no-gpus", "the container gets no GPU", "--gpus all; in compose deploy.resources.reservations")


def _memory(start: Start, container: Container) -> Iterator[Finding]:
    shared = container.shared
    if not container.host_ipc and (shared is None or shared < _LEAST_SHARED):
        at = At(start.file, container.line("shm", start.line))
        size = "64 MiB" if shared is None else f"{shared / 2**20:.0f} MiB"
        message = f"the engine's processes talk through shared memory, which has {size}"
        made = at.error if start.gpus > 1 else at.warning
        yield made("shared-memory", message, "--ipc host (compose: ipc: host), or --shm-size 8g (shm_size)")
    if start.kind is EngineKind.VLLM:
        return
    missing = [name for name in ("memlock", "stack") if name not in container.limits]
    if missing:
        at = At(start.file, container.line("ulimits", start.line))
        message = f"NVIDIA's containers want other limits for {' and '.join(missing)}"
        yield at.warning("limits", message, "--ulimit memlock=-1 --ulimit stack=67108864 (compose: ulimits)")
