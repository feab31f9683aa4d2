"""What engines have: the models they list, what each is for, and which software answers at an address."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from engines.naming import task_of_name
from engines.probes import NO_ANSWER, Answer, Fingerprint, fingerprint
from engines.profile import EngineKind, Operation
from engines.registry import profile
from gateway.background.fetch import NOBODY, Credentials, Fetch, NoAnswer
from gateway.balance.endpoint import Endpoint
from gateway.settings.models import Task

_CHAT_PATH: Final = "/v1/chat/completions"
_EMBEDDINGS_PATH: Final = "/v1/embeddings"
_RERANK_PATHS: Final = frozenset({"/v1/rerank", "/rerank"})


class _Document(msgspec.Struct):
    paths: dict[str, msgspec.Raw] = {}


async def recognise(fetch: Fetch, endpoint: Endpoint, credentials: Credentials = NOBODY) -> Fingerprint | NoAnswer:
    """Which software answers at an address, and the models it lists; why there is no answer, if there is none."""
    paths = ("/version", "/v1/models", "/health/ready")
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(fetch.get(endpoint, path, credentials)) for path in paths]
    answers = [task.result() for task in asked]
    silent = [answer for answer in answers if isinstance(answer, NoAnswer)]
    if len(silent) == len(answers):
        return silent[0]
    version, models, ready = (answer if isinstance(answer, Answer) else NO_ANSWER for answer in answers)
    return fingerprint(version, models, ready)


async def tasks_of(
    fetch: Fetch,
    kind: EngineKind,
    endpoint: Endpoint,
    models: Iterable[str],
    credentials: Credentials,
    known: Mapping[str, Task],
) -> dict[str, Task]:
    """What each model is for; those that are `known` are not asked about again.

    Only vLLM serves embeddings as a matter of course, and its model list does not say what a model does.
    """
    tasks: dict[str, Task] = {model: known[model] for model in models if model in known}
    new = [model for model in models if model not in known]
    if kind is not EngineKind.VLLM or not new:
        return tasks | dict.fromkeys(new, "chat")
    routes = await _routes(fetch, endpoint, credentials)
    if routes and _CHAT_PATH not in routes and (_EMBEDDINGS_PATH in routes or routes & _RERANK_PATHS):
        return tasks | {model: _pooling_task(model, routes) for model in new}
    for model in new:
        may_embed = not routes or _EMBEDDINGS_PATH in routes
        tasks[model] = "embedding" if may_embed and await embeds(fetch, kind, endpoint, model, credentials) else "chat"
    return tasks


def _pooling_task(model: str, routes: frozenset[str]) -> Task:
    """A server without chat has embeddings, ranks texts, or both: then its name decides."""
    if _EMBEDDINGS_PATH in routes and not (routes & _RERANK_PATHS and task_of_name(model) == "rerank"):
        return "embedding"
    return "rerank"


async def _routes(fetch: Fetch, endpoint: Endpoint, credentials: Credentials) -> frozenset[str]:
    """The paths of an engine's OpenAPI document: a server of an embedding model has other ones than a chat model's
    (engines/vllm.md §3.7). Empty where there is none: it can be switched off, and the Rust frontend has none.
    """
    answer = await fetch.get(endpoint, "/openapi.json", credentials)
    if not isinstance(answer, Answer) or answer.status != 200:
        return frozenset()
    try:
        return frozenset(msgspec.json.decode(answer.body, type=_Document).paths)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return frozenset()


async def embeds(fetch: Fetch, kind: EngineKind, endpoint: Endpoint, model: str, credentials: Credentials) -> bool:
    """Whether the engine makes a vector of one word; the only sure sign where the routes do not tell."""
    path = profile(kind).paths.get(Operation.EMBEDDINGS)
    if path is None:
        return False
    body = msgspec.json.encode({"model": model, "input": "ping"})
    answer = await fetch.post(endpoint, path.decode(), credentials, body)
    return isinstance(answer, Answer) and answer.status == 200
