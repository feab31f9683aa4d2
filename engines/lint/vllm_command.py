"""Command lines of `vllm serve`."""

from collections.abc import Iterator
from typing import Final

from engines.launch.flags.vllm_parsers import REASONING_PARSERS, TOOL_PARSERS
from engines.lint import legacy
from engines.lint.finding import Finding
from engines.lint.flag_rules import unknown_name
from engines.lint.start import Start

SHARE: Final = "--gpu-memory-utilization"
_CACHE: Final = "--kv-cache-memory-bytes"
_TOOLS: Final = "--tool-call-parser"
_AUTO: Final = "--enable-auto-tool-choice"


def rules(start: Start) -> Iterator[Finding]:
    """The faults of flags together."""
    yield from _model(start)
    yield from _parsers(start)
    yield from _memory(start)
    yield from _scheduling(start)
    yield from _adapters(start)
    yield from _devices(start)
    yield from _keys(start)


def _model(start: Start) -> Iterator[Finding]:
    named, arguments = start.text("--model"), [word.text for word in start.arguments]
    if start.module and arguments:
        message = f"the module takes no arguments, and {arguments[0]} is one"
        yield start.at().error("stray-argument", message, f"--model {arguments[0]}")
    elif named and arguments:
        yield start.at("--model").error("given-twice", f"two models: {arguments[0]} and {named}", "keep one of the two")
    elif len(arguments) > 1:
        message = f"one model is served, and there are {len(arguments)} arguments: {', '.join(arguments)}"
        yield start.at().error("stray-argument", message, "one model; the others in servers of their own")
    elif not named and not arguments and not start.has("--config") and start.text("--config") is None:
        yield start.at().warning("no-model", "no model: vLLM serves its default one", "vllm serve MODEL")
    for model in filter(None, (named, *arguments[:1])):
        yield from legacy.model_argument(model, start.at("--model"))


def _parsers(start: Start) -> Iterator[Finding]:
    plugins = start.text("--tool-parser-plugin") is not None
    yield from unknown_name(start, _TOOLS, TOOL_PARSERS, "unknown-parser", plugins=plugins)
    plugins = start.text("--reasoning-parser-plugin") is not None
    yield from unknown_name(start, "--reasoning-parser", REASONING_PARSERS, "unknown-parser", plugins=plugins)
    parser = start.text(_TOOLS)
    if start.has(_AUTO) and parser is None:
        message = f"{_AUTO} without {_TOOLS}: vLLM does not start"
        yield start.at(_AUTO).error("no-parser", message, f"{_TOOLS} hermes (the one that fits the model)")
    if parser is not None and not start.has(_AUTO):
        message = f"{_TOOLS} without {_AUTO}: requests with tool_choice auto get 400"
        yield start.at(_TOOLS).warning("no-auto-tools", message, _AUTO)
    pooling = start.text("--runner") == "pooling" or start.text("--convert") in {"embed", "classify"}
    if pooling and parser is not None:
        message = "a pooling model gives vectors or classes, and no tool calls"
        yield start.at(_TOOLS).error("pooling-tools", message, f"leave out {_TOOLS}, or --runner pooling")


def _memory(start: Start) -> Iterator[Finding]:
    if start.flag(_CACHE) is not None and start.flag(SHARE) is not None:
        message = f"{_CACHE} sets the size of the cache: {SHARE} counts no more"
        yield start.at(SHARE).warning("contradiction", message, "keep one of the two")


def _scheduling(start: Start) -> Iterator[Finding]:
    length, tokens, requests = (
        start.number(f"--{name}") for name in ("max-model-len", "max-num-batched-tokens", "max-num-seqs")
    )
    if length is not None and length < 1 and length != -1:
        yield start.at("--max-model-len").error("out-of-range", f"--max-model-len is {length:g}", "at least 1, or auto")
    if tokens and requests and tokens < requests:
        message = f"--max-num-batched-tokens {tokens:g} is below --max-num-seqs {requests:g}: vLLM does not start"
        fix = "--max-num-batched-tokens of at least as many"
        yield start.at("--max-num-batched-tokens").error("contradiction", message, fix)
    chunked = start.flag("--enable-chunked-prefill")
    if tokens and length and tokens < length and chunked is not None and not start.has("--enable-chunked-prefill"):
        message = f"without chunked prefill {tokens:g} tokens at once do not hold a prompt of {length:g}"
        fix = "--max-num-batched-tokens of at least --max-model-len"
        yield start.at("--max-num-batched-tokens").error("contradiction", message, fix)


def _adapters(start: Start) -> Iterator[Finding]:
    if start.has("--enable-lora"):
        most, held = start.number("--max-loras"), start.number("--max-cpu-loras")
        if most and held and held < most:
            message = f"--max-cpu-loras {held:g} is below --max-loras {most:g}"
            yield start.at("--max-cpu-loras").error("contradiction", message, f"--max-cpu-loras {most:g}, or more")
        return
    for name in ("--lora-modules", "--max-loras", "--max-lora-rank"):
        if start.flag(name) is not None:
            made = start.at(name).error if name == "--lora-modules" else start.at(name).warning
            yield made("no-lora", f"{name} without --enable-lora has no effect", "--enable-lora")


def _devices(start: Start) -> Iterator[Finding]:
    names = ("--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size")
    nodes = start.number("--nnodes") or 1
    ray = start.text("--distributed-executor-backend") == "ray"
    if start.visible and start.gpus > len(start.visible) and nodes == 1 and not ray and not start.on_cpu:
        message = f"it runs on {start.gpus} GPUs, and may use {len(start.visible)}"
        yield start.at(*names).error("too-few-gpus", message, f"give it {start.gpus} GPUs, or split it over fewer")


def _keys(start: Start) -> Iterator[Finding]:
    key = start.flag("--api-key")
    if key is not None and key.values and not all(value.startswith("$") for value in key.values):
        message = "a key on the command line is seen by all who may list programs, or read this file"
        yield start.at("--api-key").warning("key-in-sight", message, "the variable VLLM_API_KEY, out of a secret")
