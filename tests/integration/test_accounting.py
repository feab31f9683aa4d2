"""What requests come to in usage and metrics when an engine does not say it, or does not come to saying it."""

import asyncio
from collections.abc import Mapping

import pytest

from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.keys import bearer, key_entry
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, completion, deltas, event, vllm_error
from tests.support.scripted import ScriptedEngine, Talk, reply, stream
from tests.support.serving import Serving
from tests.support.waiting import until

SILENT = {name: value for name, value in completion("Hello there.").items() if name != "usage"}


@pytest.fixture
async def counted(gateway: Gateway, engine: ScriptedEngine) -> Serving:
    """A gateway with a key, so that usage is counted."""
    return await gateway(one_engine(engine) | {"keys": [key_entry("team-a", "sk-a")]})


async def ask(serving: Serving, body: Mapping[str, Json], path: str = CHAT) -> Answer:
    async with await serving.connect() as client:
        await client.post(path, dict(body), bearer("sk-a"))
        return await client.answer()


def used(serving: Serving) -> tuple[int, int, int, int]:
    """Requests, tokens of prompts and answers, and requests that were estimated."""
    (row,) = serving.meters.usage.sorted()
    return row.requests, row.prompt_tokens, row.answer_tokens, row.estimated


async def test_a_stream_that_fails_before_its_first_token_costs_nothing(
    counted: Serving, engine: ScriptedEngine
) -> None:
    """Some engines say a role before they fail; the client has seen none of it."""
    role, *_ = deltas("a")
    engine.answer(stream(role, event({"error": vllm_error("no", 400)["error"]})))
    answer = await ask(counted, STREAM)

    assert answer.status == 400
    assert used(counted) == (1, 0, 0, 0)


async def test_an_answer_without_a_count_is_estimated(counted: Serving, engine: ScriptedEngine) -> None:
    """Else a limit on tokens would not hold for an engine that counts none."""
    engine.answer(reply(SILENT))
    answer = await ask(counted, HELLO)

    sent = len(engine.requests[0].body)
    assert used(counted) == (1, sent // 4, len(answer.body) // 4, 1)


@pytest.mark.parametrize(("path", "estimated"), [("/v1/embeddings", 1), ("/tokenize", 0)])
async def test_vectors_and_token_ids_are_no_text(
    counted: Serving, engine: ScriptedEngine, path: str, estimated: int
) -> None:
    """Vectors without a count cost their prompt; counting tokens costs nothing."""
    vector = {"object": "embedding", "index": 0, "embedding": [0.5]}
    answer = reply({"object": "list", "model": "org/vectors", "data": [vector], "count": 1, "tokens": [1]})
    engine.answer(answer)
    engine.on("/tokenize", answer)
    body = {"model": "vectors", "input": "Hello."} if path == "/v1/embeddings" else {"model": "m", "prompt": "Hello."}
    assert (await ask(counted, body, path)).status == 200

    prompt = len(engine.requests[0].body) // 4 if estimated else 0
    assert used(counted) == (1, prompt, 0, estimated)


@pytest.mark.parametrize("done", [False, True], ids=["middle", "done"])
async def test_tokens_of_a_stream_whose_client_leaves_are_counted(
    gateway: Gateway, engine: ScriptedEngine, done: bool
) -> None:
    """Whether it leaves in the middle, or before the body has ended."""
    events = [*deltas("a", "b"), DONE] if done else deltas("a", "b", finish=None)

    async def talks_on(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*events)
        await talk.left.wait()

    engine.answer(talks_on)
    serving = await gateway(one_engine(engine))
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM)
        await client.head()
        seen = b""
        while (DONE if done else b'"b"') not in seen:
            seen += await client.chunk()
    meter = serving.plane.asked["m"].destinations["e"].meter
    await serving.settled()
    await until(lambda: meter.in_flight == 0, what="the end of the request")

    assert meter.output_tokens == len(deltas("a", "b", finish="stop" if done else None))
    assert serving.outcomes() == {"served" if done else "client_gone": 1}


@pytest.mark.parametrize("body", [HELLO, STREAM], ids=["whole", "stream"])
async def test_choices_that_are_refused_cost_nothing(
    gateway: Gateway, engine: ScriptedEngine, body: dict[str, Json]
) -> None:
    """The parts of one request are one request: what others of them have done does not count."""
    asked: list[Talk] = []
    refuse = asyncio.Event()

    async def answer(talk: Talk) -> None:
        asked.append(talk)
        if len(asked) == 3:
            refuse.set()
        if talk is asked[0] and body is HELLO:
            await reply(completion())(talk)
            return
        await refuse.wait()
        await reply(vllm_error("no"), status=400)(talk)

    engine.answer(answer)
    serving = await gateway(one_engine(engine, "triton") | {"keys": [key_entry("team-a", "sk-a")]})
    answered = await ask(serving, body | {"n": 3})
    await serving.settled()

    assert answered.status == 400
    assert used(serving) == (1, 0, 0, 0)
