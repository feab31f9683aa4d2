"""Several engines on one GPU: whether they fit together."""

from collections.abc import Iterator, Sequence
from typing import Final

from engines.lint.finding import Finding
from engines.lint.numbers import SAMPLES, shown
from engines.lint.start import ALL, Start
from engines.lint.vllm_command import SHARE
from engines.profile import EngineKind

DEFAULT: Final = 0.92
"""vLLM's own, 0.32."""


def devices(start: Start) -> tuple[str, ...]:
    """The GPUs that a start takes: of those it may use, the first ones. None if a variable names them."""
    if "$" in start.environment.get("CUDA_VISIBLE_DEVICES", ""):
        return ()
    if start.on_cpu or (start.container is not None and not start.container.gpus):
        return ()
    visible = start.visible
    if visible is None or visible == ALL:
        return tuple(map(str, range(start.gpus)))
    return visible[: start.gpus]


def rules(starts: Sequence[Start]) -> Iterator[Finding]:
    """The faults of engines that run at the same time on one machine."""
    taken: dict[str, list[Start]] = {}
    for start in starts:
        for device in devices(start):
            taken.setdefault(device, []).append(start)
    told: set[tuple[int, ...]] = set()
    for device, several in taken.items():
        together = tuple(start.line for start in several)
        if len(several) < 2 or together in told:
            continue
        told.add(together)
        yield from _sum(device, several)
        yield from _beside(device, several)


def samples(starts: Sequence[Start]) -> Iterator[Finding]:
    """Shares that were probably copied from a sample. Half of a GPU is meant where two engines share it."""
    for start in starts:
        share, own = start.number(SHARE), set(devices(start))
        beside = any(own & set(devices(other)) for other in starts if other is not start)
        if share in SAMPLES and not start.on_cpu and not (beside and share == max(SAMPLES)):
            message = f"{SHARE} {shown(share or 0)} is what samples set, to start anywhere: the KV cache stays small"
            yield start.at(SHARE).warning("sample-value", message, "leave it out, or say what this engine may have")


def _sum(device: str, several: Sequence[Start]) -> Iterator[Finding]:
    parts = [(start, share) for start in several if (share := _share(start)) is not None]
    total = sum(share for _, share in parts)
    if len(parts) > 1 and total > 1.0001:
        listed = " + ".join(f"{start.name or f'line {start.line}'} {shown(share)}" for start, share in parts)
        message = f"engines on GPU {device} ask for {shown(total)} of its memory: {listed}"
        last = parts[-1][0]
        yield last.at(SHARE).error("memory-sum", message, f"{SHARE} that are 1 at most together, or other GPUs")


def _share(start: Start) -> float | None:
    """What a vLLM takes of each of its GPUs; None if that is not said as a share."""
    if start.kind is not EngineKind.VLLM or start.flag("--kv-cache-memory-bytes") is not None:
        return None
    return start.number(SHARE) if start.flag(SHARE) is not None else DEFAULT


def _beside(device: str, several: Sequence[Start]) -> Iterator[Finding]:
    for start in several:
        if start.kind is EngineKind.TRTLLM:
            name = "--kv_cache_free_gpu_memory_fraction"
            message = f"its cache is a share of what it finds free on GPU {device}, and another engine is there"
            yield start.at(name).warning("shared-gpu", message, "a GPU of its own, or a fixed order of starting")
