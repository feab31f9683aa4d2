"""Triton's models and metrics."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from engines.simulator.load import Load, ModelLoad
from engines.simulator.prometheus import Sample, family
from engines.simulator.wire import Reply, reply

Pick: TypeAlias = Callable[[ModelLoad], float]

_REASONS = ("OTHER", "BACKEND", "CANCELED", "REJECTED")


def row(name: str, created: int) -> dict[str, object]:
    """One model; `created` is when it was loaded."""
    return {"id": name, "created": created, "object": "model", "owned_by": "Triton Inference Server"}


def models(names: Iterable[str], created: int) -> Reply:
    """`/v1/models`, by name."""
    return reply(200, {"object": "list", "data": [row(name, created) for name in sorted(names)]})


_BY_MODEL: tuple[tuple[str, str, str, Pick], ...] = (
    (
        "nv_inference_request_success",
        "counter",
        "Number of successful inference requests, all batch sizes",
        lambda state: sum(state.finished.values()),
    ),
    (
        "nv_inference_count",
        "counter",
        "Number of inferences performed (does not include cached requests)",
        lambda state: sum(state.finished.values()),
    ),
    (
        "nv_inference_exec_count",
        "counter",
        "Number of model executions performed (does not include cached requests)",
        lambda state: sum(state.finished.values()),
    ),
    (
        "nv_inference_request_duration_us",
        "counter",
        "Cumulative inference request duration in microseconds (includes cached requests)",
        lambda state: round(state.whole.total * 1e6),
    ),
    (
        "nv_inference_queue_duration_us",
        "counter",
        "Cumulative inference queuing duration in microseconds (includes cached requests)",
        lambda state: round(state.queue.total * 1e6),
    ),
    (
        "nv_inference_pending_request_count",
        "gauge",
        "Instantaneous number of pending requests awaiting execution per-model.",
        lambda state: state.waiting,
    ),
)
_CUSTOM: tuple[tuple[str, str, str, Pick], ...] = (
    (
        "vllm:num_requests_running",
        "gauge",
        "Number of requests currently running on GPU.",
        lambda state: state.running,
    ),
    (
        "vllm:num_requests_waiting",
        "gauge",
        "Number of requests waiting to be processed.",
        lambda state: state.waiting,
    ),
)


def metrics(load: Load, *, custom: bool) -> Reply:
    """`/metrics`. With `custom` also the vLLM backend's own gauges (REPORT_CUSTOM_METRICS)."""
    states = load.models
    parts = [
        family(name, kind, text, _each(states, pick))
        for name, kind, text, pick in (*_BY_MODEL, *(_CUSTOM if custom else ()))
    ]
    failures = [
        Sample(state.failed if reason == "BACKEND" else 0, {**_labels(name), "reason": reason})
        for name, state in states.items()
        for reason in _REASONS
    ]
    failed = "Number of failed inference requests, all batch sizes"
    parts.append(family("nv_inference_request_failure", "counter", failed, failures))
    if custom:
        kv = [Sample(load.kv_use, _labels(name)) for name in states]
        parts.append(family("vllm:kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.", kv))
    return Reply(200, "".join(parts).encode(), b"text/plain; charset=utf-8")


def _labels(name: str) -> Mapping[str, str]:
    return {"model": name, "version": "1"}


def _each(states: Mapping[str, ModelLoad], value: Pick) -> list[Sample]:
    return [Sample(value(state), _labels(name)) for name, state in states.items()]
