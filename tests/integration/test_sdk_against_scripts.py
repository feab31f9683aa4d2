"""The real OpenAI SDK sees what it knows, whatever the engine does."""

import base64
import struct
from collections.abc import AsyncIterator

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionUserMessageParam

from tests.integration.conftest import Gateway, one_engine
from tests.support.json_type import Json
from tests.support.openai_bytes import DONE, completion, delta, deltas, event, vllm_error
from tests.support.scripted import (
    ScriptedEngine,
    Talk,
    chunked,
    hang_up,
    in_turn,
    packets,
    reply,
    silent,
    stream,
    stream_head,
)
from tests.support.sdk import openai_client
from tests.support.serving import Serving
from tests.support.waiting import until

HELLO: list[ChatCompletionUserMessageParam] = [{"role": "user", "content": "hello"}]
EVENTS = deltas("one ", "two")


@pytest.fixture
async def sdk(serving: Serving) -> AsyncIterator[AsyncOpenAI]:
    async with openai_client(serving) as client:
        yield client


async def text_of(sdk: AsyncOpenAI, model: str = "m") -> str:
    parts = []
    async for chunk in await sdk.chat.completions.create(model=model, messages=HELLO, stream=True):
        assert chunk.model == model
        assert chunk.id.startswith("chatcmpl-")
        parts += [choice.delta.content or "" for choice in chunk.choices]
    return "".join(parts)


async def test_an_answer(sdk: AsyncOpenAI, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion("Hello.")))
    answer = await sdk.chat.completions.create(model="gpt-4o", messages=HELLO)

    assert answer.choices[0].message.content == "Hello."
    assert answer.model == "gpt-4o"
    assert answer.usage is not None
    assert answer.usage.total_tokens == 5


async def test_a_stream(sdk: AsyncOpenAI, engine: ScriptedEngine) -> None:
    engine.answer(stream(*EVENTS, DONE))

    assert await text_of(sdk) == "one two"


@pytest.mark.parametrize(
    "events",
    [
        [b": ping\n\n", *EVENTS, b": ping\n\n", DONE],
        [b"id: 1\n" + EVENTS[0], b"\n\n", b": ping\n\n", *EVENTS[1:], DONE],
        [b"retry: 1\n\n", b"id: 1\n\n", *EVENTS, DONE],
        [*EVENTS, DONE, DONE],
        EVENTS,
        [one.replace(b"\n", b"\r\n") for one in [*EVENTS, DONE]],
        [one.replace(b"\n", b"\r") for one in [*EVENTS, DONE]],
        [event(delta(usage=None, tool_calls=None)), *EVENTS, DONE],
    ],
    ids=["comments", "ids and blank lines", "retry", "two [DONE]", "no [DONE]", "CRLF", "CR", "nulls"],
)
async def test_streams_that_break_the_sdk_by_themselves(
    sdk: AsyncOpenAI, engine: ScriptedEngine, events: list[bytes]
) -> None:
    """An ``id:`` line and a blank one make it read an empty event (cases A5)."""
    engine.answer(stream(*events))

    assert await text_of(sdk) == "one two"


@pytest.mark.parametrize(
    "script",
    [
        packets(stream_head() + b"".join(map(chunked, EVENTS[:3])), fin=True),
        stream(*EVENTS[:3]),
        stream(*EVENTS[:3], event(vllm_error("x", 500, "InternalServerError")), DONE),
    ],
    ids=["cut", "no finish reason", "an error event"],
)
async def test_a_stream_that_breaks_off_raises(sdk: AsyncOpenAI, engine: ScriptedEngine, script: Json) -> None:
    """Without the error event, the SDK would end its iterator without a word (cases A7)."""
    engine.answer(script)
    heard: list[str | None] = []

    async def listen() -> None:
        async for chunk in await sdk.chat.completions.create(model="m", messages=HELLO, stream=True):
            heard.append(chunk.choices[0].delta.content)

    with pytest.raises(openai.APIError) as raised:
        await listen()

    assert heard == ["", "one ", "two"]
    assert raised.value.code in ("stream_interrupted", "engine_error")
    assert raised.value.type == "server_error"


ERRORS: dict[str, tuple[Json, type[openai.APIStatusError], str | None]] = {
    "400": (reply(vllm_error("bad"), status=400), openai.BadRequestError, None),
    "422": (reply({"detail": []}, status=422), openai.BadRequestError, None),
    "401": (reply({"error": "Unauthorized"}, status=401), openai.InternalServerError, "engine_error"),
    "404": (
        reply(vllm_error("The model `x` does not exist.", 404, "NotFoundError"), status=404),
        openai.NotFoundError,
        "model_not_found",
    ),
    "429": (reply(vllm_error("slow down", 429), status=429), openai.RateLimitError, "rate_limit_exceeded"),
    "500": (reply(b"", status=500), openai.InternalServerError, "engine_error"),
    "503": (reply(vllm_error("overloaded", 503), status=503), openai.InternalServerError, "engine_overloaded"),
    "dead": (hang_up, openai.InternalServerError, "engine_error"),
    "too long": (
        reply(vllm_error("This model's maximum context length is 8 tokens."), status=400),
        openai.BadRequestError,
        "context_length_exceeded",
    ),
}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("script", "kind", "code"), ERRORS.values(), ids=ERRORS)
async def test_errors_are_the_sdks_own_exceptions(
    sdk: AsyncOpenAI,
    engine: ScriptedEngine,
    script: Json,
    kind: type[openai.APIStatusError],
    code: str | None,
    streamed: bool,
) -> None:
    engine.answer(script)
    with pytest.raises(kind) as raised:
        await sdk.chat.completions.create(model="m", messages=HELLO, stream=streamed)

    assert raised.value.code == code
    assert raised.value.request_id


async def test_an_unknown_model(sdk: AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        await sdk.chat.completions.create(model="nope", messages=HELLO)

    assert (raised.value.code, raised.value.param) == ("model_not_found", "model")


async def test_the_sdk_retries_what_is_worth_it(serving: Serving, engine: ScriptedEngine) -> None:
    engine.answer(
        in_turn(reply(vllm_error("overloaded", 503), status=503, headers=[b"retry-after: 1"]), reply(completion()))
    )
    async with openai_client(serving, retries=1) as sdk:
        answer = await sdk.chat.completions.create(model="m", messages=HELLO)

    assert answer.choices[0].message.content == "Hi."
    assert len(engine.requests) == 2


async def test_the_sdk_does_not_retry_what_is_not(serving: Serving, engine: ScriptedEngine) -> None:
    engine.answer(reply({"error": "Unauthorized"}, status=401))
    async with openai_client(serving, retries=2) as sdk:
        with pytest.raises(openai.InternalServerError):
            await sdk.chat.completions.create(model="m", messages=HELLO)

    assert len(engine.requests) == 1


def vector(*numbers: float) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


async def test_embeddings_come_as_base64_by_default(sdk: AsyncOpenAI, engine: ScriptedEngine) -> None:
    engine.answer(
        reply(
            {
                "object": "list",
                "model": "org/vectors",
                "data": [{"object": "embedding", "index": 0, "embedding": vector(0.5, -2.0)}],
                "usage": {"prompt_tokens": 1, "total_tokens": 1},
            }
        )
    )
    answer = await sdk.embeddings.create(model="vectors", input=["x"])

    assert engine.requests[0].json["encoding_format"] == "base64"
    assert answer.data[0].embedding == [0.5, -2.0]
    assert answer.model == "vectors"


async def test_embeddings_as_floats(sdk: AsyncOpenAI, engine: ScriptedEngine) -> None:
    data = [{"object": "embedding", "index": 0, "embedding": [0.5, -2.0]}]
    engine.answer(reply({"object": "list", "model": "org/vectors", "data": data, "usage": {}}))
    answer = await sdk.embeddings.create(model="vectors", input="x", encoding_format="float")

    assert engine.requests[0].json["encoding_format"] == "float"
    assert answer.data[0].embedding == [0.5, -2.0]


async def test_closing_a_stream_early_ends_the_engines_request(sdk: AsyncOpenAI, engine: ScriptedEngine) -> None:
    async def endless(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*EVENTS[:2])
        await talk.stall()

    engine.answer(endless)
    answer = await sdk.chat.completions.create(model="m", messages=HELLO, stream=True)
    async for _ in answer:
        break
    await answer.close()
    talk = await engine.request()
    await until(talk.left.is_set, 1.0, "the end of the engine's request")


async def test_a_timeout_of_the_client_ends_the_engines_request(
    sdk: AsyncOpenAI, engine: ScriptedEngine, serving: Serving
) -> None:
    engine.answer(silent)
    with pytest.raises(openai.APITimeoutError):
        await sdk.chat.completions.create(model="m", messages=HELLO, timeout=0.3)
    talk = await engine.request()
    await until(talk.left.is_set, 1.0, "the end of the engine's request")
    await serving.settled()
    assert serving.outcomes() == {"client_gone": 1}


async def test_clients_limits_are_no_mark_against_an_engine(gateway: Gateway, engine: ScriptedEngine) -> None:
    """Six clients that give up, then one that waits (cases D52)."""
    serving = await gateway(one_engine(engine))
    engine.answer(in_turn(*[silent] * 6, reply(completion())))
    async with openai_client(serving) as sdk:
        for _ in range(6):
            with pytest.raises(openai.APITimeoutError):
                await sdk.chat.completions.create(model="m", messages=HELLO, timeout=0.1)
        assert (await sdk.chat.completions.create(model="m", messages=HELLO)).choices
    assert {endpoint.state.value for endpoint in serving.plane.endpoints} == {"unknown"}


async def test_a_body_that_is_too_large(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, server={"max_body": 100_000}))
    async with openai_client(serving) as sdk:
        with pytest.raises(openai.APIStatusError) as raised:
            await sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "x" * 5_000_000}])

    assert raised.value.status_code == 413
    assert raised.value.code == "request_too_large"
