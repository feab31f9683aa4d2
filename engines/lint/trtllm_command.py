"""Command lines of `trtllm-serve`."""

from collections.abc import Iterator
from typing import Final

from engines.launch.flags.trtllm import REASONING_PARSERS, TOOL_PARSERS
from engines.lint import legacy
from engines.lint.finding import Finding
from engines.lint.flag_rules import unknown_name
from engines.lint.start import Start

_WITH_CONFIG: Final = frozenset({"disaggregated", "disaggregated_mpi_worker"})
_SUBCOMMANDS: Final = frozenset({"serve", "embeddings", "mm_embedding_serve", *_WITH_CONFIG})
_OTHERS: Final = frozenset({"llama3", "llama3_json", "mistral", "hermes"})


def other_flags(start: Start) -> bool:
    """Whether it is a subcommand with flags of its own, which no table has."""
    return bool(start.words) and start.words[0].text in _WITH_CONFIG


def rules(start: Start) -> Iterator[Finding]:
    """The faults of flags together."""
    yield from _model(start)
    yield from _parsers(start)
    yield from _parallel(start)
    if start.text("--backend") in {"tensorrt", "trt"}:
        message = "the TensorRT engine backend is gone: PyTorch is the only one"
        yield start.at("--backend").error("removed-value", message, "leave --backend out; " + legacy.DIRECT)
    if start.flag("--moe_cluster_parallel_size") is not None:
        at = start.at("--moe_cluster_parallel_size")
        yield at.warning("deprecated-flag", "--moe_cluster_parallel_size is deprecated", "leave it out")
    if start.has("--grpc"):
        for name in ("--tool_parser", "--chat_template", "--server_role"):
            if start.flag(name) is not None:
                fix = f"leave out --grpc, or {name}"
                yield start.at(name).error("contradiction", f"{name} and --grpc exclude each other", fix)
    if start.flag("--metadata_server_config_file") is not None and start.flag("--server_role") is None:
        at = start.at("--metadata_server_config_file")
        message = "a metadata server, and no --server_role: it does not start"
        yield at.error("no-role", message, "--server_role CONTEXT or GENERATION")


def _model(start: Start) -> Iterator[Finding]:
    words = [word.text for word in start.arguments]
    subcommand = words[0] if words and words[0] in _SUBCOMMANDS else ""
    models = words[1:] if subcommand else words
    if not models:
        yield start.at().error("no-model", "no model is named", "trtllm-serve MODEL")
        return
    yield from legacy.model_argument(models[0], start.at())
    if len(models) > 1:
        message = f"one model is served, and there are {len(models)} arguments: {', '.join(models)}"
        yield start.at().error("stray-argument", message, "one model; the others in servers of their own")
    if subcommand == "embeddings" and start.flag("--tool_parser") is not None:
        message = "an embedding server gives vectors, and no tool calls"
        yield start.at("--tool_parser").error("pooling-tools", message, "leave out --tool_parser")


def _parsers(start: Start) -> Iterator[Finding]:
    name = start.text("--tool_parser")
    if name in _OTHERS:
        message = f"trtllm-serve has no parser for this format ({name})"
        fix = "leave it out, and let the gateway read the calls: tools: {parse: gateway}"
        yield start.at("--tool_parser").error("unknown-parser", message, fix)
    elif name != "auto":
        yield from unknown_name(start, "--tool_parser", TOOL_PARSERS, "unknown-parser")
    yield from unknown_name(start, "--reasoning_parser", REASONING_PARSERS, "unknown-parser")


def _parallel(start: Start) -> Iterator[Finding]:
    tensor = start.number("--tensor_parallel_size") or 1
    experts = start.number("--moe_expert_parallel_size")
    if experts and tensor % experts:
        message = f"experts are split within the tensor parallel GPUs: {experts:g} does not divide {tensor:g}"
        fix = "--moe_expert_parallel_size that divides --tensor_parallel_size"
        yield start.at("--moe_expert_parallel_size").error("contradiction", message, fix)
    node = start.number("--gpus_per_node")
    if start.visible and start.gpus > len(start.visible) and (node is None or start.gpus <= node):
        message = f"it runs on {start.gpus} GPUs, and may use {len(start.visible)}"
        at = start.at("--tensor_parallel_size", "--pipeline_parallel_size")
        yield at.error("too-few-gpus", message, f"give it {start.gpus} GPUs, or split it over fewer")
