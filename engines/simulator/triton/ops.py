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


def metrics(load: Load, *, custom: bool) -> Reply:
    """`/metrics`. With `custom` also the vLLM backend's own gauges (REPORT_CUSTOM_METRICS)."""
    states = load.models
    text = family(
        "nv_inference_request_success",
        "counter",
        "Number of successful inference requests, all batch sizes",
        _each(states, lambda state: sum(state.finished.values())),
    )
    failures = [
        Sample(state.failed if reason == "BACKEND" else 0, {**_labels(name), "reason": reason})
        for name, state in states.items()
        for reason in _REASONS
    ]
    text += family(
        "nv_inference_request_failure",
        "counter",
        "Number of failed inference requests, all batch sizes",
        failures,
    )
    for name, help_text in (
        ("nv_inference_count", "Number of inferences performed (does not include cached requests)"),
        ("nv_inference_exec_count", "Number of model executions performed (does not include cached requests)"),
    ):
        text += family(name, "counter", help_text, _each(states, lambda state: sum(state.finished.values())))
    text += family(
        "nv_inference_request_duration_us",
        "counter",
        "Cumulative inference request duration in microseconds (includes cached requests)",
        _each(states, lambda state: round(state.whole.total * 1e6)),
    )
    text += family(
        "nv_inference_queue_duration_us",
        "counter",
        "Cumulative inference queuing duration in microseconds (includes cached requests)",
        _each(states, lambda state: round(state.queue.total * 1e6)),
    )
    text += family(
        "nv_inference_pending_request_count",
        "gauge",
        "Instantaneous number of pending requests awaiting execution per-model.",
        _each(states, lambda state: state.waiting),
    )
    return Reply(200, (text + (_custom(load) if custom else "")).encode(), b"text/plain; charset=utf-8")


def _labels(name: str) -> Mapping[str, str]:
    return {"model": name, "version": "1"}


def _each(states: Mapping[str, ModelLoad], value: Pick) -> list[Sample]:
    return [Sample(value(state), _labels(name)) for name, state in states.items()]


def _custom(load: Load) -> str:
    states = load.models
    text = family(
        "vllm:num_requests_running",
        "gauge",
        "Number of requests currently running on GPU.",
        _each(states, lambda state: state.running),
    )
    text += family(
        "vllm:num_requests_waiting",
        "gauge",
        "Number of requests waiting to be processed.",
        _each(states, lambda state: state.waiting),
    )
    kv = [Sample(load.kv_use, _labels(name)) for name in states]
    return text + family("vllm:kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.", kv)
