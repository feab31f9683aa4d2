"""What is probably not meant in a launch, as far as its own settings tell."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from engines.launch.command import option_of
from engines.launch.flags.table import read_flags
from engines.launch.flags.trtllm import EMBEDDINGS
from engines.launch.flags.trtllm import REASONING_PARSERS as TRTLLM_REASONING
from engines.launch.flags.trtllm import TOOL_PARSERS as TRTLLM_TOOLS
from engines.launch.flags.vllm_parsers import REASONING_PARSERS as VLLM_REASONING
from engines.launch.flags.vllm_parsers import TOOL_PARSERS as VLLM_TOOLS
from engines.launch.kinds import FLAGS, AnyLaunch, command_of, kind_of
from engines.launch.triton import TritonLaunch, TrtllmModel, VllmModel
from engines.launch.trtllm import TrtllmLaunch, overridden
from engines.launch.vllm import VllmLaunch

_UNSET: tuple[object, ...] = (None, (), {}, False)

_OF_SECRETS: Final[Mapping[str, str]] = {
    "--api-key": "api_key_file: /run/secrets/KEY",
    "--hf-token": "leave it out, and set HF_TOKEN where the engine is started",
    "--openai-restricted-api": "restricted: [{apis: […], header: …, value_file: /run/secrets/VALUE}]",
}


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that is probably not meant: the key within the launch settings, the rule, why, and the way out."""

    key: str
    rule: str
    message: str
    fix: str


def remarks(launch: AnyLaunch) -> Iterator[Remark]:
    """Everything that is odd about a launch by itself."""
    match launch:
        case VllmLaunch():
            yield from _vllm(launch)
            yield from _parsers(launch, "vLLM 0.32", VLLM_TOOLS, VLLM_REASONING)
        case TrtllmLaunch():
            yield from _trtllm(launch)
            yield from _parsers(launch, "trtllm-serve", TRTLLM_TOOLS, TRTLLM_REASONING)
        case TritonLaunch():
            yield from _triton(launch)
        case _:
            assert_never(launch)
    yield from flag_remarks(launch)


def flag_remarks(launch: AnyLaunch) -> Iterator[Remark]:
    """Flags that the engine does not know, or does not take so, and those that say what a key says already."""
    words = [word for word in command_of(launch, "0.0.0.0", 1).words if isinstance(word, str)]
    rendered = words[: len(words) - len(launch.extra_args)]
    for given in read_flags(FLAGS[kind_of(launch)], rendered):
        key = _setting_of(launch, given.flag.name) if given.flag is not None else None
        if given.fault and key is not None:
            yield Remark(key, "flag-value", given.fault, given.fix)
    for given in read_flags(FLAGS[kind_of(launch)], launch.extra_args):
        key = _setting_of(launch, given.flag.name) if given.flag is not None else None
        if given.fault:
            yield Remark("extra_args", "unknown-flag" if given.flag is None else "flag-value", given.fault, given.fix)
        elif key is not None:
            message = f"{given.written} is also what the key {key} says: the last one on the line wins"
            yield Remark("extra_args", "given-twice", message, "keep one of the two")
        if given.flag is not None and given.flag.name in _OF_SECRETS and given.values:
            message = f"what follows {given.written} is printed wherever the command is: it is no place for a secret"
            yield Remark("extra_args", "secret-printed", message, _OF_SECRETS[given.flag.name])


def _setting_of(launch: AnyLaunch, flag: str) -> str | None:
    """The key of a launch that is set and renders this flag."""
    for name, info in type(launch).model_fields.items():
        option = option_of(info)
        if option is not None and option.flag == flag and getattr(launch, name) not in (None, (), {}):
            return name
    return None


def _idle(key: str, why: str, fix: str = "leave it out") -> Remark:
    return Remark(key, "no-effect", f"has no effect: {why}", fix)


def _is_set(launch: AnyLaunch, *keys: str) -> Iterator[str]:
    return (key for key in keys if getattr(launch, key) not in _UNSET)


def _vllm(launch: VllmLaunch) -> Iterator[Remark]:
    if launch.kv_cache_memory_bytes is not None and launch.gpu_memory_utilization is not None:
        yield _idle("gpu_memory_utilization", "kv_cache_memory_bytes says how large the cache is")
    if launch.device == "cpu":
        for key in _is_set(launch, "devices"):
            yield _idle(key, "it computes on the processor (device: cpu)")
    else:
        for key in _is_set(launch, "cpu_kv_cache", "cpu_threads"):
            yield _idle(key, "it computes on GPUs", "device: cpu, or leave it out")
    for key in _is_set(launch, "max_loras", "max_lora_rank") if not launch.loras else ():
        yield _idle(key, "there are no adapters", "name some in loras, or leave it out")
    for key in _is_set(launch, "tool_parser", "reasoning_parser") if launch.runner == "pooling" else ():
        yield _idle(key, "runner: pooling has no chat")
    at_once, tokens = launch.max_num_seqs, launch.max_num_batched_tokens
    if at_once is not None and tokens is not None and tokens < at_once:
        message = f"vLLM refuses to start with fewer tokens than requests at once (max_num_seqs: {at_once})"
        yield Remark("max_num_batched_tokens", "contradiction", message, f"at least {at_once}")


def _trtllm(launch: TrtllmLaunch) -> Iterator[Remark]:
    for key, member in overridden(launch):
        yield _idle(key, f"settings.{member.partition('.')[0]} wins over it", "keep one of the two")
    if launch.task == "embedding":
        for name, info in TrtllmLaunch.model_fields.items():
            option = option_of(info)
            known = option is None or not (option.flag or option.member) or option.flag in EMBEDDINGS | {"--host"}
            for key in _is_set(launch, name) if not known else ():
                yield _idle(key, "trtllm-serve embeddings does not have it")


def _triton(launch: TritonLaunch) -> Iterator[Remark]:
    for key in _is_set(launch, "load_models") if launch.model_control_mode != "explicit" else ():
        yield _idle(key, "all models load", "model_control_mode: explicit, or leave it out")
    for key in _is_set(launch, "kserve_http_port", "kserve_grpc_port") if not launch.kserve else ():
        yield _idle(key, "KServe is off", "kserve: true, or leave it out")
    with_adapters = [name for name, model in launch.models.items() if isinstance(model, VllmModel) and model.loras]
    if with_adapters and launch.lora_separator is None:
        message = f"nobody can ask for the adapters of {with_adapters[0]} without lora_separator"
        yield Remark("models", "lora-separator", message, "lora_separator: _lora_")
    other = VllmModel if launch.backend == "tensorrtllm" else TrtllmModel
    for name, model in launch.models.items() if launch.backend is not None else ():
        if isinstance(model, other):
            message = f"puts every request as {launch.backend} has it, and {name} runs on another backend"
            yield Remark("backend", "backend-differs", message, "leave it out")
    absent = [name for name in launch.load_models if launch.models and name not in launch.models]
    if absent:
        message = f"{absent[0]} is not among models"
        yield Remark("load_models", "unknown-model", message, _close(absent[0], tuple(launch.models)))


def _parsers(
    launch: VllmLaunch | TrtllmLaunch, title: str, tools: Sequence[str], reasoning: Sequence[str]
) -> Iterator[Remark]:
    for key, known in (("tool_parser", tools), ("reasoning_parser", reasoning)):
        name = getattr(launch, key)
        own = any(word.partition("=")[0].endswith("-plugin") for word in launch.extra_args)
        if name is not None and name not in known and not own:
            what = key.replace("_", " ")
            yield Remark(key, "unknown-parser", f'{title} has no {what} "{name}"', _close(name, known))


def _close(wrong: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(wrong, known, n=1)
    return f"did you mean {close[0]}?" if close else f"it has {', '.join(known)}"
