"""Reads an engine's load from its Prometheus text. Only the few lines that matter are looked at."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from engines.profile import EngineKind


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """How busy an engine says it is. None: it does not say."""

    running: float | None = None
    """Requests being worked on, summed over models and data-parallel ranks."""
    waiting: float | None = None
    """Requests in the engine's own queue, summed likewise."""
    kv_use: float | None = None
    """Share of the KV cache in use, 0 to 1; of the fullest rank."""


@dataclass(frozen=True, slots=True)
class Series:
    """One metric; `label` (as `name="value"`) picks some of its samples."""

    name: bytes
    label: bytes = b""


@dataclass(frozen=True, slots=True)
class LoadSeries:
    """Where one kind of engine gives its load: the first series present counts."""

    running: tuple[Series, ...]
    waiting: tuple[Series, ...]
    kv_use: tuple[Series, ...]


_VLLM = LoadSeries(
    running=(Series(b"vllm:num_requests_running"),),
    waiting=(Series(b"vllm:num_requests_waiting"),),
    kv_use=(Series(b"vllm:kv_cache_usage_perc"), Series(b"vllm:gpu_cache_usage_perc")),
)
LOAD_SERIES: Mapping[EngineKind, LoadSeries] = MappingProxyType(
    {
        EngineKind.VLLM: _VLLM,
        EngineKind.TRTLLM: LoadSeries(
            running=(Series(b"trtllm_num_requests_running"),),
            waiting=(Series(b"trtllm_num_requests_waiting"),),
            kv_use=(Series(b"trtllm_kv_cache_utilization"),),
        ),
        # Triton: its TensorRT-LLM backend, its vLLM backend (with REPORT_CUSTOM_METRICS), or only its own queue.
        EngineKind.TRITON: LoadSeries(
            running=(Series(b"nv_trt_llm_request_metrics", b'request_type="scheduled"'), *_VLLM.running),
            waiting=(
                Series(b"nv_trt_llm_request_metrics", b'request_type="waiting"'),
                *_VLLM.waiting,
                Series(b"nv_inference_pending_request_count"),
            ),
            kv_use=(Series(b"nv_trt_llm_kv_cache_block_metrics", b'kv_cache_block_type="fraction"'), *_VLLM.kv_use),
        ),
    }
)
"""vLLM's names are recorded (`get_metrics`, `rust_get_metrics`); trtllm-serve's and nv_trt_llm's are from documents."""


def read_load(kind: EngineKind, text: bytes) -> EngineLoad:
    """Read the load of an engine of this kind from its metrics; series that are missing or odd give None."""
    series = LOAD_SERIES[kind]
    return EngineLoad(
        running=_first(text, series.running, sum),
        waiting=_first(text, series.waiting, sum),
        kv_use=_first(text, series.kv_use, max),
    )


def _first(text: bytes, series: Sequence[Series], join: Callable[[Iterable[float]], float]) -> float | None:
    for one in series:
        values = list(samples(text, one))
        if values:
            return join(values)
    return None


def samples(text: bytes, series: Series) -> Iterator[float]:
    """Give the values of a series' samples; anything that is no finite number is passed over."""
    at = 0
    name = series.name
    while (at := text.find(name, at)) >= 0:
        start, at = at, at + len(name)
        if start and text[start - 1 : start] != b"\n":
            continue
        end = text.find(b"\n", at)
        line = text[at:] if end < 0 else text[at:end]
        found = _SAMPLE.match(line)
        if found is not None and series.label in (found["labels"] or b""):
            value = float(found["value"])
            if math.isfinite(value):
                yield value


# Label values may hold anything in quotes, `}` and spaces too; a timestamp may follow the value.
_SAMPLE = re.compile(
    rb'(?P<labels>\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?[ \t]+'
    rb"(?P<value>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?:[ \t]|\r?$)"
)
