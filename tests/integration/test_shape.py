"""The same answers from each kind of engine, as the real OpenAI SDK sees them and as the bytes are."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from engines.profile import EngineKind
from engines.simulator import Answer, Pace, Request, SimulatedModel, Turn, build_app, start
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Client
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, COMPLETIONS, DONE, HELLO, STREAM, completion, delta, deltas, event
from tests.support.scripted import ScriptedEngine, Talk, reply, stream
from tests.support.sdk import openai_client
from tests.support.serving import Serving
from tests.support.waiting import until

HISTORY: list[Json] = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi.", "reasoning": "greet", "reasoning_content": "greet"},
    {"role": "user", "content": "Hello"},
]
THINK: list[Json] = [{"role": "user", "content": "Think: what is 2+2?"}]
STORY: list[Json] = [{"role": "user", "content": "Tell me a story."}]
ASKING = {"include_usage": True}

Start = Callable[..., Awaitable[Serving]]


@pytest.fixture(params=list(EngineKind), ids=lambda kind: kind.value)
def kind(request: pytest.FixtureRequest) -> EngineKind:
    return EngineKind(request.param)


@pytest.fixture
def seen() -> list[Request]:
    """What the simulated engine was asked."""
    return []


@pytest.fixture
async def simulated(kind: EngineKind, gateway: Gateway, seen: list[Request]) -> AsyncIterator[Start]:
    """Starts a gateway before a simulated engine; where that has a parser for what ``chat`` thinks, it is set."""
    async with contextlib.AsyncExitStack() as opened:

        async def begin(model: SimulatedModel | None = None, **settings: Json) -> Serving:
            model = model or SimulatedModel("tiny", reasoning=None if kind is EngineKind.TRITON else "qwen3")
            engine = await start(build_app(kind, [model], Pace(), observer=seen.append))
            opened.push_async_callback(engine.stop)
            return await gateway(
                {
                    "engines": {"e": {"kind": kind.value, "urls": [engine.url]}},
                    "models": {"chat": {"engine": "e", "model": "tiny", **settings}},
                }
            )

        yield begin


async def both_ways(serving: Serving, messages: list[Json], **more: Json) -> tuple[ChatCompletion, ChatCompletion]:
    """The whole answer, and what the streamed one adds up to."""
    async with openai_client(serving) as sdk:
        create: Json = sdk.chat.completions.create  # its overloads know no bag of parameters
        calm = await create(model="chat", messages=messages, temperature=0, **more)
        events = [
            one
            async for one in await create(
                model="chat", messages=messages, temperature=0, stream=True, stream_options=ASKING, **more
            )
        ]
    return calm, added_up(events)


def added_up(events: list[ChatCompletionChunk]) -> ChatCompletion:
    message: dict[str, Json] = {}
    finish = None
    for one in events[:-1]:
        (choice,) = one.choices
        assert one.usage is None
        for name, value in choice.delta.model_dump(exclude_unset=True).items():
            assert name != "role" or "role" not in message
            if isinstance(value, str):
                message[name] = message.get(name, "") + value
        assert finish is None
        finish = choice.finish_reason
    last = events[-1]
    assert last.choices == []
    envelope = {"id": last.id, "object": "chat.completion", "created": last.created, "model": last.model}
    said = {"index": 0, "message": message, "finish_reason": finish}
    return ChatCompletion.model_validate(envelope | {"choices": [said], "usage": last.usage})


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
async def test_an_answer_that_the_limit_ends_says_length_in_both_modes(simulated: Start, limit: str) -> None:
    for answer in await both_ways(await simulated(SimulatedModel("tiny")), STORY, **{limit: 5}):
        assert answer.usage is not None
        assert (answer.choices[0].finish_reason, answer.usage.completion_tokens) == ("length", 5)


async def test_an_answer_that_ends_by_itself_says_stop_in_both_modes(simulated: Start) -> None:
    for answer in await both_ways(await simulated(SimulatedModel("tiny")), HISTORY[:1], max_tokens=500):
        assert answer.choices[0].finish_reason == "stop"


async def test_completions_say_length_in_both_modes(simulated: Start) -> None:
    serving = await simulated(SimulatedModel("tiny"))
    async with openai_client(serving) as sdk:
        calm = await sdk.completions.create(model="chat", prompt="Tell me a story.", max_tokens=4)
        events = [
            one
            async for one in await sdk.completions.create(
                model="chat", prompt="Tell me a story.", max_tokens=4, stream=True
            )
        ]
    assert calm.choices[0].finish_reason == "length"
    reasons: list[str | None] = [choice.finish_reason for one in events for choice in one.choices]
    assert reasons == [None] * (len(reasons) - 1) + ["length"]
    assert "".join(choice.text for one in events for choice in one.choices) == calm.choices[0].text
    assert all(one.choices and "usage" not in one.model_fields_set for one in events)


async def test_only_triton_is_asked_for_usage_that_the_client_does_not_want(
    simulated: Start, seen: list[Request], kind: EngineKind
) -> None:
    serving = await simulated(SimulatedModel("tiny"))
    async with openai_client(serving) as sdk:
        create: Json = sdk.chat.completions.create
        await create(model="chat", messages=HISTORY[:1])
        for more in ({}, {"stream_options": {"include_usage": False}}):
            events = [one async for one in await create(model="chat", messages=HISTORY[:1], stream=True, **more)]
            assert all(one.usage is None and one.choices for one in events)
    asked = [
        (json.loads(one.body).get("stream_options") or {}).get("include_usage", False)
        for one in seen
        if one.path == CHAT
    ]
    assert asked == ([False, True, True] if kind is EngineKind.TRITON else [False] * 3)


@pytest.mark.parametrize(
    ("field", "names"),
    [
        (None, {"reasoning", "reasoning_content"}),
        ("both", {"reasoning", "reasoning_content"}),
        ("reasoning", {"reasoning"}),
        ("reasoning_content", {"reasoning_content"}),
    ],
)
async def test_reasoning_is_where_the_model_s_settings_say(
    simulated: Start, field: str | None, names: set[str]
) -> None:
    serving = await (simulated() if field is None else simulated(reasoning={"field": field}))
    for answer in await both_ways(serving, THINK):
        message = answer.choices[0].message.model_dump(exclude_unset=True)
        thoughts = {name: text for name, text in message.items() if "reasoning" in name and text}
        assert thoughts.keys() == names
        assert {text.strip() for text in thoughts.values()} == {"The user asks for 2+2. Two and two make four."}
        assert message["content"].strip() == "2+2 is 4."


async def test_reasoning_in_the_history_is_taken_in_both_spellings(simulated: Start) -> None:
    serving = await simulated(SimulatedModel("tiny"))
    for answer in await both_ways(serving, HISTORY):
        assert answer.choices[0].message.content == "Hello! How can I help you today?"


async def test_answers_without_extras_have_openai_s_members_only(simulated: Start) -> None:
    serving = await simulated(extras="strip")
    async with await serving.connect() as client:
        await client.post(CHAT, {"model": "chat", "messages": THINK})
        calm = (await client.answer()).json
        await client.post(CHAT, {"model": "chat", "messages": THINK, "stream": True})
        events = [json.loads(one) for one in (await client.answer()).events[:-1]]
    envelope = {"id", "object", "created", "model", "choices"}
    assert calm.keys() - {"system_fingerprint"} == envelope | {"usage"}
    message = calm["choices"][0]["message"]
    thoughts = {"reasoning", "reasoning_content"}
    assert message.keys() - {"refusal"} == {"role", "content"} | thoughts
    for one in events:
        assert one.keys() - {"system_fingerprint"} == envelope
        (choice,) = one["choices"]
        assert choice.keys() <= {"index", "delta", "finish_reason", "logprobs"}
        assert choice["delta"].keys() <= {"role", "content", *thoughts}


async def test_no_event_is_empty(simulated: Start) -> None:
    def pieces(turn: Turn) -> Answer:
        return Answer(pieces=("", "Hi", "", "", " there", ""))

    serving = await simulated(SimulatedModel("tiny", script=pieces))
    async with openai_client(serving) as sdk:
        create: Json = sdk.chat.completions.create
        events = [one async for one in await create(model="chat", messages=HISTORY[:1], stream=True)]
    assert events[0].choices[0].delta.role == "assistant"
    for one in events[1:]:
        delta = one.choices[0].delta
        assert delta.role is None
        assert delta.content or one.choices[0].finish_reason


# ---- engines that do otherwise than they should


async def test_a_triton_without_usage_says_its_reason_at_the_end(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, "triton"))
    engine.answer(stream(*deltas("a", "b"), DONE))
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM)
        answer = await client.answer()
    assert [json.loads(one)["choices"][0]["finish_reason"] for one in answer.events[:-1]] == [None, None, None, "stop"]
    assert answer.events[-1] == b"[DONE]"


async def test_a_client_s_own_options_reach_triton(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, "triton"))
    engine.answer(stream(*deltas("a"), DONE))
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM | {"stream_options": {"continuous_usage_stats": True}})
        await client.answer()
    assert engine.requests[0].json["stream_options"] == {"continuous_usage_stats": True, "include_usage": True}


async def test_object_and_created_are_there_whatever_the_engine_says(client: Client, engine: ScriptedEngine) -> None:
    bare = {k: v for k, v in completion().items() if k not in ("object", "created")}
    engine.answer(reply(bare))
    await client.post(CHAT, HELLO)
    answer = (await client.answer()).json
    assert answer["object"] == "chat.completion"
    assert answer["created"] > 1_700_000_000

    chunks = [delta("a"), delta(finish="stop")]
    engine.answer(stream(*[event({k: v for k, v in one.items() if k != "object"}) for one in chunks], DONE))
    await client.post(CHAT, STREAM)
    events = [json.loads(one) for one in (await client.answer()).events[:-1]]
    assert [(one["object"], one["created"]) for one in events] == [("chat.completion.chunk", 1)] * 2


async def test_a_whole_answer_in_which_nothing_must_change_keeps_its_bytes(
    client: Client, engine: ScriptedEngine
) -> None:
    body = json.dumps(completion(model="m") | {"usage": None, "kv": 1.50}).encode()  # with blanks
    engine.answer(reply(body))
    await client.post(CHAT, HELLO)
    assert (await client.answer()).body == body


async def test_a_completions_stream_keeps_its_bytes(client: Client, engine: ScriptedEngine) -> None:
    chunks = [
        {"id": "cmpl-0123456789abcdef", "object": "text_completion", "created": 1, "model": "same"}
        | {"choices": [{"index": 0, "text": text, "logprobs": None, "finish_reason": reason, "token_ids": None}]}
        for text, reason in (("a", None), ("北", None), ("c\n", "stop"))
    ]
    sent = [*map(event, chunks), DONE]
    engine.answer(stream(*sent))
    await client.post(COMPLETIONS, {"model": "same", "prompt": "x", "stream": True})
    assert (await client.answer()).body == b"".join(sent)


async def test_an_engine_that_sends_nothing_but_empty_events_is_not_idle(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    """trtllm-serve sends one for each token while it reads a tool call."""
    serving = await gateway(one_engine(engine, "trtllm", timeouts={"idle": "400ms", "first_token": "400ms"}))
    clock = asyncio.get_running_loop().time

    async def reads_a_call(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*deltas("a", finish=None))
        end = clock() + 1.2
        while clock() < end:
            soon = clock() + 0.05
            await until(lambda at=soon: clock() >= at)  # type: ignore[misc]
            await talk.chunk(event(delta("")))
        await talk.chunk(event(delta("b", finish="stop")), DONE)
        await talk.end_chunks()

    engine.answer(reads_a_call)
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM)
        answer = await client.answer()
    assert [json.loads(one)["choices"][0]["delta"].get("content") for one in answer.events[:-1]] == ["", "a", "b"]
