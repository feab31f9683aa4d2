"""Triton's own batching: what it refuses, and where it does nothing."""

from collections.abc import Iterator

from engines.lint.finding import Finding
from engines.lint.model_files import Configured
from engines.lint.triton_config import DynamicBatching


def rules(model: Configured) -> Iterator[Finding]:
    """The faults of `dynamic_batching` and `max_batch_size`."""
    own, config = model.model, model.config
    batching = config.dynamic_batching
    inside = batches_itself(model)
    if batching is not None:
        too_large = [size for size in batching.preferred_batch_size if size > config.max_batch_size]
        if too_large:
            at = own.at_field("dynamic_batching", "preferred_batch_size")
            message = f"preferred batch size {too_large[0]} is above max_batch_size, {config.max_batch_size}"
            yield at.error("preferred-batch-size", message, "leave dynamic_batching out" if inside else "a smaller one")
        yield from _priorities(model, batching)
        if inside:
            at, message = own.at_field("dynamic_batching"), "requests are batched in flight by the engine itself"
            yield at.warning("dynamic-batching-useless", message, "leave dynamic_batching out")
        elif config.max_batch_size == 0 and not too_large:
            at, message = own.at_field("dynamic_batching"), "with max_batch_size 0 there are no batches"
            yield at.warning("dynamic-batching-useless", message, "max_batch_size: 8, or leave dynamic_batching out")
    if config.backend == "vllm" and config.max_batch_size > 0:
        at, message = own.at_field("max_batch_size"), "vLLM batches in flight, and its backend sets 0 here"
        yield at.warning("max-batch-size-useless", message, "leave it out; max_num_seqs in model.json is what counts")


def batches_itself(model: Configured) -> bool:
    """Whether the engine behind a model puts requests together: then Triton must not."""
    llm_api = any(path.endswith("/model.yaml") for path in model.model.files)
    return model.config.backend in {"vllm", "tensorrtllm"} or (model.config.backend == "python" and llm_api)


def _priorities(model: Configured, batching: DynamicBatching) -> Iterator[Finding]:
    levels, default = batching.priority_levels, batching.default_priority_level
    if levels and not 1 <= default <= levels:
        at = model.model.at_field("dynamic_batching", "default_priority_level")
        message = f"the default priority is {default}, and there are {levels} levels"
        yield at.error("priority-level", message, f"default_priority_level: 1 to {levels}")
    for level in batching.priority_queue_policy:
        if not 1 <= level <= levels:
            at = model.model.at_field("dynamic_batching", "priority_queue_policy")
            message = f"a policy for priority {level}, and there are {levels} levels"
            yield at.error("priority-level", message, f"priority_levels: {level}, or another key")
