"""Which kinds of engine suit a model, a GPU and what applications need, and how each would be started."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias, assert_never

from engines.advice.memory import Room, layouts, trtllm_room, vllm_room
from engines.advice.model import Model
from engines.advice.table import FAMILIES, FP8_CAPABILITY, VLLM_CAPABILITY, VLLM_CUDA, Family, Gpu
from engines.profile import EngineKind

_NO_FAMILY: Final = Family()
GATEWAY_READS: Final = "none of its parsers reads this family's calls; the gateway can (tools.parse: gateway)"


class Need(Enum):
    """What applications will ask for."""

    TOOLS = "tools"
    EMBEDDINGS = "embeddings"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Subject:
    """The model: its name for engines, and as much of its shape as is known."""

    name: str
    weight_bytes: int
    model: Model | None

    @property
    def family(self) -> Family:
        """How its family writes tool calls."""
        return FAMILIES.get(self.model.family, _NO_FAMILY) if self.model is not None else _NO_FAMILY

    @property
    def pools(self) -> bool:
        """It gives embeddings, and no text."""
        return self.model is not None and self.model.pools


@dataclass(frozen=True, slots=True)
class Wanted:
    """What it is to run on, and for what."""

    gpu: Gpu
    gpus: int = 1
    context: int | None = None
    needs: frozenset[Need] = frozenset()
    requests: int | None = None


@dataclass(frozen=True, slots=True)
class EngineAdvice:
    """What speaks for and against one kind."""

    kind: EngineKind
    supported: bool
    why: str
    room: Room
    settings: Mapping[str, object] | None
    """Launch settings to start with; None where it cannot be started."""
    apis: tuple[str, ...]
    tools: str

    @property
    def fits(self) -> bool:
        """It can be started, and the memory is enough."""
        return self.supported and self.room.fits


Against: TypeAlias = Callable[[Subject, Wanted], Iterator[str]]


def advise(subject: Subject, wanted: Wanted) -> list[EngineAdvice]:
    """What each kind of engine makes of it."""
    return [_engine(kind, subject, wanted) for kind in EngineKind]


def _engine(kind: EngineKind, subject: Subject, wanted: Wanted) -> EngineAdvice:
    against = list(_against(kind, subject, wanted))
    room = _best_room(kind, subject, wanted)
    supported = not against
    why = "; ".join([*(against or [_support(kind, wanted.gpu)]), *([] if against else _fit(room, wanted))])
    startable = supported and room.fits
    return EngineAdvice(
        kind,
        supported,
        why,
        room,
        _settings(kind, subject, wanted, room) if startable else None,
        _apis(kind, pools=subject.pools),
        _tools(kind, subject),
    )


def _best_room(kind: EngineKind, subject: Subject, wanted: Wanted) -> Room:
    """The fewest GPUs on which it fits, else all of them. A shorter context than the model's own is the last resort."""
    make = trtllm_room if kind is EngineKind.TRTLLM else vllm_room
    model = subject.model
    heads = model.heads if model is not None else None
    ways = list(layouts(wanted.gpus, heads))
    whole = wanted.context or (model.context if model is not None else None)
    for context in dict.fromkeys((whole, wanted.context)):
        for layout in ways:
            room = make(wanted.gpu, layout, subject.weight_bytes, model, context, wanted.requests or 1)
            if room.fits and (room.context or not model):
                return room
    return make(wanted.gpu, ways[-1], subject.weight_bytes, model, wanted.context, wanted.requests or 1)


def _fit(room: Room, wanted: Wanted) -> list[str]:
    if room.fits:
        return [f"fits on {_gpus(room.layout.gpus)}"]
    if room.kv_room <= 0:
        return [f"the weights do not fit on {_gpus(wanted.gpus)}"]
    return [f"the KV cache does not fit on {_gpus(wanted.gpus)}"]


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"


def _support(kind: EngineKind, gpu: Gpu) -> str:
    newer = f"; needs CUDA {gpu.cuda} or newer" if gpu.cuda else ""
    match kind:
        case EngineKind.VLLM:
            return (
                f"compute capability {gpu.capability} (at least {VLLM_CAPABILITY}); built for CUDA {VLLM_CUDA}{newer}"
            )
        case EngineKind.TRTLLM:
            return f"{gpu.name} is on TensorRT-LLM's list{newer}"
        case EngineKind.TRITON:
            return f"with its vLLM backend, which supports compute capability {gpu.capability}{newer}"
    assert_never(kind)


def _against(kind: EngineKind, subject: Subject, wanted: Wanted) -> Iterator[str]:
    """What makes it impossible."""
    gpu, needs = wanted.gpu, wanted.needs
    method = subject.model.quantization.method if subject.model and subject.model.quantization else ""
    if subject.pools and needs & {Need.TOOLS, Need.JSON}:
        yield "an embedding model writes no text: no tools and no JSON"
    if Need.EMBEDDINGS in needs and not subject.pools:
        yield "embeddings need an embedding model, on an engine of its own"
    if kind is EngineKind.TRTLLM:
        if not gpu.trtllm:
            yield f"{gpu.name} is not on TensorRT-LLM's list"
        elif method == "fp8" and not gpu.trtllm_fp8:
            yield "TensorRT-LLM computes FP8 on H100 and later only"
        return
    if gpu.capability < VLLM_CAPABILITY:
        yield f"compute capability {gpu.capability} is below {VLLM_CAPABILITY}, vLLM's lowest"
    if kind is EngineKind.TRITON and Need.JSON in needs:
        yield "Triton's OpenAI frontend ignores response_format"


def cautions(subject: Subject, wanted: Wanted) -> Iterator[str]:
    """What to know before it is started, whatever the kind."""
    model, gpu = subject.model, wanted.gpu
    if model is None:
        yield "the size of a token in the KV cache is not known: give the model's config.json or folder"
        return
    if not model.checked:
        yield f"the family {model.family} has not been compared with published sizes: take the figures as a guess"
    method = model.quantization.method if model.quantization is not None else ""
    if method == "fp8" and gpu.capability < FP8_CAPABILITY:
        yield f"{gpu.name} has no FP8 arithmetic: vLLM keeps the weights in FP8 and computes in 16 bits"
    if model.sees:
        yield "what reads images or sound is not counted: some hundred million parameters more"
    if model.dtype == "bfloat16" and VLLM_CAPABILITY <= gpu.capability < 8.0:
        yield f"{gpu.name} has no bfloat16: vLLM needs dtype: half"
    if model.context is not None and wanted.context is not None and wanted.context > model.context:
        yield f"the model's own limit is {model.context} tokens: engines refuse a longer context"
    if gpu.unified:
        yield f"the memory of {gpu.name} is also the machine's: what other programs hold is missing"


def _apis(kind: EngineKind, *, pools: bool) -> tuple[str, ...]:
    if pools:
        return ("/v1/embeddings", "/v1/rerank", "/v1/score") if kind is EngineKind.VLLM else ("/v1/embeddings",)
    text = ("/v1/chat/completions", "/v1/completions")
    match kind:
        case EngineKind.VLLM:
            return (*text, "/v1/responses", "/v1/messages", "/tokenize")
        case EngineKind.TRTLLM:
            return (*text, "/v1/responses", "/v1/messages (newer versions)")
        case EngineKind.TRITON:
            return text
    assert_never(kind)


def _parser(kind: EngineKind, family: Family) -> str:
    match kind:
        case EngineKind.VLLM:
            return family.vllm
        case EngineKind.TRTLLM:
            return family.trtllm
        case EngineKind.TRITON:
            return family.triton
    assert_never(kind)


def _tools(kind: EngineKind, subject: Subject) -> str:
    if subject.pools:
        return "none: an embedding model"
    if subject.model is None:
        return "not known without the model's config.json"
    if kind is EngineKind.TRTLLM and subject.model.family == "gpt_oss":
        return "built in: it knows this family's own format"
    return _parser(kind, subject.family) or GATEWAY_READS


def _settings(kind: EngineKind, subject: Subject, wanted: Wanted, room: Room) -> Mapping[str, object]:
    parser = _parser(kind, subject.family) if not wanted.needs or Need.TOOLS in wanted.needs else ""
    tool_parser = {"tool_parser": parser} if parser and not subject.pools else {}
    match kind:
        case EngineKind.VLLM:
            return {**_vllm(subject, wanted, room), **tool_parser, **_reasoning(subject, subject.family.vllm_reasoning)}
        case EngineKind.TRTLLM:
            return {**_trtllm(subject, wanted, room), **tool_parser}
        case EngineKind.TRITON:
            inner = {"backend": "vllm", **_vllm(subject, wanted, room)}
            length = {} if subject.pools else {"default_max_tokens": 1024}
            name = subject.name.rstrip("/").rpartition("/")[2] or "model"
            return {
                "repository": "./models",
                "tokenizer": subject.name,
                "backend": "vllm",
                **length,
                **tool_parser,
                "models": {name: inner},
            }
    assert_never(kind)


def _reasoning(subject: Subject, parser: str) -> dict[str, object]:
    return {"reasoning_parser": parser} if parser and not subject.pools else {}


def _parallel(room: Room) -> dict[str, object]:
    found: dict[str, object] = {}
    if room.layout.tensor > 1:
        found["tensor_parallel_size"] = room.layout.tensor
    if room.layout.pipeline > 1:
        found["pipeline_parallel_size"] = room.layout.pipeline
    return found


def _vllm(subject: Subject, wanted: Wanted, room: Room) -> dict[str, object]:
    found: dict[str, object] = {"model": subject.name, **_parallel(room)}
    if subject.model is not None and subject.model.dtype == "bfloat16" and wanted.gpu.capability < 8.0:
        found["dtype"] = "half"
    if subject.pools:
        return {**found, "runner": "pooling"}
    if room.context is not None:
        found["max_model_len"] = room.context
    if wanted.requests is not None:
        found["max_num_seqs"] = wanted.requests
    return found


def _trtllm(subject: Subject, wanted: Wanted, room: Room) -> dict[str, object]:
    if subject.pools:
        return {"model": subject.name, "task": "embedding"}
    found: dict[str, object] = {"model": subject.name, **_parallel(room)}
    if room.context is not None:
        found["max_seq_len"] = room.context
    if wanted.requests is not None:
        found["max_batch_size"] = wanted.requests
    if wanted.needs & {Need.JSON, Need.TOOLS}:
        found["guided_decoding_backend"] = "xgrammar"
    return {**found, **_reasoning(subject, subject.family.trtllm_reasoning)}
