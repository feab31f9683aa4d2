"""Reads what engines say about themselves: their models, their version, and thereby which software they are."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from engines.profile import Build, EngineKind


@dataclass(frozen=True, slots=True)
class EngineModel:
    """One entry of an engine's model list."""

    id: str
    max_model_len: int | None = None
    """Tokens of context; only vLLM says."""
    parent: str | None = None
    """The base model, for a LoRA adapter of vLLM."""
    root: str | None = None
    """What the name stands for, if the engine says: the same for every alias of one model."""
    owned_by: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer to a probe. Status 0: there was none."""

    status: int
    body: bytes = b""


NO_ANSWER = Answer(0)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Which software answers at an address, as far as it shows. `evidence` says why, for people."""

    kind: EngineKind | None
    evidence: str
    version: str | None = None
    rust_frontend: bool = False
    models: tuple[EngineModel, ...] = ()
    needs_key: bool = False
    """The model list asks for credentials."""


OWNERS = {
    "vllm": EngineKind.VLLM,
    "vllm-frontend-rs": EngineKind.VLLM,
    "tensorrt_llm": EngineKind.TRTLLM,
    "Triton Inference Server": EngineKind.TRITON,
}
"""`owned_by` in model lists (recordings `get_models`, `rust_get_models`, `models`, `models_list`)."""


def parse_models(body: bytes) -> tuple[EngineModel, ...]:
    """Read a model list; entries without an id and fields of the wrong type are passed over, junk gives nothing."""
    return tuple(_models(_object(body).get("data")))


def parse_build(body: bytes) -> Build:
    """Read an answer to `/version`; vLLM's Rust frontend adds a version of its own (recording `rust_get_version`)."""
    answer = _object(body)
    version = answer.get("version")
    known = version if isinstance(version, str) and 0 < len(version) <= 100 else None
    return Build(known, rust_frontend="rust_frontend_version" in answer)


def fingerprint(version: Answer, models: Answer, ready: Answer) -> Fingerprint:
    """Say which kind of engine gave these answers to `/version`, `/v1/models` and `/health/ready`.

    The model list decides where it can be read. Else: vLLM's Rust frontend names itself in its version, vLLM's refusal
    of a missing key is the bare word "Unauthorized", and only Triton's frontend has `/health/ready` or restricts its
    list by a header of its own.
    """
    build = parse_build(version.body) if version.status == 200 else Build()
    number = build.version
    rust = number is not None and build.rust_frontend
    listed = parse_models(models.body) if models.status == 200 else ()
    kind, evidence = _kind(models, ready, listed, rust=rust)
    return Fingerprint(kind, evidence, number, rust, listed, needs_key=models.status in {401, 403})


def _kind(
    models: Answer, ready: Answer, listed: tuple[EngineModel, ...], *, rust: bool
) -> tuple[EngineKind | None, str]:
    for model in listed:
        kind = OWNERS.get(model.owned_by or "")
        if kind is not None:
            return kind, f"its models are owned by '{model.owned_by}'"
    if rust:
        return EngineKind.VLLM, "its version names the Rust frontend"
    error = _object(models.body).get("error")
    if models.status == 401 and error == "Unauthorized":
        return EngineKind.VLLM, "it refuses a missing key as vLLM does"
    if models.status == 401 and isinstance(error, dict) and error.get("code") == "invalid_auth":
        return EngineKind.TRITON, "it restricts its model list as Triton does"
    if _is_triton_ready(ready):
        return EngineKind.TRITON, "it has Triton's /health/ready"
    return None, "nothing it says belongs to one kind of engine"


def _is_triton_ready(ready: Answer) -> bool:
    if ready.status == 200:
        return not ready.body
    detail = _object(ready.body).get("detail")
    return ready.status == 400 and isinstance(detail, str) and _NOT_READY.search(detail) is not None


def _models(data: object) -> Iterator[EngineModel]:
    for entry in data if isinstance(data, list) else ():
        if not isinstance(entry, dict):
            continue
        name, length = entry.get("id"), entry.get("max_model_len")
        if isinstance(name, str) and name:
            yield EngineModel(
                name,
                length if isinstance(length, int) and not isinstance(length, bool) and length > 0 else None,
                _text(entry.get("parent")),
                _text(entry.get("root")),
                _text(entry.get("owned_by")),
            )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _object(body: bytes) -> dict[str, object]:
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return decoded if isinstance(decoded, dict) else {}


_NOT_READY = re.compile(r"inference engine is not ready")
