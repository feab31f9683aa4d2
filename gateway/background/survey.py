"""What stands at addresses that somebody names: which engines, with which models, and what those are for."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engines.naming import task_of_name
from engines.probes import Answer, EngineModel, Fingerprint
from engines.profile import EngineKind
from gateway.background.fetch import NOBODY, Credentials, Fetch, NoAnswer
from gateway.background.listing import embeds, recognise, tasks_of
from gateway.balance.endpoint import Endpoint
from gateway.settings.models import Task
from gateway.wire.toolcalls.detect import NOTHING, Finding, from_name, from_template, template_in

_TEMPLATES: Final = ("chat_template.jinja", "chat_template.json", "tokenizer_config.json", "tokenizer.json")
_LONGEST: Final = 64 * 2**20
"""Bytes of a tokenizer's file; longer ones are something else."""


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model of an engine. `task` is None where it has one that this engine does not serve."""

    name: str
    aliases: tuple[str, ...] = ()
    task: Task | None = "chat"
    format: Finding = NOTHING
    """How it writes tool calls."""
    context: int | None = None
    """Tokens."""
    adapter_of: str | None = None


@dataclass(frozen=True, slots=True)
class FoundEngine:
    """An engine at an address. `keyed`: it was asked with the key."""

    url: str
    kind: EngineKind
    evidence: str
    version: str | None
    rust_frontend: bool
    models: tuple[FoundModel, ...]
    keyed: bool = False


@dataclass(frozen=True, slots=True)
class NotAnEngine:
    """An address at which there is none, why, and what can be done."""

    url: str
    reason: str
    fix: str


async def survey(fetch: Fetch, urls: Sequence[str], key: str = "") -> list[FoundEngine | NotAnEngine]:
    """Asks at all addresses at once. `key` is shown to those that ask for one."""
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(_at(fetch, url, key)) for url in urls]
    return [task.result() for task in asked]


async def _at(fetch: Fetch, url: str, key: str) -> FoundEngine | NotAnEngine:
    endpoint = Endpoint(url)
    shown: Credentials = NOBODY
    found = await recognise(fetch, endpoint)
    if isinstance(found, Fingerprint) and found.needs_key and key:
        shown = {"authorization": f"Bearer {key}"}
        found = await recognise(fetch, endpoint, shown)
    if isinstance(found, NoAnswer):
        return NotAnEngine(url, found.reason, "start the engine, or leave this address out")
    if found.needs_key:
        return _locked(url, found, tried=bool(shown))
    if found.kind is None:
        return await _stranger(fetch, endpoint, url, found)
    models = await _models(fetch, found.kind, endpoint, found.models, shown)
    return FoundEngine(
        url, found.kind, found.evidence, found.version, found.rust_frontend, tuple(models), keyed=bool(shown)
    )


def _locked(url: str, found: Fingerprint, *, tried: bool) -> NotAnEngine:
    what = f"{found.kind.value} " if found.kind is not None else "a server that "
    if tried:
        return NotAnEngine(url, f"{what}does not take the key", "use the key that it was started with")
    return NotAnEngine(url, f"{what}asks for a key", "put it into an environment variable, and give --key VARIABLE")


async def _stranger(fetch: Fetch, endpoint: Endpoint, url: str, found: Fingerprint) -> NotAnEngine:
    """A server that is none of ours: Triton's other port is the usual one to be mistaken."""
    ready = await fetch.get(endpoint, "/v2/health/live")
    if isinstance(ready, Answer) and ready.status == 200:
        reason = "Triton's own HTTP port, which has no OpenAI paths"
        return NotAnEngine(url, reason, "start its OpenAI frontend (openai_frontend/main.py), usually on port 9000")
    owner = next((model.owned_by for model in found.models if model.owned_by), None)
    reason = f"a server whose models are owned by '{owner}'" if owner else "a server that is not recognised"
    fix = "give the address of vLLM, trtllm-serve or Triton's OpenAI frontend, without /v1"
    return NotAnEngine(url, reason, fix)


async def _models(
    fetch: Fetch, kind: EngineKind, endpoint: Endpoint, listed: Sequence[EngineModel], shown: Credentials
) -> list[FoundModel]:
    """The models of an engine; names for one and the same are put together."""
    first: dict[str, EngineModel] = {}
    aliases: dict[str, list[str]] = {}
    for model in listed:
        same = model.root if model.parent is None and model.root else model.id
        if first.setdefault(same, model) is not model:
            aliases.setdefault(first[same].id, []).append(model.id)
    tasks = await tasks_of(fetch, kind, endpoint, [model.id for model in first.values()], shown, {})
    found = []
    for model in first.values():
        task = await _task(fetch, kind, endpoint, model, shown, tasks[model.id])
        wire = await asyncio.to_thread(_format, model) if task == "chat" else NOTHING
        names = tuple(aliases.get(model.id, ()))
        found.append(FoundModel(model.id, names, task, wire, model.max_model_len, model.parent))
    return found


async def _task(
    fetch: Fetch, kind: EngineKind, endpoint: Endpoint, model: EngineModel, shown: Credentials, task: Task
) -> Task | None:
    """Where the list says nothing about tasks, a name that hints at another one is followed up."""
    if kind is EngineKind.VLLM or task_of_name(model.id) is None:
        return task
    return "embedding" if await embeds(fetch, kind, endpoint, model.id, shown) else None


def _format(model: EngineModel) -> Finding:
    """How a model writes tool calls: by the files of its tokenizer if they are on this machine, or by its names."""
    folder = Path(model.root or "")
    if model.root and folder.is_absolute():
        texts = {name: text for name in _TEMPLATES if (text := _read(folder / name))}
        found = from_template(template_in(texts))
        if found.format:
            return found
    names = (model.id, model.root or "")
    return next((found for name in names if name and (found := from_name(name)).format), NOTHING)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8") if file.stat().st_size <= _LONGEST else ""
    except (OSError, UnicodeDecodeError, ValueError):
        return ""
