"""Anthropic's Messages API: whole, streamed, broken; with Anthropic's SDK, and as Claude Code asks."""

import asyncio
import json
from collections.abc import AsyncIterator

import anthropic
import pytest
from anthropic import AsyncAnthropic

from engines.profile import EngineKind
from engines.simulator import Faults, RunningEngine, build_app, start
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer, Client
from tests.support.json_type import Json
from tests.support.named_bytes import (
    COUNT_TOKENS,
    MESSAGE_ID,
    MESSAGES,
    TELL,
    message,
    message_events,
    named,
    read_named,
)
from tests.support.openai_bytes import vllm_error
from tests.support.scripted import Script, ScriptedEngine, Talk, in_turn, reply, silent, stream
from tests.support.sdk import anthropic_client
from tests.support.serving import Serving

STREAM: dict[str, Json] = TELL | {"stream": True}
COUNT: dict[str, Json] = {"model": "m", "messages": TELL["messages"]}
GREETING = "Hello! How can I help you today?"
WEATHER: Json = {
    "name": "get_weather",
    "description": "Weather of a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CACHED: Json = {"type": "ephemeral"}
CLAUDE_CODE: dict[str, Json] = {
    "model": "m",
    "max_tokens": 512,
    "stream": True,
    "temperature": 1,
    "system": [
        {"type": "text", "text": "You are Claude Code.", "cache_control": CACHED},
        {"type": "text", "text": "Working directory: src", "cache_control": CACHED},
    ],
    "messages": [
        {
            "role": "user",
            "content": [{"type": "text", "text": "Think: weather in Paris?", "cache_control": CACHED}],
        }
    ],
    "tools": [WEATHER],
    "metadata": {"user_id": "user_1_account__session_2"},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
}
"""The members that Claude Code sends."""

LEFT_OUT = ("stream", "context_management", "model", "temperature")
"""Members that the SDK's stream helper does not take, or sets itself."""

HEADERS = [
    ("anthropic-version", "2023-06-01"),
    ("anthropic-beta", "claude-code-20250219,interleaved-thinking-2025-05-14"),
    ("x-api-key", "sk-ant-client"),
    ("authorization", "Bearer sk-client"),
    ("x-app", "cli"),
]


def anthropic_error(answer: Answer) -> tuple[str, str]:
    """Type and message of an error, after a check of its shape."""
    document = answer.json
    assert list(document) == ["type", "error", "request_id"], document
    assert document["type"] == "error"
    assert list(document["error"]) == ["type", "message"]
    assert document["request_id"] == answer.header("x-request-id") == answer.header("request-id")
    return document["error"]["type"], document["error"]["message"]


@pytest.fixture
async def sdk(serving: Serving) -> AsyncIterator[AsyncAnthropic]:
    async with anthropic_client(serving) as client:
        yield client


@pytest.fixture
async def vllm() -> AsyncIterator[RunningEngine]:
    engine = await start(build_app(EngineKind.VLLM, ["tiny:reasoning"]))
    yield engine
    await engine.stop()


@pytest.fixture
async def simulated(vllm: RunningEngine, gateway: Gateway) -> AsyncIterator[AsyncAnthropic]:
    """The model ``claude-sonnet`` is ``tiny`` on a simulated vLLM."""
    serving = await gateway(
        {
            "engines": {"e": {"kind": "vllm", "urls": [vllm.url]}},
            "models": {"claude-sonnet": {"engine": "e", "model": "tiny"}},
        }
    )
    async with anthropic_client(serving) as client:
        yield client


# ---- whole


async def test_an_answer_has_the_clients_name_and_the_engines_id(client: Client, engine: ScriptedEngine) -> None:
    engine.on(MESSAGES, reply(message()))
    await client.post(MESSAGES, TELL)
    answer = await client.answer()

    assert answer.json == message(model="m")
    assert answer.json["id"] == MESSAGE_ID
    assert answer.header("request-id") == answer.header("x-request-id")
    assert engine.requests[0].json == TELL | {"model": "org/m"}


async def test_anthropics_headers_travel_and_credentials_do_not(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, api_key="sk-engine"))
    engine.on(MESSAGES, reply(message()))
    async with await serving.connect() as client:
        await client.post(MESSAGES, TELL, HEADERS)
        await client.answer()
    (request,) = engine.requests

    assert request.header("anthropic-version") == b"2023-06-01"
    assert request.header("anthropic-beta") == b"claude-code-20250219,interleaved-thinking-2025-05-14"
    assert request.header("authorization") == b"Bearer sk-engine"
    assert not {"x-api-key", "x-app"} & set(request.names)


async def test_anthropics_headers_belong_to_its_own_paths(client: Client, engine: ScriptedEngine) -> None:
    engine.on("/v1/responses", reply({"model": "org/m"}))
    await client.post("/v1/responses", {"model": "m", "input": "x"}, HEADERS)
    await client.answer()

    assert not [name for name in engine.requests[0].names if name.startswith("anthropic")]


async def test_a_query_changes_nothing(client: Client, engine: ScriptedEngine) -> None:
    """Anthropic's SDKs and Claude Code ask for ``/v1/messages?beta=true``; the next request on the connection too."""
    engine.on(MESSAGES, reply(message()))
    engine.on(COUNT_TOKENS, reply({"input_tokens": 13}))
    for path, body in ((f"{MESSAGES}?beta=true", TELL), (f"{COUNT_TOKENS}?beta=true", COUNT), (MESSAGES, TELL)):
        await client.post(path, body)
        assert (await client.answer()).status == 200

    assert [request.target.decode() for request in engine.requests] == [MESSAGES, COUNT_TOKENS, MESSAGES]


async def test_counting_tokens(client: Client, engine: ScriptedEngine) -> None:
    body = b'{"input_tokens":13,"context_management":{"original_input_tokens":13}}'
    engine.on(COUNT_TOKENS, reply(body))
    await client.post(COUNT_TOKENS, COUNT)
    answer = await client.answer()

    assert answer.body == body
    assert engine.requests[0].json == COUNT | {"model": "org/m"}


# ---- streams


async def test_a_stream_keeps_its_event_names_and_has_no_done(
    client: Client, serving: Serving, engine: ScriptedEngine
) -> None:
    """Older vLLM ends it with ``[DONE]`` all the same."""
    events = message_events("Hel", "lo")
    engine.on(MESSAGES, stream(*events, b"data: [DONE]\n\n"))
    await client.post(MESSAGES, STREAM)
    answer = await client.answer()
    meter = serving.meters.meter("m", "e")

    assert answer.whole
    assert answer.body == b"".join(events).replace(b'"model":"org/m"', b'"model":"m"')
    assert (meter.input_tokens, meter.output_tokens) == (13, 12)


async def test_a_stream_that_breaks_off_ends_with_an_error(
    client: Client, serving: Serving, engine: ScriptedEngine
) -> None:
    engine.on(MESSAGES, stream(*message_events("Hel", end=False)))
    await client.post(MESSAGES, STREAM)
    answer = await client.answer()
    kind, last = read_named(answer.body)[-1]

    assert not answer.whole
    assert (kind, last["error"]["type"]) == ("error", "api_error")
    assert serving.outcomes() == {"truncated": 1}


async def test_an_error_in_the_middle(client: Client, serving: Serving, engine: ScriptedEngine) -> None:
    """vLLM shows its own reader's complaint about the engine's error; the client gets a plain one."""
    failure = named("error", error={"type": "internal_error", "message": "1 validation error for ChatCompletion"})
    engine.on(MESSAGES, stream(*message_events("Hel", end=False), failure, *message_events(end=True)[-1:]))
    await client.post(MESSAGES, STREAM)
    answer = await client.answer()

    assert not answer.whole
    assert b"validation" not in answer.body
    assert read_named(answer.body)[-1][0] == "error"
    assert serving.outcomes() == {"truncated": 1}


async def test_an_error_before_the_first_word_is_an_http_error(client: Client, engine: ScriptedEngine) -> None:
    engine.on(MESSAGES, stream(message_events()[0], named("error", error={"type": "internal_error", "message": "x"})))
    await client.post(MESSAGES, STREAM)
    answer = await client.answer()

    assert answer.status == 502
    assert anthropic_error(answer)[0] == "api_error"


async def test_after_a_heartbeat_an_error_is_an_event(gateway: Gateway, engine: ScriptedEngine) -> None:
    """The status is out; the event is Anthropic's all the same."""
    serving = await gateway(one_engine(engine, server={"heartbeat": 0.1}))
    asked = asyncio.Event()

    async def slow(talk: Talk) -> None:
        await asked.wait()
        await reply(vllm_error("dead", 500), status=500)(talk)

    engine.on(MESSAGES, slow)
    async with await serving.connect() as client:
        await client.post(MESSAGES, STREAM)
        head = await client.head()
        first = await client.chunk()
        asked.set()
        answer = await client.body(head)

    assert first.startswith(b":")
    assert not answer.whole
    ((kind, told),) = read_named(answer.body.replace(first, b""))
    assert (kind, told["error"]["type"]) == ("error", "api_error")


# ---- errors


@pytest.mark.parametrize(
    ("script", "status", "expected"),
    [
        (reply(vllm_error("Bad tool."), status=400), 400, "invalid_request_error"),
        (reply({"type": "error", "error": {"type": "BadRequestError", "message": "Bad tool."}}, status=400), 400, None),
        (reply({"error": "Unauthorized"}, status=401), 502, "api_error"),
        (reply(vllm_error("no", 404, "NotFoundError") | {}, status=404), 400, "invalid_request_error"),
        (reply({"detail": "Not Found"}, status=404), 400, "invalid_request_error"),
        (reply(vllm_error("slow down"), status=429), 429, "rate_limit_error"),
        (reply(vllm_error("The engine is currently busy."), status=503), 503, "overloaded_error"),
        (reply(vllm_error("dead", 500), status=500), 502, "api_error"),
    ],
    ids=["400", "theirs", "401", "404", "no path", "429", "503", "500"],
)
async def test_the_engines_errors_in_anthropics_shape(
    client: Client, engine: ScriptedEngine, script: Script, status: int, expected: str | None
) -> None:
    engine.on(MESSAGES, script)
    await client.post(MESSAGES, TELL)
    answer = await client.answer()

    assert answer.status == status
    assert anthropic_error(answer)[0] == (expected or "invalid_request_error")


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("body", [TELL, STREAM], ids=["whole", "stream"])
async def test_a_busy_engine_tells_when_to_come_again(
    client: Client, engine: ScriptedEngine, status: int, body: dict[str, Json]
) -> None:
    """cases.md 64: without ``retry-after`` Claude Code asks for ever."""
    engine.on(MESSAGES, reply(vllm_error("too many requests"), status=status, headers=[b"retry-after: 7"]))
    await client.post(MESSAGES, body)
    answer = await client.answer()

    assert answer.status == status
    assert answer.header("retry-after") == "7"
    assert answer.header("x-should-retry") == "true"


async def test_a_prompt_that_is_too_long_says_so_as_anthropic_does(client: Client, engine: ScriptedEngine) -> None:
    """Recording `messages_too_long`."""
    said = (
        "This model's maximum context length is 1024 tokens. However, your prompt contains at least 1025 input tokens."
    )
    engine.on(MESSAGES, reply({"type": "error", "error": {"type": "BadRequestError", "message": said}}, status=400))
    await client.post(MESSAGES, TELL)
    kind, told = anthropic_error(await client.answer())

    assert kind == "invalid_request_error"
    assert told == f"prompt is too long: {said}"


@pytest.mark.parametrize("path", [MESSAGES, COUNT_TOKENS])
@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"{", 400, "invalid_request_error"),
        (b'{"messages":[]}', 400, "invalid_request_error"),
        (b'{"model":"nope"}', 404, "not_found_error"),
        (b'{"model":"vectors"}', 400, "invalid_request_error"),
        (b" " * 2048, 413, "request_too_large"),
    ],
    ids=["json", "no model", "unknown model", "embedding model", "too large"],
)
async def test_the_gateways_own_refusals(
    gateway: Gateway, engine: ScriptedEngine, path: str, body: bytes, status: int, kind: str
) -> None:
    serving = await gateway(one_engine(engine, server={"max_body": 1024}))
    async with await serving.connect() as client:
        await client.post(path, body)
        answer = await client.answer()

    assert answer.status == status
    document = answer.json
    assert (document["type"], document["error"]["type"]) == ("error", kind)
    assert document["request_id"] == answer.header("x-request-id")
    assert engine.requests == []


@pytest.mark.parametrize("path", [MESSAGES, COUNT_TOKENS])
async def test_an_engine_without_the_path_is_a_clear_refusal(
    gateway: Gateway, engine: ScriptedEngine, path: str
) -> None:
    serving = await gateway(one_engine(engine, "triton"))
    async with await serving.connect() as client:
        await client.post(path, TELL)
        answer = await client.answer()

    assert answer.status == 400
    assert anthropic_error(answer) == (
        "invalid_request_error",
        f"The engine that serves 'm' has no {path} endpoint.",
    )


async def test_an_engine_that_is_away(gateway: Gateway) -> None:
    serving = await gateway(
        {"engines": {"e": {"kind": "vllm", "urls": ["http://127.0.0.1:9"]}}, "models": {"m": {"engine": "e"}}}
    )
    async with await serving.connect() as client:
        await client.post(MESSAGES, TELL)
        answer = await client.answer()

    assert answer.status == 503
    assert answer.header("retry-after") is not None
    assert anthropic_error(answer)[0] == "overloaded_error"


async def test_an_engine_that_falls_silent_is_too_late(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, timeouts={"first_token": 0.2}))
    engine.on(MESSAGES, silent)
    async with await serving.connect() as client:
        await client.post(MESSAGES, STREAM)
        answer = await client.answer()

    assert answer.status == 504
    assert anthropic_error(answer)[0] == "timeout_error"


async def test_another_method_is_refused_in_anthropics_shape(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine), whole=True)
    async with await serving.connect() as client:
        await client.send(b"GET /v1/messages HTTP/1.1\r\nhost: x\r\n\r\n")
        answer = await client.answer()

    assert answer.status == 405
    assert answer.json["error"]["type"] == "invalid_request_error"


# ---- the real SDK


async def test_the_sdk_reads_an_answer_and_a_stream(simulated: AsyncAnthropic) -> None:
    ask: Json = {
        "model": "claude-sonnet",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Think: what is 2+2?"}],
    }
    answer = await simulated.messages.create(**ask)
    async with simulated.messages.stream(**ask) as events:
        streamed = await events.get_final_message()

    assert [block.type for block in answer.content] == ["thinking", "text"]
    assert [(block.type, getattr(block, "text", None)) for block in streamed.content] == [
        (block.type, getattr(block, "text", None)) for block in answer.content
    ]
    assert (answer.model, streamed.model) == ("claude-sonnet", "claude-sonnet")
    assert (answer.stop_reason, streamed.stop_reason) == ("end_turn", "end_turn")
    assert answer.usage.output_tokens == streamed.usage.output_tokens > 0
    assert answer._request_id


async def test_the_sdk_counts_tokens(simulated: AsyncAnthropic) -> None:
    counted = await simulated.messages.count_tokens(
        model="claude-sonnet", messages=[{"role": "user", "content": "Hello"}], system="Be short."
    )

    assert counted.input_tokens > 0


async def test_the_sdks_beta_path(simulated: AsyncAnthropic) -> None:
    answer = await simulated.beta.messages.create(
        model="claude-sonnet",
        max_tokens=50,
        messages=[{"role": "user", "content": "Tell me a story."}],
        betas=["interleaved-thinking-2025-05-14"],
    )

    assert answer.stop_reason == "max_tokens"
    assert answer.usage.output_tokens == 50


@pytest.mark.parametrize(
    ("script", "raised", "kind"),
    [
        (reply(vllm_error("Bad tool."), status=400), anthropic.BadRequestError, "invalid_request_error"),
        (reply(vllm_error("slow down"), status=429), anthropic.RateLimitError, "rate_limit_error"),
        (reply(vllm_error("busy"), status=503), anthropic.InternalServerError, "overloaded_error"),
        (reply(vllm_error("dead"), status=500), anthropic.InternalServerError, "api_error"),
        (stream(*message_events("a", end=False)), anthropic.APIStatusError, "api_error"),
    ],
    ids=["400", "429", "503", "500", "cut"],
)
async def test_the_sdk_raises_what_it_knows(
    sdk: AsyncAnthropic, engine: ScriptedEngine, script: Script, raised: type[anthropic.APIStatusError], kind: str
) -> None:
    engine.on(MESSAGES, script)
    with pytest.raises(raised) as error:
        await _stream_to_the_end(sdk)

    assert error.value.type == kind
    assert error.value.request_id


async def _stream_to_the_end(sdk: AsyncAnthropic) -> None:
    async with sdk.messages.stream(model="m", max_tokens=5, messages=[{"role": "user", "content": "x"}]) as events:
        await events.get_final_message()


async def test_the_sdk_comes_again_when_an_engine_was_busy(serving: Serving, engine: ScriptedEngine) -> None:
    engine.on(MESSAGES, in_turn(*[reply(vllm_error("slow down"), status=429)] * 3, reply(message())))
    async with anthropic_client(serving, retries=3) as sdk:
        answer = await sdk.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "x"}])

    assert answer.content[0].type == "text"


async def test_an_engine_that_dies_in_mid_stream(vllm: RunningEngine, simulated: AsyncAnthropic) -> None:
    vllm.faults = Faults(engine_error_after=6)
    with pytest.raises(anthropic.APIStatusError) as error:
        async with simulated.messages.stream(
            model="claude-sonnet", max_tokens=200, messages=[{"role": "user", "content": "Tell me a story."}]
        ) as events:
            await events.get_final_message()

    assert error.value.type == "api_error"


# ---- Claude Code


async def test_what_claude_code_sends_reaches_the_engine_whole(client: Client, engine: ScriptedEngine) -> None:
    """Nothing is dropped or renamed but the model."""
    engine.on(MESSAGES, stream(*message_events("ok")))
    await client.post(f"{MESSAGES}?beta=true", CLAUDE_CODE, HEADERS)
    answer = await client.answer()

    assert answer.whole
    assert answer.header("x-turnout-dropped") is None
    assert json.loads(engine.requests[0].body) == CLAUDE_CODE | {"model": "org/m"}


async def test_a_turn_of_claude_code_with_a_tool(simulated: AsyncAnthropic) -> None:
    """The call of a tool as a stream, then its result, as Claude Code goes on."""
    asked = [each for each in CLAUDE_CODE.items() if each[0] not in LEFT_OUT]
    body: Json = dict(asked) | {"model": "claude-sonnet"}
    async with simulated.messages.stream(**body) as events:
        first = await events.get_final_message()
    call = next(block for block in first.content if block.type == "tool_use")
    result: Json = {"type": "tool_result", "tool_use_id": call.id, "content": "21 degrees"}
    history = [
        *body["messages"],
        {"role": "assistant", "content": [block.model_dump() for block in first.content]},
        {"role": "user", "content": [result]},
    ]
    async with simulated.messages.stream(**body | {"messages": history}) as events:
        second = await events.get_final_message()

    assert first.stop_reason == "tool_use"
    assert (call.name, call.input) == ("get_weather", {"city": "Paris"})
    assert "21 degrees" in str(second.content)
