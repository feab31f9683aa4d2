"""Whether weights and KV cache fit a GPU's memory, step by step.

Weights and the size of a token are exact; what computing takes beside them is an estimate (`computing`), and engines
say the truth in their first log lines.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from engines.advice.model import Model
from engines.advice.table import GIB, Gpu

VLLM_SHARE: Final = 0.92
"""What vLLM takes of a GPU (`gpu_memory_utilization`): its default of 0.32."""
TRTLLM_SHARE: Final = 0.9
"""What trtllm-serve takes for the KV cache of what is free once it has loaded: its default of 1.2."""

CONTEXT_AND_GRAPHS: Final = 3 * GIB // 2
"""Assumed: CUDA's context, the libraries' workspaces, captured graphs."""
COMMUNICATION: Final = GIB // 2
"""Assumed, where several GPUs compute together."""
BATCH: Final = 256
"""Requests whose next token is chosen at once, as the defaults are."""
STEP: Final = 1024
"""A context that is found is a multiple of that many tokens."""
PER_MACHINE: Final = 8
"""GPUs of a machine: layers are split over no more."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a model is spread over GPUs: each layer over `tensor`, groups of layers over `pipeline`."""

    tensor: int
    pipeline: int

    @property
    def gpus(self) -> int:
        """GPUs that it needs."""
        return self.tensor * self.pipeline


@dataclass(frozen=True, slots=True)
class Room:
    """What one GPU holds, in bytes; `context` and `at_once` are None where the size of a token is not known."""

    layout: Layout
    memory: int
    weights: int
    computing: int
    kv_room: int
    """Left for the KV cache; below 0 if the weights alone do not fit."""
    kv_per_token: int | None
    tokens: int | None
    """Tokens in the KV cache, none of them out of a window."""
    context: int | None
    """Tokens of one request, prompt and answer together."""
    at_once: int | None
    """Requests of that many tokens that the KV cache holds."""
    fits: bool


def layouts(gpus: int, heads: int | None) -> Iterator[Layout]:
    """Ways to use at most that many GPUs, the fewest first. Each GPU gets as many heads as the others."""
    found = [
        Layout(tensor, pipeline)
        for tensor in range(1, min(gpus, PER_MACHINE) + 1)
        for pipeline in range(1, gpus // tensor + 1)
        if (heads is None or heads % tensor == 0) and (pipeline == 1 or tensor == PER_MACHINE)
    ]
    yield from sorted(found, key=lambda layout: layout.gpus)


def computing(model: Model | None, layout: Layout, batched_tokens: int) -> int:
    """An estimate of what computing takes on each GPU: activations of one step, logits, context, graphs."""
    fixed = CONTEXT_AND_GRAPHS + (COMMUNICATION if layout.gpus > 1 else 0)
    if model is None:
        return fixed
    activations = batched_tokens * (4 * model.hidden + 2 * model.intermediate // layout.tensor) * 2
    return fixed + activations + BATCH * model.vocabulary * 4 * 2


def kv_on_one(model: Model, layout: Layout, tokens: int) -> int:
    """Bytes that one request of that many tokens takes on each GPU; heads that are fewer than GPUs are kept twice."""
    numbers = model.latent or 2 * -(-model.kv_heads // layout.tensor) * model.head_dim
    share = numbers / model.numbers_per_layer
    return -(-round(model.kv_bytes(tokens) * share) // layout.pipeline)


def vllm_room(gpu: Gpu, layout: Layout, weights: int, model: Model | None, context: int | None, requests: int) -> Room:
    """What vLLM has: a share of the whole memory for everything."""
    batched = 8192 if gpu.memory >= 70 * GIB else 2048
    taken = computing(model, layout, batched)
    each = -(-weights // layout.gpus)
    return _room(gpu, layout, each, taken, int(gpu.memory * VLLM_SHARE) - each - taken, model, context, requests)


def trtllm_room(
    gpu: Gpu, layout: Layout, weights: int, model: Model | None, context: int | None, requests: int
) -> Room:
    """What trtllm-serve has: a share of what the weights and computing leave."""
    taken = computing(model, layout, 8192)
    each = -(-weights // layout.gpus)
    left = gpu.memory - each - taken
    kv_room = int(left * TRTLLM_SHARE) if left > 0 else left
    return _room(gpu, layout, each, taken, kv_room, model, context, requests)


def _room(
    gpu: Gpu,
    layout: Layout,
    weights: int,
    taken: int,
    kv_room: int,
    model: Model | None,
    context: int | None,
    requests: int,
) -> Room:
    if model is None:
        return Room(layout, gpu.memory, weights, taken, kv_room, None, None, context, None, kv_room > 0)
    if model.pools:
        return Room(
            layout, gpu.memory, weights, taken, kv_room, None, None, context or model.context, None, kv_room > 0
        )
    per_token = kv_on_one(model, layout, 1)
    tokens = max(0, kv_room) // per_token
    length = context or longest(model, layout, kv_room // requests if kv_room > 0 else 0)
    at_once = max(0, kv_room) // kv_on_one(model, layout, length) if length else 0
    fits = kv_room > 0 and at_once >= requests
    return Room(layout, gpu.memory, weights, taken, kv_room, per_token, tokens, length or None, at_once, fits)


def longest(model: Model, layout: Layout, room: int) -> int:
    """The longest request that a KV cache of `room` bytes holds, at most the model's own limit; in whole steps."""
    limit = model.context or 2**20
    if kv_on_one(model, layout, limit) <= room:
        return limit
    low, high = 0, limit // STEP
    while low < high:
        middle = (low + high + 1) // 2
        if kv_on_one(model, layout, middle * STEP) <= room:
            low = middle
        else:
            high = middle - 1
    return low * STEP
