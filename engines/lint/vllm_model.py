"""Models of Triton's vLLM backend: `model.json` (arguments of vLLM's engine) and `multi_lora.json`."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from engines.launch.flags import bounds, former
from engines.launch.flags.vllm import FLAGS
from engines.lint.finding import At, Finding
from engines.lint.model_files import Configured
from engines.lint.numbers import SAMPLES, number_of, shown
from engines.lint.places import member_line

ARGUMENTS: Final[frozenset[str]] = (
    frozenset(flag.name[2:].replace("-", "_") for flag in FLAGS.flags) - former.NOT_ENGINE_ARGUMENTS
    | former.ENGINE_ONLY_ARGUMENTS
)
DEFAULT_SHARE: Final = 0.92
SHARE: Final = "gpu_memory_utilization"
_LORAS: Final = "multi_lora.json"


def rules(model: Configured) -> Iterator[Finding]:
    """The faults of a model that vLLM runs."""
    own, config = model.model, model.config
    if config.model_transaction_policy is not None and not config.model_transaction_policy.decoupled:
        at = own.at_field("model_transaction_policy")
        message = "decoupled: false, and the vLLM backend, which answers in pieces, refuses to load"
        yield at.error("decoupled", message, "leave model_transaction_policy out")
    if model.instances > 1:
        at = own.at_field("instance_group", "count")
        message = f"{model.instances} instances are {model.instances} engines, each with weights and cache of its own"
        yield at.warning("instance-count", message, "count: 1; vLLM serves many requests at once")
    for version in model.served:
        arguments = read_arguments(model, version)
        if isinstance(arguments, Finding):
            yield arguments
            continue
        yield from _arguments(model, version, arguments)
        yield from _kinds(model, arguments)
        yield from _loras(model, version, arguments)


def read_arguments(model: Configured, version: int) -> Mapping[str, object] | Finding:
    """The engine arguments of a version, or what keeps them from being read."""
    own, path = model.model, f"{version}/model.json"
    text = own.text(path)
    if text is None:
        message = "no model.json: the vLLM backend reads the engine's arguments from it"
        return At(f"{own.name}/{version}").error("no-model-json", message, '{"model": "Qwen/Qwen3-8B"}')
    try:
        tree = json.loads(text)
    except json.JSONDecodeError as error:
        message = f"this is no JSON: {error.msg}"
        return own.at(path, error.lineno).error("json-syntax", message, "no comments, no comma before a bracket")
    except RecursionError:
        return own.at(path).error("json-syntax", "this is nested too deeply", '{"model": "Qwen/Qwen3-8B"}')
    if not isinstance(tree, dict):
        return own.at(path).error("json-syntax", "this is no object", '{"model": "Qwen/Qwen3-8B"}')
    return tree


def _arguments(model: Configured, version: int, arguments: Mapping[str, object]) -> Iterator[Finding]:
    own, path = model.model, f"{version}/model.json"
    text = own.text(path) or ""
    if not arguments.get("model"):
        yield own.at(path).error("no-model", "no model is named", '"model": "Qwen/Qwen3-8B"')
    for key, value in arguments.items():
        at = own.at(path, member_line(text, key))
        if key not in ARGUMENTS:
            yield at.error("unknown-argument", f"vLLM's engine {FLAGS.version} has no argument {key}", _instead(key))
            continue
        yield from _value(at, key, value)


def _instead(key: str) -> str:
    old = FLAGS.instead(f"--{key.replace('_', '-')}")
    if old is not None:
        return re.sub(r"--([a-z-]+)", lambda flag: flag[1].replace("-", "_"), old)
    if key in former.NOT_ENGINE_ARGUMENTS:
        return "leave it out: it belongs to `vllm serve`, which does not run here"
    close = difflib.get_close_matches(key.replace("-", "_"), ARGUMENTS, n=1, cutoff=0.75)
    return f"did you mean {close[0]}?" if close else "leave it out"


def _value(at: At, key: str, value: object) -> Iterator[Finding]:
    flag, number = FLAGS.find(f"--{key.replace('_', '-')}"), number_of(value)
    limits = bounds.VLLM.get(flag.name) if flag is not None else None
    if limits is not None and number is not None and not limits.holds(number):
        yield at.error("out-of-range", f"{key} is {value}", f"{limits}")
    if flag is not None and flag.choices and isinstance(value, str) and value not in flag.choices:
        yield at.error("argument-value", f'{key} does not take "{value}"', f"one of {', '.join(flag.choices)}")
    if flag is not None and flag.kind in {"int", "float"} and isinstance(value, str | list | dict) and number is None:
        yield at.error("argument-value", f"{key} is no number", "a number, without quotes")


def _kinds(model: Configured, arguments: Mapping[str, object]) -> Iterator[Finding]:
    own, groups = model.model, model.config.instance_group
    sizes = [number_of(arguments.get(key, 1)) or 1 for key in ("tensor_parallel_size", "pipeline_parallel_size")]
    gpus = int(sizes[0] * sizes[1])
    kinds = {group.kind for group in groups} or {"KIND_AUTO"}
    fix = "instance_group [ { count: 1 kind: KIND_MODEL } ]"
    at = own.at_field("instance_group", "kind") if groups else own.at("config.pbtxt")
    if gpus > 1 and kinds != {"KIND_MODEL"}:
        message = f"the model runs on {gpus} GPUs, which the vLLM backend takes only with KIND_MODEL"
        yield at.error("kind-model", message, fix)
    elif "KIND_GPU" in kinds:
        message = "KIND_GPU makes one engine for each GPU that Triton sees, and none loads where it sees none"
        yield at.warning("kind-gpu", message, fix)


def _loras(model: Configured, version: int, arguments: Mapping[str, object]) -> Iterator[Finding]:
    own, path = model.model, f"{version}/{_LORAS}"
    text = own.text(path)
    enabled = str(arguments.get("enable_lora", False)).lower() == "true"
    if text is None:
        if enabled:
            at = own.at(f"{version}/model.json", member_line(own.text(f"{version}/model.json") or "", "enable_lora"))
            message = f"enable_lora, and no {_LORAS} beside model.json"
            yield at.error("no-multi-lora", message, '{"sql": "/loras/sql"}')
        return
    if not enabled:
        message = "not read: model.json has no enable_lora"
        yield own.at(path).warning("multi-lora-unread", message, '"enable_lora": true in model.json')
    try:
        tree = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        yield own.at(path, line).error("json-syntax", "this is no JSON", '{"sql": "/loras/sql"}')
        return
    if not isinstance(tree, dict) or not all(isinstance(value, str) for value in tree.values()):
        yield own.at(path).error("json-syntax", "this is no object of names and folders", '{"sql": "/loras/sql"}')


def samples(models: Sequence[Configured]) -> Iterator[Finding]:
    """Shares that were probably copied from a sample. Half of a GPU is meant where two models share it."""
    several = sum(model.config.backend == "vllm" for model in models) > 1
    for model in models:
        for version in model.served if model.config.backend == "vllm" else ():
            arguments, path = read_arguments(model, version), f"{version}/model.json"
            share = None if isinstance(arguments, Finding) else number_of(arguments.get(SHARE))
            if share in SAMPLES and not (several and share == max(SAMPLES)):
                at = model.model.at(path, member_line(model.model.text(path) or "", SHARE))
                message = (
                    f"{SHARE} {shown(share or 0)} is what samples set, to start anywhere: the KV cache stays small"
                )
                yield at.warning("sample-value", message, "leave it out, or say what this engine may have of its GPU")


def shares(models: Sequence[Configured]) -> Iterator[Finding]:
    """Several engines in one server: whether their shares of a GPU's memory fit, if all are loaded."""
    parts = []
    for model in models:
        arguments = read_arguments(model, model.served[-1]) if model.config.backend == "vllm" and model.served else None
        if isinstance(arguments, Mapping) and "kv_cache_memory_bytes" not in arguments:
            share = number_of(arguments.get(SHARE)) or DEFAULT_SHARE
            parts.append((model.model.name, share * model.instances))
    total = sum(share for _, share in parts)
    if len(parts) > 1 and total > 1.0001:
        told = " + ".join(f"{name} {shown(share)}" for name, share in parts)
        message = f"if all are loaded, the models ask for {shown(total)} of their first GPU's memory: {told}"
        yield At(".").warning(
            "memory-sum", message, "lower gpu_memory_utilization in their model.json, or a server each"
        )
