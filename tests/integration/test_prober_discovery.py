"""Which models engines have and what they are for, asked on real sockets."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from gateway.background.discovery import PATIENCE, Discovery
from gateway.background.fetch import Fetch
from gateway.metrics import Meters
from gateway.proxy.building import build_plane
from gateway.settings.tree import Settings
from tests.support.json_type import Json
from tests.support.openai_bytes import EMBEDDINGS, vllm_error
from tests.support.scripted import Script, ScriptedEngine, in_turn, reply, silent

CHAT_ROUTES = ["/v1/chat/completions", "/v1/completions", "/v1/models"]
EMBEDDING_ROUTES = ["/v1/embeddings", "/v1/models", "/pooling"]
VECTOR = reply({"object": "list", "data": [{"index": 0, "embedding": [0.5]}]})
NO_ROUTE = reply({"detail": "Not Found"}, status=404)


def listing(*names: str) -> Script:
    return reply({"object": "list", "data": [{"id": name, "owned_by": "vllm"} for name in names]})


def document(routes: list[str]) -> Script:
    return reply({"openapi": "3.1.0", "paths": {path: {"post": {}} for path in routes}})


class Found:
    """A discovery and the settings it has applied, in their order."""

    def __init__(self, fetch: Fetch, *engines: tuple[str, str]) -> None:
        settings = Settings.from_engines(engines)
        self.plane = build_plane(settings, asyncio.get_running_loop(), Meters())
        self.applied: list[Settings] = []
        self.discovery = Discovery(lambda: settings, lambda: self.plane, self.apply, fetch)

    def apply(self, settings: Settings) -> None:
        self.applied.append(settings)
        self.plane = build_plane(settings, asyncio.get_running_loop(), Meters(), old=self.plane)

    @property
    def tasks(self) -> dict[str, Json]:
        return {name: model.task for name, model in self.applied[-1].models.items()}


Find = Callable[..., Found]


@pytest.fixture
async def find() -> AsyncIterator[Find]:
    """Makes discoveries."""
    fetch = Fetch()
    yield lambda *engines: Found(fetch, *engines)
    await fetch.close()


@pytest.mark.parametrize(
    ("routes", "embeddings", "task"),
    [
        (document(CHAT_ROUTES), NO_ROUTE, "chat"),
        (document(EMBEDDING_ROUTES), VECTOR, "embedding"),
        (document(["/v1/models", "/v1/rerank", "/v1/score"]), NO_ROUTE, "rerank"),
        # The document can be switched off, and the Rust frontend has none: then only asking helps.
        (NO_ROUTE, NO_ROUTE, "chat"),
        (NO_ROUTE, VECTOR, "embedding"),
        (reply(b"<html>", content_type=b"text/html"), NO_ROUTE, "chat"),
        (document(CHAT_ROUTES + EMBEDDING_ROUTES), VECTOR, "embedding"),
        (document(CHAT_ROUTES + EMBEDDING_ROUTES), reply(vllm_error("not an embedding model"), status=400), "chat"),
    ],
)
async def test_what_a_vllm_model_is_for(
    find: Find, engine: ScriptedEngine, routes: Script, embeddings: Script, task: str
) -> None:
    engine.on("/v1/models", listing("m"))
    engine.on("/openapi.json", routes)
    engine.on(EMBEDDINGS, embeddings)
    found = find(("vllm", engine.url))
    await found.discovery.look()

    assert found.tasks == {"m": task}


@pytest.mark.parametrize(("name", "task"), [("bge-m3", "embedding"), ("bge-reranker-v2-m3", "rerank")])
async def test_where_a_server_has_vectors_and_ranks_the_name_decides(
    find: Find, engine: ScriptedEngine, name: str, task: str
) -> None:
    engine.on("/v1/models", listing(name))
    engine.on("/openapi.json", document([*EMBEDDING_ROUTES, "/v1/rerank"]))
    found = find(("vllm", engine.url))
    await found.discovery.look()

    assert found.tasks == {name: task}


@pytest.mark.parametrize("kind", ["trtllm", "triton"])
async def test_other_engines_are_not_asked_for_embeddings(find: Find, engine: ScriptedEngine, kind: str) -> None:
    engine.on("/v1/models", listing("m"))
    engine.on(EMBEDDINGS, VECTOR)
    found = find((kind, engine.url))
    await found.discovery.look()

    assert found.tasks == {"m": "chat"}
    assert engine.requests == []


async def test_only_what_changed_is_applied_and_a_silent_engine_keeps_its_models(
    find: Find, engine: ScriptedEngine
) -> None:
    """A model is asked what it is for once."""
    engine.on("/v1/models", listing("m"))
    engine.on(EMBEDDINGS, VECTOR)
    found = find(("vllm", engine.url))
    await found.discovery.look()
    await found.discovery.look()
    assert len(found.applied) == 1
    assert len(engine.requests) == 1

    engine.on("/v1/models", reply(b"", status=500))
    await found.discovery.look()
    assert len(found.applied) == 1

    engine.on("/v1/models", listing("m", "m2"))
    await found.discovery.look()
    assert list(found.tasks) == ["m", "m2"]

    engine.on("/v1/models", listing("m2"))
    await found.discovery.look()
    assert list(found.tasks) == ["m2"]


async def test_without_any_answer_nothing_is_applied(find: Find, engine: ScriptedEngine) -> None:
    await engine.stop()
    found = find(("vllm", engine.url))
    await found.discovery.look()

    assert found.applied == []


async def test_odd_cards_and_models_that_several_engines_have(
    find: Find, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """Only names are read of cards, whatever else they have or lack; one name on two engines is one model."""
    cards: list[Json] = [
        {"id": "m"},
        {"id": "m", "created": "yesterday", "max_model_len": -1, "permission": [{}], "unheard_of": {"a": 1}},
        {"id": "own", "owned_by": None, "object": 5},
        {"id": ""},
        {"id": 5},
        {"name": "no id"},
        "no card",
        None,
    ]
    engine.on("/v1/models", reply({"object": "list", "data": cards, "more": 1}))
    other.on("/v1/models", listing("m"))
    for one in (engine, other):
        one.on("/openapi.json", document(CHAT_ROUTES))
    found = find(("vllm", engine.url), ("vllm", other.url))
    await found.discovery.look()

    assert found.tasks == {"m": "chat", "own": "chat"}
    assert len(found.applied[-1].models["m"].targets) == 2


async def test_the_start_asks_an_engine_again_that_was_too_slow(find: Find, engine: ScriptedEngine) -> None:
    """A busy machine must not make a gateway, or one of its processes, begin without models."""
    engine.otherwise = NO_ROUTE
    engine.on("/v1/models", in_turn(silent, listing("m")))
    found = find(("triton", engine.url))
    settings = await found.discovery.ahead(found.plane.settings, {})

    assert list(settings.models) == ["m"]


async def test_the_start_does_not_wait_for_an_engine_that_is_not_there(find: Find, engine: ScriptedEngine) -> None:
    await engine.stop()
    found = find(("triton", engine.url))
    began = found.plane.loop.time()
    settings = await found.discovery.ahead(found.plane.settings, {})

    assert settings.models == {}
    assert found.plane.loop.time() < began + PATIENCE
