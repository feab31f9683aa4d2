"""vLLM's `/metrics`: the families that say how loaded the engine is, with the real names and labels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engines.simulator.load import Histogram, Load, ModelLoad
from engines.simulator.prometheus import Sample, family, histogram
from engines.simulator.wire import Reply

_TYPE = b"text/plain; version=1.0.0; charset=utf-8"


@dataclass(frozen=True, slots=True)
class _Family:
    """One number for each model."""

    name: str
    kind: str
    text: str
    value: Callable[[Load, ModelLoad], float]


_BY_MODEL = (
    _Family(
        "num_requests_running",
        "gauge",
        "Number of requests in model execution batches.",
        lambda _, state: state.running,
    ),
    _Family(
        "num_requests_waiting",
        "gauge",
        "Number of requests waiting to be processed.",
        lambda _, state: state.waiting,
    ),
    _Family(
        "kv_cache_usage_perc",
        "gauge",
        "KV-cache usage. 1 means 100 percent usage.",
        lambda load, _: load.kv_use,
    ),
    _Family(
        "prefix_cache_queries_total",
        "counter",
        "Prefix cache queries, in terms of number of queried tokens.",
        lambda _, state: state.prompt_tokens,
    ),
    _Family(
        "prefix_cache_hits_total",
        "counter",
        "Prefix cache hits, in terms of number of cached tokens.",
        lambda *_: 0,
    ),
    _Family(
        "num_preemptions_total",
        "counter",
        "Cumulative number of preemption from the engine.",
        lambda *_: 0,
    ),
    _Family(
        "prompt_tokens_total",
        "counter",
        "Number of prefill tokens processed.",
        lambda _, state: state.prompt_tokens,
    ),
    _Family(
        "generation_tokens_total",
        "counter",
        "Number of generation tokens processed.",
        lambda _, state: state.generated_tokens,
    ),
)
_HISTOGRAMS: tuple[tuple[str, str, Callable[[ModelLoad], Histogram]], ...] = (
    (
        "time_to_first_token_seconds",
        "Histogram of time to first token in seconds.",
        lambda state: state.first_token,
    ),
    (
        "inter_token_latency_seconds",
        "Histogram of inter-token latency in seconds.",
        lambda state: state.inter_token,
    ),
    ("e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", lambda state: state.whole),
    (
        "request_queue_time_seconds",
        "Histogram of time spent in WAITING phase for request.",
        lambda state: state.queue,
    ),
)


def metrics(load: Load) -> Reply:
    """The page."""
    parts = [family(f"vllm:{each.name}", each.kind, each.text, _samples(each, load)) for each in _BY_MODEL]
    waiting = "Number of waiting requests by reason."
    parts.append(family("vllm:num_requests_waiting_by_reason", "gauge", waiting, _waiting(load)))
    success = "Count of successfully processed requests."
    parts.append(family("vllm:request_success_total", "counter", success, _finished(load)))
    rejected = "Number of admission attempts rejected by a queue limit, by reason."
    parts.append(family("vllm:admission_rejections_total", "counter", rejected, _rejected(load)))
    parts += [
        histogram(f"vllm:{name}", text, [(_labels(model), pick(state)) for model, state in load.models.items()])
        for name, text, pick in _HISTOGRAMS
    ]
    return Reply(200, "".join(parts).encode(), _TYPE)


def _samples(wanted: _Family, load: Load) -> list[Sample]:
    return [Sample(wanted.value(load, state), _labels(name)) for name, state in load.models.items()]


def _labels(name: str, **more: str) -> Mapping[str, str]:
    return {"engine": "0", "model_name": name, **more}


def _waiting(load: Load) -> list[Sample]:
    out = []
    for name, state in load.models.items():
        out.append(Sample(state.waiting, _labels(name, reason="capacity")))
        out.append(Sample(0, _labels(name, reason="deferred")))
    return out


def _finished(load: Load) -> list[Sample]:
    out = []
    for name, state in load.models.items():
        stopped = sum(count for reason, count in state.finished.items() if reason != "length")
        for reason, count in (("stop", stopped), ("length", state.finished.get("length", 0)), ("error", state.failed)):
            out.append(Sample(count, _labels(name, finished_reason=reason)))
    return out


def _rejected(load: Load) -> list[Sample]:
    name = next(iter(load.models), "")
    return [
        Sample(load.rejected, {"model_name": name, "reason": "max_num_queued_reqs"}),
        Sample(0, {"model_name": name, "reason": "max_num_queued_tokens"}),
    ]
