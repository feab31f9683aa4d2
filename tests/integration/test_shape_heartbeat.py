"""Signs of life while the first token of a stream is awaited, and what they cost: the status is out."""

import asyncio
import json

import openai
import pytest

from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Client, error_in
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, completion, deltas, vllm_error
from tests.support.scripted import Script, ScriptedEngine, Talk, hang_up, in_turn, reply, reset, silent, stream
from tests.support.sdk import openai_client
from tests.support.waiting import within

BEAT = b": waiting\n\n"
BEATING = {"heartbeat": "50ms"}


class Word:
    """What an engine waits for before it goes on."""

    def __init__(self) -> None:
        self.given = asyncio.Event()

    def then(self, script: Script) -> Script:
        async def wait(talk: Talk) -> None:
            await within(self.given.wait(), what="the test's word")
            await script(talk)

        return wait


async def beats(client: Client, count: int = 2) -> None:
    """The head of a stream and so many signs of life."""
    answer = await client.head()
    assert answer.status == 200
    assert answer.header("content-type") == "text/event-stream; charset=utf-8"
    for _ in range(count):
        assert await client.chunk() == BEAT


async def rest(client: Client) -> tuple[bytes, bool]:
    """What comes after the signs of life, and whether the body ended as it should."""
    parts = []
    try:
        while part := await client.chunk():
            parts.append(part)
    except (asyncio.IncompleteReadError, ConnectionError):
        return b"".join(parts), False
    return b"".join(part for part in parts if part != BEAT), True


async def test_a_stream_beats_until_its_first_token(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, server=BEATING))
    word = Word()
    events = [*deltas("a", "b", model="same"), DONE]
    engine.answer(word.then(stream(*events)))
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM | {"model": "same"})
        await beats(client)
        word.given.set()
        assert await rest(client) == (b"".join(events), True)
        engine.answer(stream(*events))
        await client.post(CHAT, STREAM | {"model": "same"})
        assert (await client.answer()).body == b"".join(events)
    await serving.settled()


async def test_no_sign_follows_the_first_token(gateway: Gateway, engine: ScriptedEngine) -> None:
    """Twenty ticks of the clock that gives the signs pass while the engine says nothing."""
    serving = await gateway(one_engine(engine, server=BEATING, timeouts={"idle": "1s", "first_token": "1s"}))

    async def falls_silent(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*deltas("a", finish=None))
        await talk.stall()

    engine.answer(falls_silent)
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM)
        answer = await client.answer()
    assert BEAT not in answer.body
    assert not answer.whole


async def test_without_the_setting_nothing_is_sent_before_the_first_token(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    serving = await gateway(one_engine(engine, timeouts={"first_token": "300ms"}))
    engine.answer(silent)
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM)
        assert (await client.answer()).status == 504


async def test_whole_answers_get_no_signs(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, server=BEATING, timeouts={"first_token": "300ms"}))
    engine.answer(in_turn(silent, reply(completion())))
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO)
        assert (await client.answer()).status == 504
        await client.post(CHAT, HELLO)
        assert (await client.answer()).status == 200


def two(engine: ScriptedEngine, other: ScriptedEngine, **timeouts: str) -> dict[str, Json]:
    settings = one_engine(engine, server=BEATING, timeouts=timeouts)
    settings["engines"]["e"]["urls"] = [engine.url, other.url]
    settings["models"]["m"]["policy"] = "round_robin"
    return settings


@pytest.mark.parametrize("fails", [hang_up, reset, reply(vllm_error("no", 503), status=503)], ids=["fin", "rst", "503"])
async def test_another_replica_may_still_serve(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine, fails: Script
) -> None:
    serving = await gateway(two(engine, other))
    word = Word()
    engine.answer(word.then(fails))
    other.answer(stream(*deltas("from the other"), DONE))
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM)
        await beats(client, 1)
        word.given.set()
        body, whole = await rest(client)
    assert whole
    assert b"from the other" in body
    assert body.endswith(DONE)
    await serving.settled()


@pytest.mark.parametrize(
    ("fails", "code"),
    [
        (reply(vllm_error("temperature must be less than 2"), status=400), None),
        (hang_up, "engine_error"),
    ],
    ids=["400", "fin"],
)
async def test_an_error_after_a_sign_is_an_event_and_a_cut(
    gateway: Gateway, engine: ScriptedEngine, fails: Script, code: str | None
) -> None:
    serving = await gateway(one_engine(engine, server=BEATING))
    word = Word()
    engine.answer(word.then(fails))
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM)
        await beats(client, 1)
        word.given.set()
        body, whole = await rest(client)
        assert await client.closed()
    assert not whole
    event = body.removeprefix(BEAT)
    assert event.startswith(b"data: ")
    assert event.count(b"\n\n") == 1
    assert error_in(json.loads(event[6:]))["code"] == code
    await serving.settled()


async def test_a_first_token_that_does_not_come_ends_a_beating_stream(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, server=BEATING, timeouts={"first_token": "400ms"}))
    engine.answer(silent)
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM)
        await beats(client, 1)
        body, whole = await rest(client)
    assert not whole
    assert error_in(json.loads(body.rpartition(b"data: ")[2]))["code"] == "engine_timeout"
    await serving.settled()


async def test_a_client_that_leaves_a_beating_stream_frees_its_engine(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, server=BEATING))
    engine.answer(silent)
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM)
        await beats(client, 1)
        client.leave()
        await within((await engine.request()).left.wait(), 1.0, "the end of the engine's request")
    await serving.settled()


# ---- the OpenAI SDK


async def test_the_openai_sdk_reads_on_over_signs_of_life(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, server=BEATING))
    sent: list[bytes] = []

    async def slow(talk: Talk) -> None:
        """With an ``id:`` line of the engine's, which the SDK must never see."""
        await until_beaten(talk)
        await talk.start_stream()
        await talk.chunk(b"id: 1\n" + deltas("a", "b")[0], *deltas("a", "b")[1:], DONE)
        await talk.end_chunks()

    async def until_beaten(talk: Talk) -> None:
        sent.append(talk.request.body)
        await beaten.wait()

    beaten = asyncio.Event()
    engine.answer(slow)
    async with openai_client(serving) as sdk:
        streaming = await sdk.chat.completions.create(model="m", messages=[], stream=True)  # the head is there
        beaten.set()
        assert "".join([one.choices[0].delta.content or "" async for one in streaming]) == "ab"
    assert len(sent) == 1


async def test_the_openai_sdk_raises_the_error_after_signs_of_life(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, server=BEATING))
    word = Word()
    engine.answer(word.then(reply(vllm_error("temperature must be less than 2"), status=400)))
    async with openai_client(serving) as sdk:
        streaming = await sdk.chat.completions.create(model="m", messages=[], stream=True)
        word.given.set()
        with pytest.raises(openai.APIError, match="temperature"):
            async for _ in streaming:
                pass
