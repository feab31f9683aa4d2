"""Embeddings through the gateway as the OpenAI SDK asks for them."""

import base64
import json
import struct
from collections.abc import AsyncIterator

import openai
import pytest
from openai import AsyncOpenAI

from engines.profile import EngineKind
from engines.simulator import SimulatedModel, Task, build_app, start
from tests.integration.conftest import Gateway, one_engine
from tests.support.json_type import Json
from tests.support.openai_bytes import vllm_error
from tests.support.scripted import ScriptedEngine, Talk, reply
from tests.support.sdk import openai_client
from tests.support.serving import Serving

FLOATS = [0.5, -1.25, 3.0]
TEXT = base64.b64encode(struct.pack("<3f", *FLOATS)).decode()


def answer(*vectors: Json) -> dict[str, Json]:
    data: Json = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    usage: Json = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "data": data, "model": "org/vectors", "usage": usage}


@pytest.fixture
async def sdk(serving: Serving) -> AsyncIterator[AsyncOpenAI]:
    async with openai_client(serving) as client:
        yield client


@pytest.mark.parametrize("given", [FLOATS, TEXT], ids=["list", "base64"])
async def test_the_sdk_reads_whatever_the_engine_gives(sdk: AsyncOpenAI, engine: ScriptedEngine, given: Json) -> None:
    """It asks for base64 by itself, and fails on nothing but a wrong length where it gets a list."""
    engine.answer(reply(answer(given, given)))
    result = await sdk.embeddings.create(model="vectors", input=["a", "b"])

    assert [item.embedding for item in result.data] == [FLOATS, FLOATS]
    assert engine.requests[0].json["encoding_format"] == "base64"


@pytest.mark.parametrize("given", [FLOATS, TEXT], ids=["list", "base64"])
async def test_the_wire_carries_what_was_asked_for(serving: Serving, engine: ScriptedEngine, given: Json) -> None:
    """base64 is never answered with a list, and nobody who did not ask gets base64; nothing is invented."""
    engine.answer(reply(answer(given)))
    wanted: list[tuple[dict[str, Json], Json]] = [
        ({"encoding_format": "base64"}, TEXT),
        ({"encoding_format": "float"}, FLOATS),
        ({}, FLOATS),
    ]
    async with await serving.connect() as client:
        for more, expected in wanted:
            await client.post("/v1/embeddings", {"model": "vectors", "input": "a", **more})
            document = (await client.answer()).json

            assert document["data"][0]["embedding"] == expected
            assert document["model"] == "vectors"
    assert [request.json.get("encoding_format") for request in engine.requests] == ["base64", "float", None]


async def test_vectors_that_make_no_sense_are_an_engine_error(sdk: AsyncOpenAI, engine: ScriptedEngine) -> None:
    engine.answer(reply(answer(["x"])))
    with pytest.raises(openai.InternalServerError) as failed:
        await sdk.embeddings.create(model="vectors", input="a")

    assert failed.value.status_code == 502


async def test_the_input_that_is_too_long_is_named(sdk: AsyncOpenAI, engine: ScriptedEngine) -> None:
    """vLLM refuses the batch and does not say for which (recording `embed_one_of_two_too_long`)."""
    message = (
        "This model's maximum context length is 256 tokens. However, your prompt contains at least 257 input tokens, "
        "which exceeds this limit even without any output tokens. (parameter=input_tokens, value=257)"
    )
    engine.answer(reply(vllm_error(message), status=400))
    with pytest.raises(openai.BadRequestError) as refused:
        await sdk.embeddings.create(model="vectors", input=["ok", "river " * 300])

    assert (refused.value.param, refused.value.code) == ("input[1]", "context_length_exceeded")


TOKENS: list[list[int] | list[list[int]]] = [[1, 2], [[1, 2], [3]]]


@pytest.mark.parametrize("given", TOKENS)
async def test_token_ids_are_refused(sdk: AsyncOpenAI, engine: ScriptedEngine, given: list[int]) -> None:
    """Ids of a foreign tokenizer give wrong vectors without a word."""
    with pytest.raises(openai.BadRequestError) as refused:
        await sdk.embeddings.create(model="vectors", input=given)

    assert (refused.value.param, refused.value.code) == ("input", "unsupported_parameter")
    assert "check_embedding_ctx_length=False" in refused.value.message
    assert engine.requests == []


@pytest.mark.parametrize("given", TOKENS)
async def test_token_ids_pass_if_the_operator_says_so(
    gateway: Gateway, engine: ScriptedEngine, given: list[int]
) -> None:
    settings = one_engine(engine)
    settings["models"] = {"vectors": {"engine": "e", "task": "embedding", "token_inputs": "pass"}}
    engine.answer(reply(answer(FLOATS)))
    async with openai_client(await gateway(settings)) as sdk:
        await sdk.embeddings.create(model="vectors", input=given)

    assert engine.requests[0].json["input"] == given


async def test_triton_serves_embeddings_only_where_they_are_declared(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, "triton"))
    async with openai_client(serving) as sdk:
        with pytest.raises(openai.BadRequestError) as refused:
            await sdk.embeddings.create(model="vectors", input="a")

    assert refused.value.param == "model"
    assert engine.requests == []


@pytest.mark.parametrize("kind", [EngineKind.VLLM, EngineKind.TRITON])
async def test_the_same_vectors_from_each_engine(gateway: Gateway, kind: EngineKind) -> None:
    """A batch, in both forms, on the simulated engines."""
    engine = await start(build_app(kind, [SimulatedModel("minilm", Task.EMBEDDING, dimensions=8)]))
    settings: dict[str, Json] = {
        "engines": {"e": {"kind": kind.value, "urls": [engine.url], "embeddings": True}},
        "models": {"vectors": {"engine": "e", "model": "minilm", "task": "embedding"}},
    }
    serving = await gateway(settings)
    async with openai_client(serving) as sdk:
        texts = ["one", "two", "three"]
        packed = await sdk.embeddings.create(model="vectors", input=texts)
        listed = await sdk.embeddings.create(model="vectors", input=texts, encoding_format="float")
        single = await sdk.embeddings.create(model="vectors", input="two")

    assert [item.embedding for item in packed.data] == [item.embedding for item in listed.data]
    assert [item.index for item in packed.data] == [0, 1, 2]
    assert packed.data[1].embedding == single.data[0].embedding
    assert packed.usage.total_tokens == 3 * single.usage.total_tokens
    assert json.loads(packed.model_dump_json())["model"] == "vectors"
    await serving.settled()
    await engine.stop()


# ---- lists longer than a batch


def batching(engine: ScriptedEngine, size: int) -> dict[str, Json]:
    """Settings of a vLLM that takes so many inputs at once."""
    return one_engine(engine, max_batch=size)


async def count_inputs(talk: Talk) -> None:
    """Vectors that tell their inputs: one number each, the number in the text (or the first token id)."""
    inputs = talk.request.json["input"]
    given = inputs if isinstance(inputs, list) else [inputs]
    numbers = [float(one.strip("n") if isinstance(one, str) else one[0]) for one in given]
    body = answer(*([number] for number in numbers)) | {
        "usage": {"prompt_tokens": len(numbers), "total_tokens": len(numbers)}
    }
    await reply(body)(talk)


@pytest.mark.parametrize("count", [1, 3, 4, 7, 50])
async def test_a_list_longer_than_a_batch_is_split_and_put_together(
    gateway: Gateway, engine: ScriptedEngine, count: int
) -> None:
    """No request has more inputs than the engine takes; the answer is that to the whole list, in its order."""
    serving = await gateway(batching(engine, 3))
    engine.answer(count_inputs)
    async with await serving.connect() as client:
        await client.post("/v1/embeddings", {"model": "vectors", "input": [f"n{number}" for number in range(count)]})
        heard = await client.answer()
    assert [item["embedding"] for item in heard.json["data"]] == [[float(number)] for number in range(count)]
    assert [item["index"] for item in heard.json["data"]] == list(range(count))
    assert heard.json["usage"] == {"prompt_tokens": count, "total_tokens": count}
    assert heard.header("x-turnout-translated") == ("input" if count > 3 else None)
    sizes = sorted(len(request.json["input"]) for request in engine.requests)
    assert sum(sizes) == count
    assert max(sizes) <= 3
    assert len(sizes) == -(-count // 3)


async def test_one_text_and_one_list_of_ids_are_no_batch(gateway: Gateway, engine: ScriptedEngine) -> None:
    """However long they are."""
    settings = batching(engine, 1)
    settings["models"]["vectors"]["token_inputs"] = "pass"
    engine.answer(reply(answer(FLOATS)))
    serving = await gateway(settings)
    async with await serving.connect() as client:
        for given in ("a text", [1, 2, 3], ["alone"], [[1, 2]]):
            await client.post("/v1/embeddings", {"model": "vectors", "input": given})
            assert (await client.answer()).status == 200
    assert [request.json["input"] for request in engine.requests] == ["a text", [1, 2, 3], ["alone"], [[1, 2]]]


async def test_lists_of_ids_are_split_between_lists(gateway: Gateway, engine: ScriptedEngine) -> None:
    settings = batching(engine, 2)
    settings["models"]["vectors"]["token_inputs"] = "pass"
    engine.answer(count_inputs)
    serving = await gateway(settings)
    async with await serving.connect() as client:
        await client.post("/v1/embeddings", {"model": "vectors", "input": [[0, 9], [1], [2, 9, 9]]})
        heard = await client.answer()
    assert [item["embedding"] for item in heard.json["data"]] == [[0.0], [1.0], [2.0]]
    assert len(engine.requests) == 2


@pytest.mark.parametrize("place", range(5))
async def test_the_input_that_is_too_long_is_named_by_its_place_in_the_whole_list(
    gateway: Gateway, engine: ScriptedEngine, place: int
) -> None:
    """Not by its place in the batch; the last batch has one input only."""
    message = (
        "This model's maximum context length is 20 tokens. However, your prompt contains at least 21 input tokens."
    )
    serving = await gateway(batching(engine, 2))

    async def refuse_long(talk: Talk) -> None:
        if any(len(text) > 20 for text in talk.request.json["input"]):
            await reply(vllm_error(message), status=400)(talk)
        else:
            await count_inputs(talk)

    engine.answer(refuse_long)
    texts = [f"n{number}" for number in range(5)]
    texts[place] = "river " * 9
    async with await serving.connect() as client:
        await client.post("/v1/embeddings", {"model": "vectors", "input": texts})
        heard = await client.answer()
    assert (heard.status, heard.error["code"]) == (400, "context_length_exceeded")
    assert heard.error["param"] == f"input[{place}]"
    assert heard.error["message"].startswith(f"input[{place}]: ")
    await serving.settled()


async def test_the_longest_of_several_is_named_by_its_place_in_the_whole_list(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    """When it is not clear which one the engine means."""
    serving = await gateway(batching(engine, 2))
    message = "This model's maximum context length is 5 tokens. However, your prompt contains at least 6 input tokens."

    async def refuse_text(talk: Talk) -> None:
        refused = "longer text" in talk.request.json["input"]
        await (reply(vllm_error(message), status=400) if refused else count_inputs)(talk)

    engine.answer(refuse_text)
    async with await serving.connect() as client:
        await client.post("/v1/embeddings", {"model": "vectors", "input": ["n0", "n1", "some text", "longer text"]})
        heard = await client.answer()
    assert heard.error["param"] == "input"
    assert "input[3] is the longest" in heard.error["message"]


async def test_what_concerns_every_input_names_none(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(batching(engine, 2))
    engine.answer(reply(vllm_error("dimensions is not for this model."), status=400))
    async with await serving.connect() as client:
        await client.post("/v1/embeddings", {"model": "vectors", "input": ["n0", "n1", "n2"], "dimensions": 5})
        heard = await client.answer()
    assert heard.status == 400
    assert "input" not in heard.error["message"]
