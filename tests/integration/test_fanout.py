"""Calls that an engine can only serve one answer at a time become several requests, and one answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionMessageParam

from engines.profile import EngineKind
from engines.simulator import Answer, Call, Request, RunningEngine, SimulatedModel, Task, Turn, build_app, start
from gateway.balance import evidence
from gateway.proxy.fanout import PARALLEL
from tests.integration.conftest import Gateway, one_engine
from tests.support.openai_bytes import DONE, completion, deltas
from tests.support.scripted import ScriptedEngine, Talk, hang_up, in_turn, reply, silent, stream, whole
from tests.support.sdk import openai_client
from tests.support.serving import Serving
from tests.support.waiting import until

HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hello!"}]


@dataclass(slots=True)
class Counting:
    """A model that says something else each time."""

    count: int = 0

    def __call__(self, turn: Turn) -> Answer:
        self.count += 1
        return Answer((f"Answer {self.count} is here.",))


@dataclass(slots=True)
class Triton:
    """A simulated Triton with what it was asked."""

    engine: RunningEngine
    serving: Serving
    sdk: AsyncOpenAI
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def settled(self) -> None:
        await self.serving.settled()
        await until(lambda: self.engine.load.running == 0, 1.0, "the end of the engine's requests")


@pytest.fixture
async def triton(gateway: Gateway) -> AsyncIterator[Triton]:
    """The models ``m`` and ``vectors`` are on it."""
    asked: list[dict[str, Any]] = []

    def note(request: Request) -> None:
        if request.method == "POST":
            asked.append(json.loads(request.body))

    models = [
        SimulatedModel("m", script=Counting()),
        SimulatedModel("caller", script=lambda turn: Answer((Call("f", '{"a": 1}'),))),
        SimulatedModel("vectors", Task.EMBEDDING),
    ]
    engine = await start(build_app(EngineKind.TRITON, models, observer=note))
    serving = await gateway(
        {
            "engines": {"e": {"kind": "triton", "urls": [engine.url], "embeddings": True}},
            "models": {
                "m": {"engine": "e"},
                "caller": {"engine": "e"},
                "vectors": {"engine": "e", "task": "embedding"},
            },
        }
    )
    async with openai_client(serving) as sdk:
        yield Triton(engine, serving, sdk, asked)
    await engine.stop()


async def test_several_choices(triton: Triton) -> None:
    """One id, numbered choices, the prompt counted once, and the header says what was done."""
    raw = await triton.sdk.chat.completions.with_raw_response.create(model="m", messages=HELLO, n=3, seed=7)
    answer = raw.parse()

    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert {choice.message.content for choice in answer.choices} == {f"Answer {n} is here." for n in (1, 2, 3)}
    assert answer.id.startswith("chatcmpl-")
    assert answer.usage is not None
    single = await triton.sdk.chat.completions.create(model="m", messages=HELLO)
    assert single.usage is not None
    assert answer.usage.prompt_tokens == single.usage.prompt_tokens
    assert answer.usage.completion_tokens == 3 * single.usage.completion_tokens
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert "n" in raw.headers["x-turnout-translated"].split(", ")
    assert raw.headers["x-turnout-attempts"] == "1"
    assert sorted(body["seed"] for body in triton.asked[:3]) == [7, 8, 9]
    assert not any("n" in body for body in triton.asked)
    await triton.settled()


async def test_several_choices_streamed(triton: Triton) -> None:
    """The choices come interleaved under one id; one usage event, then the end."""
    texts: dict[int, str] = {}
    finishes: dict[int, str] = {}
    ids: set[str] = set()
    usages: list[CompletionUsage] = []
    options: Any = {"include_usage": True}
    stream = await triton.sdk.chat.completions.create(
        model="m", messages=HELLO, n=3, stream=True, stream_options=options
    )
    async for chunk in stream:
        ids.add(chunk.id)
        assert not usages
        usages += [chunk.usage] if chunk.usage else []
        for choice in chunk.choices:
            texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
            if choice.finish_reason:
                assert choice.index not in finishes
                finishes[choice.index] = choice.finish_reason

    assert len(ids) == 1
    assert set(texts.values()) == {f"Answer {n} is here." for n in (1, 2, 3)}
    assert finishes == {0: "stop", 1: "stop", 2: "stop"}
    (usage,) = usages
    assert usage.completion_tokens % 3 == 0
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    await triton.settled()


async def test_usage_that_nobody_asked_for_does_not_come(triton: Triton) -> None:
    """The parts ask for it, to find out whether their limit was reached."""
    chunks = [
        chunk
        async for chunk in await triton.sdk.chat.completions.create(
            model="m", messages=HELLO, n=2, stream=True, max_tokens=2
        )
    ]

    assert not any(chunk.usage for chunk in chunks)
    assert all(chunk.choices for chunk in chunks)
    finishes = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
    assert finishes == ["length", "length"]
    await triton.settled()


@pytest.mark.parametrize("streamed", [False, True])
async def test_several_choices_of_tool_calls(triton: Triton, streamed: bool) -> None:
    """Each choice calls for itself."""
    tool: Any = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    create = triton.sdk.chat.completions.create
    calls: dict[int, str] = {}
    if streamed:
        async for chunk in await create(
            model="caller", messages=HELLO, n=2, tools=[tool], tool_choice="required", stream=True
        ):
            for choice in chunk.choices:
                for call in choice.delta.tool_calls or ():
                    assert call.function is not None
                    calls[choice.index] = calls.get(choice.index, "") + (call.function.arguments or "")
    else:
        answer = await create(model="caller", messages=HELLO, n=2, tools=[tool], tool_choice="required")
        for whole_choice in answer.choices:
            assert whole_choice.message.tool_calls
            only = whole_choice.message.tool_calls[0]
            assert only.type == "function"
            calls[whole_choice.index] = only.function.arguments

    assert {index: json.loads(text) for index, text in calls.items()} == {0: {"a": 1}, 1: {"a": 1}}
    await triton.settled()


async def test_several_prompts(triton: Triton) -> None:
    """Choices are numbered over all prompts, as OpenAI does."""
    answer = await triton.sdk.completions.create(model="m", prompt=["one", "two three"], n=2, max_tokens=50)

    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert [body["prompt"] for body in triton.asked] == ["one", "one", "two three", "two three"]
    assert answer.id.startswith("cmpl-")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    await triton.settled()


async def test_an_error_of_the_request_is_told_once(triton: Triton) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await triton.sdk.chat.completions.create(model="m", messages=HELLO, n=3, temperature=3)

    assert refused.value.param == "temperature"
    await triton.settled()


async def test_many_inputs(triton: Triton) -> None:
    """A batch of any size; vectors in the order of the inputs, base64 as the SDK asks for it, usage added up."""
    texts = [f"text {n}" for n in range(3 * PARALLEL + 1)]
    answer = await triton.sdk.embeddings.create(model="vectors", input=texts)

    assert [item.index for item in answer.data] == list(range(len(texts)))
    alone = [await triton.sdk.embeddings.create(model="vectors", input=text) for text in texts[:3]]
    assert [item.embedding for item in answer.data[:3]] == [one.data[0].embedding for one in alone]
    assert answer.model == "vectors"
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == 2 * len(texts)
    assert all(body["encoding_format"] == "base64" for body in triton.asked)
    await triton.settled()


# ---- what goes wrong


@pytest.fixture
async def scripted(gateway: Gateway, engine: ScriptedEngine) -> Serving:
    """A scripted Triton."""
    return await gateway(one_engine(engine, "triton", embeddings=True))


def vector(*numbers: float) -> dict[str, Any]:
    data = [{"object": "embedding", "index": 0, "embedding": list(numbers)}]
    return {
        "object": "list",
        "data": data,
        "model": "org/vectors",
        "usage": {"prompt_tokens": 1, "total_tokens": 1},
    }


async def test_one_input_that_fails_is_named(scripted: Serving, engine: ScriptedEngine) -> None:
    """The others are given up; the client learns which one it was."""

    async def choosy(talk: Talk) -> None:
        if talk.request.json["input"] == "too long":
            detail = '{"detail":"This model\'s maximum context length is 8 tokens, but 9 were given."}'
            await talk.send(whole(detail.encode(), status=400))
        else:
            await talk.send(whole(json.dumps(vector(1.0)).encode()))

    engine.answer(choosy)
    async with openai_client(scripted) as sdk:
        with pytest.raises(openai.BadRequestError) as refused:
            await sdk.embeddings.create(model="vectors", input=["a", "b", "too long", "c"])

    assert (refused.value.param, refused.value.code) == ("input[2]", "context_length_exceeded")
    assert "input[2]" in refused.value.message
    await scripted.settled()


async def test_only_a_few_run_at_once(scripted: Serving, engine: ScriptedEngine) -> None:
    """A batch does not take the engine for itself: the next input waits until one is done."""
    go = asyncio.Event()
    running, most = 0, 0

    async def held(talk: Talk) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await go.wait()
        running -= 1
        await talk.send(whole(json.dumps(vector(float(talk.request.json["input"]))).encode()))

    engine.answer(held)
    async with openai_client(scripted) as sdk:
        asking = asyncio.ensure_future(
            sdk.embeddings.create(model="vectors", input=[str(n) for n in range(20)], encoding_format="float")
        )
        await engine.request(PARALLEL)
        assert len(engine.talks) == PARALLEL
        go.set()
        answer = await asking

    assert most == PARALLEL
    assert [item.embedding for item in answer.data] == [[float(n)] for n in range(20)]
    await scripted.settled()


async def test_a_part_that_dies_before_anything_is_said_is_tried_elsewhere(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """The call begins anew without the endpoint that failed."""
    settings = one_engine(engine, "triton")
    settings["engines"] = {"e": {"kind": "triton", "urls": [engine.url, other.url]}}
    serving = await gateway(settings)
    engine.answer(hang_up)
    other.answer(reply(completion("Hello.")))
    async with openai_client(serving) as sdk:
        answer = await sdk.chat.completions.create(model="m", messages=HELLO, n=2)

    assert [choice.message.content for choice in answer.choices] == ["Hello.", "Hello."]
    await serving.settled()


async def test_when_an_endpoint_is_found_dead_its_parts_do_not_wait(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """The call begins anew where there is somebody; the parts that ran elsewhere are no mark against anybody."""
    settings = one_engine(engine, "triton")
    settings["engines"] = {"e": {"kind": "triton", "urls": [engine.url, other.url], "health": {"interval": "1h"}}}
    for one in (engine, other):
        one.on("/health/ready", reply(b""))
        one.answer(silent)
    serving = await gateway(settings, whole=True)
    link = serving.plane.engines["e"].engine
    async with openai_client(serving) as sdk:
        asking = asyncio.ensure_future(sdk.chat.completions.create(model="m", messages=HELLO, n=2))
        await engine.request()
        await other.request()
        other.answer(reply(completion("Hello.")))
        now = serving.plane.loop.time()
        for _ in range(3):
            evidence.check_failed(link, link.endpoints[0], "a test says so", now)
        answer = await asyncio.wait_for(asking, 5)

    assert [choice.message.content for choice in answer.choices] == ["Hello.", "Hello."]
    assert serving.retries() == {"endpoint_down": 1}
    assert all(talk.left.is_set() for talk in engine.talks)
    await serving.settled()


async def test_a_stream_of_which_a_part_dies_is_broken_off(scripted: Serving, engine: ScriptedEngine) -> None:
    """No client may take the other choices for the whole answer."""
    said = asyncio.Event()

    async def dies(talk: Talk) -> None:
        await said.wait()
        talk.reset()

    engine.answer(in_turn(stream(*deltas("one ", "two"), DONE), dies))
    async with openai_client(scripted) as sdk:
        heard: set[int] = set()

        async def listen() -> None:
            async for chunk in await sdk.chat.completions.create(model="m", messages=HELLO, n=2, stream=True):
                heard.update(choice.index for choice in chunk.choices)
                said.set()

        with pytest.raises(openai.APIError):
            await listen()

    assert len(heard) == 1
    await scripted.settled()


@pytest.mark.parametrize("streamed", [False, True])
async def test_when_the_client_leaves_every_part_ends(
    scripted: Serving, engine: ScriptedEngine, streamed: bool
) -> None:
    async def begins(talk: Talk) -> None:
        if streamed:
            await talk.start_stream()
            await talk.chunk(*deltas("one ", finish=None))
        await talk.stall()

    engine.answer(begins)
    body = {"model": "m", "messages": HELLO, "n": 3, "stream": streamed}
    async with await scripted.connect() as client:
        await client.post("/v1/chat/completions", body)
        await engine.request(3)
        if streamed:
            await client.head()
    for talk in engine.talks:
        await asyncio.wait_for(talk.left.wait(), 2)

    await scripted.settled()
    assert scripted.outcomes().get("client_gone") == 1


async def test_parts_share_the_room_there_is(gateway: Gateway, engine: ScriptedEngine) -> None:
    """With one place at the engine the parts go one after another."""
    serving = await gateway(one_engine(engine, "triton", max_in_flight=1))
    engine.answer(reply(completion("Hello.")))
    async with openai_client(serving) as sdk:
        answer = await sdk.chat.completions.create(model="m", messages=HELLO, n=3)

    assert len(answer.choices) == 3
    await serving.settled()


async def test_an_answer_without_choices_is_an_engine_error(scripted: Serving, engine: ScriptedEngine) -> None:
    engine.answer(in_turn(reply(completion("Hello.")), reply({"id": "chatcmpl-1", "model": "org/m"})))
    async with openai_client(scripted) as sdk:
        with pytest.raises(openai.InternalServerError) as failed:
            await sdk.chat.completions.create(model="m", messages=HELLO, n=2)

    assert failed.value.status_code == 502
    await scripted.settled()


async def test_the_rust_frontend_of_vllm_is_known_when_it_has_been_asked(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    """It says in its version which it is; from then on it gets one choice at a time."""
    engine.on("/version", reply({"version": "0.32.0", "rust_frontend_version": "0.32.0"}))
    engine.answer(reply(completion("Hello.")))
    serving = await gateway(one_engine(engine), whole=True)
    link = serving.plane.engines["e"]
    await until(lambda: link.engine.version is not None, what="the engine's version")
    async with openai_client(serving) as sdk:
        answer = await sdk.chat.completions.create(model="m", messages=HELLO, n=2)

    assert [choice.index for choice in answer.choices] == [0, 1]
    assert [request.json.get("n") for request in engine.requests] == [None, None]
