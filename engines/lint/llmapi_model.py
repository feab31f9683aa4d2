"""Models of TensorRT-LLM's LLM-API backend: a Python model with `model.yaml`. From its source; never run here."""

from collections.abc import Iterator, Mapping
from typing import Final

from engines.lint import legacy
from engines.lint.finding import At, Finding
from engines.lint.model_files import Configured
from engines.lint.numbers import number_of
from engines.lint.yaml_lines import YamlFault, line_of, read_yaml

TRITON: Final = "triton_config"


def rules(model: Configured) -> Iterator[Finding]:
    """The faults of such a model."""
    yield from _config(model)
    for version in model.served:
        path = f"{version}/model.yaml"
        text = model.model.text(path)
        if text is None:
            message = "no model.yaml: the engine's settings are read from it, unless LLM_CONFIG_PATH says another"
            yield At(f"{model.model.name}/{version}").error("no-model-yaml", message, "model: Qwen/Qwen3-8B")
            continue
        try:
            tree = read_yaml(text)
        except YamlFault as fault:
            at = model.model.at(path, fault.line)
            yield at.error("yaml-syntax", f"this is no YAML: {fault.message}", "mend the line")
            continue
        if isinstance(tree, Mapping):
            yield from _settings(model, path, tree)
        else:
            yield model.model.at(path).error("yaml-syntax", "this is no mapping", "model: Qwen/Qwen3-8B")


def _config(model: Configured) -> Iterator[Finding]:
    own, config = model.model, model.config
    if config.max_batch_size:
        at = own.at_field("max_batch_size")
        yield at.error("llmapi-config", "max_batch_size here cannot be overridden by model.yaml", "leave it out")
    if config.model_transaction_policy is not None:
        at = own.at_field("model_transaction_policy")
        fix = "leave it out; decoupled stands in triton_config of model.yaml"
        yield at.error("llmapi-config", "decoupled here cannot be overridden by model.yaml", fix)
    if any(group.kind in {"KIND_GPU", "KIND_AUTO"} for group in config.instance_group):
        at = own.at_field("instance_group", "kind")
        message = "the engine chooses its GPUs itself, and Triton would make an instance for each"
        yield at.warning("kind-cpu", message, "kind: KIND_CPU")
    devices = config.parameters.get("gpu_device_ids")
    lists = devices.string_value.split(";") if devices is not None and devices.string_value else []
    if model.instances > 1 and len(lists) < model.instances:
        at = own.at_field("instance_group", "count")
        message = f"{model.instances} instances, and gpu_device_ids names GPUs for {len(lists)}"
        fix = 'parameters: { key: "gpu_device_ids" value: { string_value: "0;1" } }'
        yield at.error("gpu-device-ids", message, fix)


def _settings(model: Configured, path: str, tree: Mapping[str, object]) -> Iterator[Finding]:
    own = model.model

    def at(*keys: str) -> At:
        return own.at(path, line_of(tree, keys))

    inner = tree.get(TRITON)
    if not isinstance(inner, Mapping):
        message = f"no {TRITON}: the model cannot be loaded without it"
        yield own.at(path).error("no-triton-config", message, f"{TRITON}: {{max_batch_size: 0, decoupled: true}}")
    else:
        missing = [key for key in ("max_batch_size", "decoupled") if key not in inner]
        if missing:
            message = f"{TRITON} has no {' and no '.join(missing)}"
            yield at(TRITON).error("no-triton-config", message, "max_batch_size: 0, decoupled: true")
        if number_of(inner.get("max_batch_size")) not in {0, None}:
            message = "Triton does not put together requests for this backend: the engine batches in flight"
            yield at(TRITON, "max_batch_size").warning("max-batch-size-useless", message, "max_batch_size: 0")
    if not tree.get("model"):
        yield own.at(path).error("no-model", "no model is named", "model: Qwen/Qwen3-8B")
    elif isinstance(tree["model"], str):
        yield from legacy.model_argument(tree["model"], at("model"))
    if tree.get("backend") in {"tensorrt", "trt"}:
        yield at("backend").error("removed-value", "the TensorRT engine backend is gone", "backend: pytorch")
    cache = tree.get("kv_cache_config")
    fraction = number_of(cache.get("free_gpu_memory_fraction")) if isinstance(cache, Mapping) else None
    if fraction is not None and not 0 < fraction <= 1:
        place = at("kv_cache_config", "free_gpu_memory_fraction")
        yield place.error("out-of-range", f"free_gpu_memory_fraction is {fraction:g}", "above 0 and up to 1")
