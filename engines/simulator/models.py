"""The models of a simulated engine, as a user or a test names them."""

from dataclasses import dataclass, replace
from enum import StrEnum

from engines.simulator.markup import Markup
from engines.simulator.script import Script, tiny_script


class Task(StrEnum):
    """What a model is for."""

    CHAT = "chat"
    EMBEDDING = "embedding"


@dataclass(frozen=True, slots=True)
class SimulatedModel:
    """One model. What is None takes the habit of the engine it runs on."""

    name: str
    task: Task = Task.CHAT
    aliases: tuple[str, ...] = ()
    """vLLM: further served names; answers carry `name`."""
    adapters: tuple[str, ...] = ()
    """LoRA names. vLLM: listed by themselves; Triton: listed as `<name>_lora_<adapter>`."""
    max_length: int = 4096
    """Context length in tokens."""
    markup: Markup | None = None
    """How the model writes tool calls: hermes for vLLM and trtllm-serve, llama3 for Triton."""
    parser: bool = True
    """Whether the engine was started with the tool parser that fits `markup`."""
    reasoning: str | None = None
    """The reasoning parser: any name for vLLM; `qwen3` or `deepseek-r1` for trtllm-serve; Triton has none."""
    guided: bool = True
    """A JSON schema is kept to; trtllm-serve: a guided decoding backend is set, which a named tool choice needs too."""
    default_tokens: int = 16
    """Triton: `--default-max-tokens`, for requests without a limit."""
    backend: str = "vllm"
    """Triton: `vllm`, or `python` for the TRT-LLM tensor names."""
    custom_metrics: bool = True
    """Triton: `/metrics` also has the vLLM backend's gauges, of which the running requests are one."""
    dimensions: int = 384
    """Length of the vectors of an embedding model."""
    script: Script = tiny_script


def parse_model(text: str) -> SimulatedModel:
    """A model from `NAME` or `NAME:embedding` or `NAME:chat`, optionally `NAME:chat:noparser`.

    Raises ValueError with a readable text for an unknown word behind a colon.
    """
    name, *words = text.split(":")
    # Names such as `llama3:8b` are ordinary; only the words below are options.
    while words and words[0] not in ("chat", "embedding", "noparser", "reasoning"):
        name = f"{name}:{words.pop(0)}"
    if not name:
        raise ValueError("a model needs a name")
    model = SimulatedModel(name)
    for word in words:
        match word:
            case "chat" | "embedding":
                model = replace(model, task=Task(word), max_length=256 if word == "embedding" else model.max_length)
            case "noparser":
                model = replace(model, parser=False)
            case "reasoning":
                model = replace(model, reasoning="qwen3")
            case _:
                raise ValueError(f"unknown option {word!r}: use chat, embedding, noparser or reasoning")
    return model
