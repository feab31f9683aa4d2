"""The same calls of the real OpenAI SDK through the gateway to each kind of engine, simulated as it speaks."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from engines.profile import EngineKind
from engines.simulator import Faults, Pace, RunningEngine, build_app, start
from tests.integration.conftest import Gateway
from tests.support.json_type import Json
from tests.support.sdk import openai_client
from tests.support.serving import Serving
from tests.support.waiting import until

HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hello!"}]
GREETING = "Hello! How can I help you today?"
STORY: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Tell me a story."}]
WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@dataclass(slots=True)
class Setting:
    kind: EngineKind
    engine: RunningEngine
    serving: Serving
    sdk: AsyncOpenAI

    async def settled(self) -> None:
        await self.serving.settled()
        await until(lambda: self.engine.load.running == 0, 1.0, "the end of the engine's requests")


@pytest.fixture(params=list(EngineKind), ids=lambda kind: kind.value)
def kind(request: pytest.FixtureRequest) -> EngineKind:
    return EngineKind(request.param)


@pytest.fixture
async def stack() -> AsyncIterator[contextlib.AsyncExitStack]:
    async with contextlib.AsyncExitStack() as opened:
        yield opened


@pytest.fixture
async def setting(kind: EngineKind, stack: contextlib.AsyncExitStack, gateway: Gateway) -> AsyncIterator[Setting]:
    """The model ``chat`` is ``tiny`` on the engine."""
    engine = await start(build_app(kind, ["tiny"]))
    stack.push_async_callback(engine.stop)
    serving = await gateway(
        {
            "engines": {"e": {"kind": kind.value, "urls": [engine.url]}},
            "models": {"chat": {"engine": "e", "model": "tiny", "aliases": ["gpt-4o"]}},
        }
    )
    async with openai_client(serving) as sdk:
        yield Setting(kind, engine, serving, sdk)


async def say(setting: Setting, messages: list[ChatCompletionMessageParam], **more: Json) -> str:
    """The text of the whole answer, after comparing it with the streamed one."""
    create = setting.sdk.chat.completions.create
    answer = await create(model="chat", messages=messages, temperature=0, **more)
    streamed, finish = "", None
    async for chunk in await create(model="chat", messages=messages, temperature=0, stream=True, **more):
        assert chunk.model == "chat"
        for part in chunk.choices:
            streamed += part.delta.content or ""
            finish = part.finish_reason or finish
    (choice,) = answer.choices
    assert answer.model == "chat"
    assert answer.id.startswith("chatcmpl-")
    assert choice.message.role == "assistant"
    assert (choice.message.content, choice.finish_reason) == (streamed, finish)
    await setting.settled()
    return streamed


async def test_chat(setting: Setting) -> None:
    assert await say(setting, HELLO) == GREETING


async def test_an_alias_is_a_name(setting: Setting) -> None:
    answer = await setting.sdk.chat.completions.create(model="gpt-4o", messages=HELLO)

    assert answer.model == "gpt-4o"


async def test_a_silent_client_gets_more_than_sixteen_tokens(setting: Setting) -> None:
    """The Triton frontend would stop there."""
    assert (await say(setting, STORY)).endswith("The end.")


async def test_characters_of_every_length_survive(setting: Setting) -> None:
    text = await say(setting, [{"role": "user", "content": "Send me emoji."}])

    assert "日本語" in text
    assert "\U0001f468‍\U0001f469‍\U0001f467" in text
    assert "\ufffd" not in text


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
async def test_a_limit_on_tokens(setting: Setting, name: str) -> None:
    create = setting.sdk.chat.completions.create
    limit: Json = {name: 5}
    answer = await create(model="chat", messages=STORY, temperature=0, **limit)

    if setting.kind is not EngineKind.TRITON:  # its frontend says "stop" whatever happened
        assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 5


async def test_both_limits_on_tokens(setting: Setting) -> None:
    """``max_completion_tokens`` wins."""
    answer = await setting.sdk.chat.completions.create(
        model="chat", messages=STORY, temperature=0, max_tokens=50, max_completion_tokens=5
    )

    assert answer.usage is not None
    assert answer.usage.completion_tokens == 5


async def test_a_stop_sequence(setting: Setting) -> None:
    text = await say(setting, STORY, stop=["robot"])

    assert text.strip() == "Once upon a time a small"


async def test_usage_of_a_stream_when_asked_for(setting: Setting) -> None:
    stream = await setting.sdk.chat.completions.create(
        model="chat", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    usages = [chunk.usage async for chunk in stream if chunk.usage is not None]

    assert len(usages) >= 1
    assert usages[-1].completion_tokens > 0
    assert usages[-1].prompt_tokens > 0


async def test_usage_is_counted(setting: Setting) -> None:
    answer = await setting.sdk.chat.completions.create(model="chat", messages=HELLO)
    meter = setting.serving.meters.meter("chat", "e")

    assert answer.usage is not None
    assert (meter.input_tokens, meter.output_tokens) == (answer.usage.prompt_tokens, answer.usage.completion_tokens)


MESSAGES: dict[str, list[ChatCompletionMessageParam]] = {
    "a system message": [{"role": "system", "content": "Be brief."}, *HELLO],
    "a developer message": [{"role": "developer", "content": "Be brief."}, *HELLO],
    "text parts": [{"role": "user", "content": [{"type": "text", "text": "Hello!"}]}],
    "system text parts": [{"role": "system", "content": [{"type": "text", "text": "Be brief."}]}, *HELLO],
    "an earlier turn": [*HELLO, {"role": "assistant", "content": GREETING}, *HELLO],
    "earlier text parts": [
        *HELLO,
        {"role": "assistant", "content": [{"type": "text", "text": GREETING}]},
        *HELLO,
    ],
    "a name": [{"role": "user", "content": "Hello!", "name": "ada"}],
}


@pytest.mark.parametrize("messages", MESSAGES.values(), ids=MESSAGES)
async def test_messages_that_openai_takes(setting: Setting, messages: list[ChatCompletionMessageParam]) -> None:
    assert await say(setting, messages) == GREETING


async def test_a_history_made_of_an_answer(setting: Setting) -> None:
    """Clients send back ``model_dump()``, with nulls and members of their SDK (cases H96)."""
    create = setting.sdk.chat.completions.create
    first = await create(model="chat", messages=HELLO)
    history: Json = [*HELLO, first.choices[0].message.model_dump(), *HELLO]

    assert (await create(model="chat", messages=history)).choices[0].message.content == GREETING


HINTS: Json = {
    "store": True,
    "metadata": {"team": "a"},
    "service_tier": "auto",
    "user": "ada",
    "seed": 7,
    "top_p": 0.9,
    "parallel_tool_calls": True,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "n": 1,
}


async def test_parameters_that_openai_has(setting: Setting) -> None:
    """Each alone and all together: what an engine does not know is left out, and told."""
    create = setting.sdk.chat.completions.with_raw_response.create
    for hints in [*({name: value} for name, value in HINTS.items()), HINTS]:
        raw = await create(model="chat", messages=HELLO, **hints)
        told = raw.headers.get("x-turnout-dropped", "")
        assert set(filter(None, told.split(", "))) <= set(hints), hints
        assert raw.parse().choices[0].message.content == GREETING


async def test_a_parameter_that_nobody_has(setting: Setting) -> None:
    raw = await setting.sdk.chat.completions.with_raw_response.create(
        model="chat", messages=HELLO, extra_body={"made_up": {"a": 1}}
    )

    assert raw.headers["x-turnout-dropped"] == "made_up"
    assert raw.parse().choices[0].message.content == GREETING


async def test_a_prompt_that_is_too_long(setting: Setting) -> None:
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "word " * 20_000}]
    for streamed in (False, True):
        with pytest.raises(openai.BadRequestError) as raised:
            await setting.sdk.chat.completions.create(model="chat", messages=messages, stream=streamed)
        assert raised.value.code == "context_length_exceeded"
    await setting.settled()


async def test_values_that_no_engine_takes(setting: Setting) -> None:
    wrong: Json = "hello"
    with pytest.raises(openai.BadRequestError) as raised:
        await setting.sdk.chat.completions.create(model="chat", messages=wrong)

    assert raised.value.type == "invalid_request_error"


async def test_an_engine_that_fails(setting: Setting) -> None:
    setting.engine.faults = Faults(status=500)
    with pytest.raises(openai.InternalServerError) as raised:
        await setting.sdk.chat.completions.create(model="chat", messages=HELLO)

    assert raised.value.status_code == 502
    assert raised.value.code == "engine_error"
    await setting.settled()


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_an_engine_that_dies_before_it_speaks(setting: Setting, streamed: bool) -> None:
    setting.engine.faults = Faults(die_after=0)
    with pytest.raises(openai.InternalServerError) as raised:
        await setting.sdk.chat.completions.create(model="chat", messages=HELLO, stream=streamed)

    assert raised.value.status_code == 502
    await setting.settled()


@pytest.mark.parametrize("faults", [Faults(die_after=4), Faults(engine_error_after=4)], ids=["dies", "fails"])
async def test_an_engine_that_breaks_off(setting: Setting, faults: Faults) -> None:
    setting.engine.faults = faults
    heard: list[str] = []

    async def listen() -> None:
        async for chunk in await setting.sdk.chat.completions.create(model="chat", messages=STORY, stream=True):
            heard.extend(choice.delta.content or "" for choice in chunk.choices)

    with pytest.raises(openai.APIError) as raised:
        await listen()

    assert "Once".startswith("".join(heard)[:4])
    assert raised.value.type == "server_error"
    await setting.settled()


async def test_a_client_that_leaves_ends_the_engines_work(
    stack: contextlib.AsyncExitStack, gateway: Gateway, kind: EngineKind
) -> None:
    engine = await start(build_app(kind, ["tiny"], Pace(inter_token=0.05)))
    stack.push_async_callback(engine.stop)
    serving = await gateway(
        {"engines": {"e": {"kind": kind.value, "urls": [engine.url]}}, "models": {"tiny": {"engine": "e"}}}
    )
    async with openai_client(serving) as sdk:
        stream = await sdk.chat.completions.create(model="tiny", messages=STORY, stream=True)
        async for _ in stream:
            break
        assert engine.load.running == 1
        await stream.close()
        await until(lambda: engine.connections == 0, 1.0, "the end of the engine's request")
        if kind is not EngineKind.TRITON:  # it goes on to the end whoever has left
            await until(lambda: engine.load.running == 0, 1.0, "the end of the engine's work")
    await serving.settled()


async def test_a_tool_call(setting: Setting) -> None:
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What is the weather in Paris?"}]
    answer = await setting.sdk.chat.completions.create(model="chat", messages=messages, tools=[WEATHER], temperature=0)
    (choice,) = answer.choices

    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls is not None
    (call,) = choice.message.tool_calls
    assert call.type == "function"
    assert (call.function.name, call.function.arguments) == ("get_weather", '{"city": "Paris"}')

    answered: Json = [
        *messages,
        choice.message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "21 degrees"},
    ]
    final = await setting.sdk.chat.completions.create(model="chat", messages=answered, tools=[WEATHER], temperature=0)
    assert "21" in (final.choices[0].message.content or "")


async def test_completions(setting: Setting) -> None:
    create = setting.sdk.completions.create
    answer = await create(model="chat", prompt="Once upon", max_tokens=8, temperature=0)
    streamed = ""
    async for chunk in await create(model="chat", prompt="Once upon", max_tokens=8, temperature=0, stream=True):
        assert chunk.model == "chat"
        streamed += "".join(choice.text for choice in chunk.choices)

    assert answer.id.startswith("cmpl-")
    assert answer.model == "chat"
    assert answer.choices[0].text == streamed
    await setting.settled()


async def test_embeddings_are_vllms(stack: contextlib.AsyncExitStack, gateway: Gateway, kind: EngineKind) -> None:
    models = ["vectors:embedding"] if kind is EngineKind.VLLM else ["tiny"]
    engine = await start(build_app(kind, models))
    stack.push_async_callback(engine.stop)
    serving = await gateway(
        {
            "engines": {"e": {"kind": kind.value, "urls": [engine.url]}},
            "models": {"mini": {"engine": "e", "model": "vectors", "task": "embedding"}},
        }
    )
    async with openai_client(serving) as sdk:
        if kind is EngineKind.VLLM:
            default = await sdk.embeddings.create(model="mini", input=["a", "b"])
            floats = await sdk.embeddings.create(model="mini", input=["a", "b"], encoding_format="float")
            assert default.model == "mini"
            assert [len(one.embedding) for one in default.data] == [384, 384]
            for one, other in zip(default.data, floats.data, strict=True):
                assert one.embedding == pytest.approx(other.embedding, abs=1e-6)
        else:
            with pytest.raises(openai.BadRequestError, match="embedding"):
                await sdk.embeddings.create(model="mini", input="a")
    await serving.settled()
