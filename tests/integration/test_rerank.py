"""Reranking and scoring: for models of that task, on vLLM engines."""

from collections.abc import AsyncIterator

import pytest

from engines.profile import EngineKind
from engines.simulator import build_app, start
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Client
from tests.support.json_type import Json
from tests.support.openai_bytes import vllm_error
from tests.support.scripted import ScriptedEngine, reply
from tests.support.serving import Serving

RERANK, SCORE = "/v1/rerank", "/v1/score"
QUERY: dict[str, Json] = {"model": "ranker", "query": "Hello", "documents": ["A boat", "Hello"], "top_n": 2}
PAIR: dict[str, Json] = {"model": "ranker", "text_1": "Hello", "text_2": ["Hello", "Boat"]}
RANKED: dict[str, Json] = {
    "id": "score-a723c9b0192aef98",
    "model": "org/ranker",
    "usage": {"prompt_tokens": 11, "total_tokens": 11},
    "results": [
        {"index": 0, "document": {"text": "Hi there", "multi_modal": None}, "relevance_score": 0.6320804953575134}
    ],
}


def with_ranker(engine: ScriptedEngine, kind: str = "vllm") -> dict[str, Json]:
    settings = one_engine(engine, kind)
    settings["models"]["ranker"] = {"engine": "e", "model": "org/ranker", "task": "rerank"}
    return settings


@pytest.fixture
async def serving(gateway: Gateway, engine: ScriptedEngine) -> Serving:
    return await gateway(with_ranker(engine))


@pytest.fixture
async def simulated(gateway: Gateway) -> AsyncIterator[Client]:
    """A client; ``ranker`` is a model on a simulated vLLM."""
    engine = await start(build_app(EngineKind.VLLM, ["minilm:embedding"]))
    serving = await gateway(
        {
            "engines": {"e": {"kind": "vllm", "urls": [engine.url]}},
            "models": {"ranker": {"engine": "e", "model": "minilm", "task": "rerank"}},
        }
    )
    async with await serving.connect() as client:
        yield client
    await engine.stop()


async def test_an_answer_has_the_clients_name(client: Client, serving: Serving, engine: ScriptedEngine) -> None:
    engine.on(RERANK, reply(RANKED))
    await client.post(RERANK, QUERY)
    answer = await client.answer()

    assert answer.json == RANKED | {"model": "ranker"}
    assert b"0.6320804953575134" in answer.body
    assert engine.requests[0].json == QUERY | {"model": "org/ranker"}
    assert serving.meters.meter("ranker", "e").input_tokens == 11


async def test_the_best_document_comes_first(simulated: Client) -> None:
    await simulated.post(RERANK, QUERY)
    answer = await simulated.answer()

    assert [result["index"] for result in answer.json["results"]] == [1, 0]
    assert answer.json["model"] == "ranker"


async def test_scores(simulated: Client) -> None:
    await simulated.post(SCORE, PAIR)
    answer = await simulated.answer()

    assert answer.json["data"][0]["score"] == pytest.approx(1.0)
    assert answer.json["data"][1]["score"] < 0.9
    assert answer.json["model"] == "ranker"


@pytest.mark.parametrize(("path", "body"), [(RERANK, QUERY), (SCORE, PAIR)])
@pytest.mark.parametrize("model", ["m", "vectors"])
async def test_a_model_for_something_else_is_refused(
    client: Client, engine: ScriptedEngine, path: str, body: dict[str, Json], model: str
) -> None:
    await client.post(path, body | {"model": model})
    answer = await client.answer()

    assert answer.status == 400
    assert answer.error["message"] == f"'{model}' is not a rerank model."
    assert engine.requests == []


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/messages"])
async def test_a_rerank_model_answers_nothing_else(client: Client, engine: ScriptedEngine, path: str) -> None:
    await client.post(path, {"model": "ranker"})
    answer = await client.answer()

    assert answer.status == 400
    assert "is a rerank model; ask for it at /v1/rerank or /v1/score." in answer.json["error"]["message"]
    assert engine.requests == []


@pytest.mark.parametrize("path", [RERANK, SCORE])
@pytest.mark.parametrize("kind", ["trtllm", "triton"])
async def test_an_engine_without_the_path_is_a_clear_refusal(
    gateway: Gateway, engine: ScriptedEngine, kind: str, path: str
) -> None:
    serving = await gateway(with_ranker(engine, kind))
    async with await serving.connect() as client:
        await client.post(path, QUERY)
        answer = await client.answer()

    assert (answer.status, answer.error["param"]) == (400, "model")
    assert answer.error["message"] == f"The engine that serves 'ranker' has no {path} endpoint."


async def test_a_member_called_stream_is_not_ours(client: Client, engine: ScriptedEngine) -> None:
    """No such answer is ever streamed; whether the member is a mistake, the engine says."""
    engine.on(RERANK, reply(RANKED))
    await client.post(RERANK, QUERY | {"stream": True})
    answer = await client.answer()

    assert answer.status == 200
    assert answer.header("content-type") == "application/json"


async def test_an_engines_refusal(client: Client, engine: ScriptedEngine) -> None:
    engine.on(SCORE, reply(vllm_error("Bad pair."), status=400))
    await client.post(SCORE, PAIR)
    answer = await client.answer()

    assert (answer.status, answer.error["message"]) == (400, "Bad pair.")
