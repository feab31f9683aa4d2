"""The models of a file that names none: those that the engines list, as `turnout serve` would serve them."""

import asyncio
from collections.abc import Sequence

from engines.probes import parse_models
from engines.profile import EngineKind
from gateway.doctor.asker import Asker
from gateway.doctor.asking import Heard, Question
from gateway.doctor.checks.identity import listing
from gateway.doctor.subject import Site
from gateway.settings.models import Model, Task
from gateway.settings.tree import Settings

_PATHS = Question("/openapi.json")
"""A vLLM server of an embedding model has other paths than a chat model's (engines/vllm.md §3.7)."""


async def with_models(settings: Settings, asker: Asker, sites: Sequence[Site]) -> Settings:
    """The settings with the models of these replicas, one replica for each engine."""
    found: dict[str, Model] = {}
    for models in await asyncio.gather(*(_models(asker, site) for site in sites)):
        for name, model in models.items():
            found.setdefault(name, model)
    return settings.model_copy(update={"models": found})


async def _models(asker: Asker, site: Site) -> dict[str, Model]:
    questions = (listing(site), _PATHS) if site.settings.kind is EngineKind.VLLM else (listing(site),)
    answers = await asker.ask(site, *questions)
    task = _task(answers[_PATHS]) if len(questions) > 1 else "chat"
    heard = answers[listing(site)]
    return {model.id: Model(engine=site.engine, task=task) for model in parse_models(heard.body)} if heard.ok else {}


def _task(heard: Heard) -> Task:
    paths = heard.json().get("paths")
    known = paths if isinstance(paths, dict) else {}
    return "embedding" if "/v1/embeddings" in known and "/v1/chat/completions" not in known else "chat"
