"""trtllm-serve's models list and its two metrics paths."""

import time
from collections.abc import Sequence

from engines.simulator.load import Load
from engines.simulator.models import SimulatedModel
from engines.simulator.prometheus import Sample, family, histogram
from engines.simulator.wire import Reply, reply

_BLOCK = 32
"""Tokens of one KV block."""


def models(served: Sequence[SimulatedModel]) -> Reply:
    """`created` is the time of the call, so it changes every time."""
    now = int(time.time())
    rows = [{"id": m.name, "object": "model", "created": now, "owned_by": "tensorrt_llm"} for m in served]
    return reply(200, {"object": "list", "data": rows})


def iteration(load: Load, number: int) -> dict[str, object]:
    """One entry of `/metrics`, which is JSON here."""
    blocks = load.pace.kv_capacity // _BLOCK
    used = round(load.kv_use * blocks)
    return {
        "iter": number,
        "iterLatencyMS": load.pace.between(load.running) * 1000,
        "numActiveRequests": load.running,
        "numQueuedRequests": load.waiting,
        "maxNumActiveRequests": load.pace.max_running or 2048,
        "kvCacheStats": {
            "maxNumBlocks": blocks,
            "freeNumBlocks": blocks - used,
            "usedNumBlocks": used,
            "tokensPerBlock": _BLOCK,
            "cacheHitRate": 0.0,
        },
    }


def prometheus(load: Load) -> Reply:
    """`/prometheus/metrics`. The names are those of the server's own exporter; no recording has them."""
    labels = {name: {"model_name": name, "engine_type": "trtllm"} for name in load.models}
    first = next(iter(labels.values()), {})
    text = family("trtllm_num_requests_running", "gauge", "Number of requests running.", [Sample(load.running, first)])
    text += family("trtllm_num_requests_waiting", "gauge", "Number of requests waiting.", [Sample(load.waiting, first)])
    text += family("trtllm_kv_cache_utilization", "gauge", "KV cache utilization.", [Sample(load.kv_use, first)])
    text += family("trtllm_kv_cache_hit_rate", "gauge", "KV cache hit rate.", [Sample(0, first)])
    finished = [
        Sample(count, {**labels[name], "finished_reason": reason})
        for name, state in load.models.items()
        for reason, count in state.finished.items()
    ]
    text += family("trtllm_request_success_total", "counter", "Count of successfully processed requests.", finished)
    for name, help_text, which in (
        ("time_to_first_token_seconds", "Histogram of time to first token in seconds.", "first_token"),
        ("time_per_output_token_seconds", "Histogram of time per output token in seconds.", "inter_token"),
        ("e2e_request_latency_seconds", "Histogram of end to end request latency in seconds.", "whole"),
        ("request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", "queue"),
    ):
        series = [(labels[model], getattr(state, which)) for model, state in load.models.items()]
        text += histogram(f"trtllm_{name}", help_text, series)
    return Reply(200, text.encode(), b"text/plain; version=0.0.4; charset=utf-8")
