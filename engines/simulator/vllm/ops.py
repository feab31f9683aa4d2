"""vLLM's models list, metrics and tokenizer paths."""

import time
import uuid
from collections.abc import Mapping, Sequence

from engines.simulator import tokens
from engines.simulator.load import Histogram, Load, ModelLoad
from engines.simulator.models import SimulatedModel
from engines.simulator.prometheus import Sample, family, histogram
from engines.simulator.prompt import prompt_tokens
from engines.simulator.schema import Body
from engines.simulator.wire import Reply, reply

METRICS_TYPE = b"text/plain; version=1.0.0; charset=utf-8"


def models(served: Sequence[SimulatedModel]) -> Reply:
    """One row for each name, alias and LoRA."""
    rows = []
    for model in served:
        rows += [_row(name, model.name, None, model.max_length) for name in (model.name, *model.aliases)]
        rows += [_row(name, name, model.name, None) for name in model.adapters]
    return reply(200, {"object": "list", "data": rows})


def _row(name: str, root: str, parent: str | None, length: int | None) -> dict[str, object]:
    now = int(time.time())
    permission = {
        "id": f"modelperm-{uuid.uuid4().hex[:16]}",
        "object": "model_permission",
        "created": now,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    return {
        "id": name,
        "object": "model",
        "created": now,
        "owned_by": "vllm",
        "root": root,
        "parent": parent,
        "max_model_len": length,
        "permission": [permission],
    }


def metrics(load: Load) -> Reply:
    """The families that say how loaded the engine is, with vLLM's names and labels."""
    gauges: tuple[tuple[str, str, str, list[Sample]], ...] = (
        (
            "num_requests_running",
            "gauge",
            "Number of requests in model execution batches.",
            [Sample(state.running, _labels(name)) for name, state in load.models.items()],
        ),
        (
            "num_requests_waiting",
            "gauge",
            "Number of requests waiting to be processed.",
            [Sample(state.waiting, _labels(name)) for name, state in load.models.items()],
        ),
        ("num_requests_waiting_by_reason", "gauge", "Number of waiting requests by reason.", _waiting(load)),
        (
            "kv_cache_usage_perc",
            "gauge",
            "KV-cache usage. 1 means 100 percent usage.",
            [Sample(load.kv_use, _labels(name)) for name in load.models],
        ),
        (
            "prefix_cache_queries_total",
            "counter",
            "Prefix cache queries, in terms of number of queried tokens.",
            [Sample(state.prompt_tokens, _labels(name)) for name, state in load.models.items()],
        ),
        (
            "prefix_cache_hits_total",
            "counter",
            "Prefix cache hits, in terms of number of cached tokens.",
            [Sample(0, _labels(name)) for name in load.models],
        ),
        (
            "num_preemptions_total",
            "counter",
            "Cumulative number of preemption from the engine.",
            [Sample(0, _labels(name)) for name in load.models],
        ),
        (
            "prompt_tokens_total",
            "counter",
            "Number of prefill tokens processed.",
            [Sample(state.prompt_tokens, _labels(name)) for name, state in load.models.items()],
        ),
        (
            "generation_tokens_total",
            "counter",
            "Number of generation tokens processed.",
            [Sample(state.generated_tokens, _labels(name)) for name, state in load.models.items()],
        ),
        ("request_success_total", "counter", "Count of successfully processed requests.", _finished(load)),
        (
            "admission_rejections_total",
            "counter",
            "Number of admission attempts rejected by a queue limit, by reason.",
            _rejected(load),
        ),
    )
    text = "".join(family(f"vllm:{name}", kind, help_text, samples) for name, kind, help_text, samples in gauges)
    return Reply(200, (text + _histograms(load)).encode(), METRICS_TYPE)


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


def _histograms(load: Load) -> str:
    wanted = (
        ("time_to_first_token_seconds", "Histogram of time to first token in seconds.", "first_token"),
        ("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", "inter_token"),
        ("e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", "whole"),
        ("request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", "queue"),
    )
    return "".join(
        histogram(f"vllm:{name}", text, [(_labels(model), _of(state, which)) for model, state in load.models.items()])
        for name, text, which in wanted
    )


def _of(state: ModelLoad, which: str) -> Histogram:
    found: Histogram = getattr(state, which)
    return found


def tokenize(body: Body, model: SimulatedModel) -> Reply:
    """`/tokenize`, with stand-in ids."""
    if "messages" in body:
        count = prompt_tokens(body["messages"], body.get("tools"))
        ids = [tokens.token_id(str(number)) for number in range(count)]
    else:
        ids = [tokens.token_id(piece) for piece in tokens.pieces(str(body.get("prompt", "")))]
    strings = [str(each) for each in ids] if body.get("return_token_strs") else None
    return reply(200, {"count": len(ids), "max_model_len": model.max_length, "tokens": ids, "token_strs": strings})
