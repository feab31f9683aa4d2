"""Advice in words and as JSON: the arithmetic line by line, and how to measure what it does not tell."""

from collections.abc import Iterator, Sequence

from engines.advice.advise import EngineAdvice, Subject, Wanted, cautions
from engines.advice.memory import TRTLLM_SHARE, VLLM_SHARE, Room
from engines.advice.model import Model
from engines.advice.table import GIB
from engines.profile import EngineKind

MEASURE = (
    "Nothing here is about speed. Start each candidate, send it your own traffic, and compare the time to the first "
    "token and between tokens (turnout_first_token_seconds and turnout_inter_token_seconds at the gateway's /metrics); "
    "`vllm bench serve` and `trtllm-bench` load one engine."
)


def gib(size: float) -> str:
    """Bytes in GiB."""
    return f"{size / GIB:.1f} GiB"


def model_lines(subject: Subject) -> Iterator[str]:
    """The model's own figures."""
    model = subject.model
    if model is None:
        yield f"weights: {gib(subject.weight_bytes)} (2 bytes a parameter)"
        yield "KV cache: not known"
        return
    yield f"weights: {_weights(subject, model)}"
    if model.pools:
        yield "KV cache: none is kept for an embedding model"
        return
    yield f"KV cache: {_token(model)} = {model.kv_bytes_per_token():,} bytes a token"
    if model.windowed:
        beyond = (model.layers - model.windowed) * model.numbers_per_layer * 2
        yield f"  {model.windowed} layers keep the last {model.window:,} tokens only: {beyond:,} bytes a token beyond"


def _weights(subject: Subject, model: Model) -> str:
    if subject.weight_bytes != model.weight_bytes:
        return f"{gib(subject.weight_bytes)} as the files say"
    count, wide = model.weights, model.dtype_bytes
    if model.quantization is None:
        return f"{count.total:,} parameters * {wide:g} bytes ({model.dtype}) = {gib(model.weight_bytes)}"
    narrow = f"{model.quantization.bits:g} bits ({model.quantization.method})"
    small = count.experts + (0 if model.quantization.experts_only else count.linear)
    rest = count.total - small
    return f"{small:,} parameters * {narrow} + {rest:,} * {wide:g} bytes = {gib(model.weight_bytes)}"


def _token(model: Model) -> str:
    if model.latent:
        return f"{model.layers} layers * {model.latent} (latent) * 2 bytes"
    return f"{model.layers} layers * 2 * {model.kv_heads} heads * {model.head_dim} * 2 bytes"


def room_lines(kind: EngineKind, room: Room, requests: int) -> Iterator[str]:
    """How the memory of one GPU is used."""
    spread = f" on each of {room.layout.gpus} GPUs" if room.layout.gpus > 1 else ""
    parts = f"weights {gib(room.weights)} - computing {gib(room.computing)} (an estimate)"
    if kind is EngineKind.TRTLLM:
        yield f"{TRTLLM_SHARE} * ({gib(room.memory)} - {parts}) = {gib(room.kv_room)} for the KV cache{spread}"
    else:
        yield f"{VLLM_SHARE} * {gib(room.memory)} - {parts} = {gib(room.kv_room)} for the KV cache{spread}"
    if room.kv_per_token is None or room.kv_room <= 0:
        return
    if room.context is None:
        yield f"not even {requests} * 1,024 tokens"
        return
    yield f"/ {room.kv_per_token:,} bytes = {room.tokens:,} tokens"
    yield f"{room.at_once} {'request' if room.at_once == 1 else 'requests'} of {room.context:,} tokens at once"


def as_tree(subject: Subject, wanted: Wanted, advice: Sequence[EngineAdvice]) -> dict[str, object]:
    """Everything as plain values."""
    model = subject.model
    keeps = model is not None and not model.pools
    return {
        "fits": any(one.fits for one in advice),
        "weights_bytes": subject.weight_bytes,
        "kv_bytes_per_token": model.kv_bytes_per_token() if model is not None and keeps else None,
        "model": {
            "name": subject.name,
            "family": model.family if model is not None else None,
            "parameters": model.weights.total if model is not None else None,
            "context": model.context if model is not None else None,
        },
        "gpu": {
            "name": wanted.gpu.name,
            "count": wanted.gpus,
            "memory_bytes": wanted.gpu.memory,
            "compute_capability": wanted.gpu.capability,
        },
        "arithmetic": list(model_lines(subject)),
        "cautions": list(cautions(subject, wanted)),
        "engines": [
            {
                "kind": one.kind.value,
                "supported": one.supported,
                "fits": one.fits,
                "why": one.why,
                "settings": one.settings,
                "arithmetic": list(room_lines(one.kind, one.room, wanted.requests or 1)),
                "gpus": one.room.layout.gpus,
                "context": one.room.context,
                "requests_at_once": one.room.at_once,
                "apis": list(one.apis),
                "tools": one.tools,
            }
            for one in advice
        ],
        "measure": MEASURE,
    }
