"""The Responses API through the gateway: whole, streamed, broken; with the OpenAI SDK, and as Codex asks."""

import asyncio
import json
from collections.abc import AsyncIterator

import openai
import pytest
from openai import AsyncOpenAI

from engines.profile import EngineKind
from engines.simulator import Faults, RunningEngine, build_app, start
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Client
from tests.support.json_type import Json
from tests.support.named_bytes import ASK, RESPONSE_ID, RESPONSES, named, read_named, response, response_events
from tests.support.openai_bytes import CHAT, HELLO, completion, vllm_error
from tests.support.scripted import ScriptedEngine, Talk, in_turn, reply, silent, stream
from tests.support.sdk import openai_client
from tests.support.serving import Serving

STREAM: dict[str, Json] = ASK | {"stream": True}
GREETING = "Hello! How can I help you today?"
CODEX: dict[str, Json] = {
    "model": "m",
    "instructions": "You are a coding agent.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "<permissions>"}]},
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "What is the weather in Paris?"}],
        },
    ],
    "tools": [
        {
            "type": "function",
            "name": "get_weather",
            "description": "Weather of a city",
            "strict": False,
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
        {"type": "web_search", "external_web_access": True},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "0199a213-81c0-7800-8aa1-bbab2a035a53",
}
"""The members that Codex sends."""


@pytest.fixture
async def sdk(serving: Serving) -> AsyncIterator[AsyncOpenAI]:
    async with openai_client(serving) as client:
        yield client


@pytest.fixture
async def vllm() -> AsyncIterator[RunningEngine]:
    engine = await start(build_app(EngineKind.VLLM, ["tiny"]))
    yield engine
    await engine.stop()


@pytest.fixture
async def simulated(vllm: RunningEngine, gateway: Gateway) -> AsyncIterator[AsyncOpenAI]:
    """The model ``chat`` is ``tiny`` on a simulated vLLM."""
    serving = await gateway(
        {
            "engines": {"e": {"kind": "vllm", "urls": [vllm.url]}},
            "models": {"chat": {"engine": "e", "model": "tiny", "aliases": ["gpt-5"]}},
        }
    )
    async with openai_client(serving) as client:
        yield client


# ---- whole


async def test_an_answer_has_the_clients_name_and_the_engines_id(client: Client, engine: ScriptedEngine) -> None:
    engine.on(RESPONSES, reply(response()))
    await client.post(RESPONSES, ASK)
    answer = await client.answer()

    assert answer.status == 200
    assert answer.json == response(model="m")
    assert answer.json["id"] == RESPONSE_ID
    assert engine.requests[0].json == ASK | {"model": "org/m"}


async def test_a_request_that_needs_no_change_arrives_byte_for_byte(client: Client, engine: ScriptedEngine) -> None:
    """Members that no chat has, unknown ones, and odd spelling."""
    body = b'{ "model" : "same", "input":"x", "store":false, "previous_response_id":"resp_1", "brand_new": 1.50 }'
    engine.on(RESPONSES, reply(response(model="same")))
    await client.post(RESPONSES, body)
    answer = await client.answer()

    assert engine.requests[0].body == body
    assert answer.header("x-turnout-dropped") is None
    assert answer.json == response(model="same")


async def test_usage_is_counted(client: Client, serving: Serving, engine: ScriptedEngine) -> None:
    engine.on(RESPONSES, in_turn(reply(response()), stream(*response_events("Hi."))))
    for body in (ASK, STREAM):
        await client.post(RESPONSES, body)
        await client.answer()
    meter = serving.meters.meter("m", "e")

    assert (meter.input_tokens, meter.output_tokens) == (26, 24)


# ---- streams


async def test_a_stream_keeps_its_event_names_and_has_no_done(client: Client, engine: ScriptedEngine) -> None:
    engine.on(RESPONSES, stream(*response_events("Hel", "lo")))
    await client.post(RESPONSES, STREAM)
    answer = await client.answer()
    events = read_named(answer.body)

    assert answer.header("content-type") == "text/event-stream; charset=utf-8"
    assert answer.whole
    assert [kind for kind, _ in events] == [kind for kind, _ in read_named(b"".join(response_events("Hel", "lo")))]
    assert {event["response"]["model"] for _, event in events if "response" in event} == {"m"}
    assert b"[DONE]" not in answer.body


async def test_a_stream_of_a_model_with_one_name_is_the_engines(client: Client, engine: ScriptedEngine) -> None:
    events = response_events("Hel", "lo", model="same")
    engine.on(RESPONSES, stream(*events))
    await client.post(RESPONSES, STREAM | {"model": "same"})

    assert (await client.answer()).body == b"".join(events)


async def test_a_stream_that_breaks_off_ends_with_a_failed_response(
    client: Client, serving: Serving, engine: ScriptedEngine
) -> None:
    """The API's own closing event, then a cut; no success for the numbers."""
    engine.on(RESPONSES, stream(*response_events("Hel", end=None)))
    await client.post(RESPONSES, STREAM)
    answer = await client.answer()
    kind, last = read_named(answer.body)[-1]

    assert not answer.whole
    assert kind == "response.failed"
    assert last["sequence_number"] == 4
    assert (last["response"]["id"], last["response"]["status"]) == (RESPONSE_ID, "failed")
    assert last["error"]["code"] == "stream_interrupted"
    assert serving.outcomes() == {"truncated": 1}
    await serving.settled()


@pytest.mark.parametrize(
    "failure",
    [
        named("response.failed", response=response("failed", error={"code": "server_error", "message": "/srv/x.py"})),
        named("error", code="server_error", message="/srv/x.py", param=None),
        b'data: {"error":{"message":"/srv/x.py","type":"InternalServerError","code":500}}\n\n',
    ],
    ids=["failed", "flat", "bare"],
)
async def test_a_failed_response_is_no_success(
    client: Client, serving: Serving, engine: ScriptedEngine, failure: bytes
) -> None:
    """cases.md 73. What the engine says of its inside stays there."""
    engine.on(RESPONSES, stream(*response_events("Hel", end=None), failure))
    await client.post(RESPONSES, STREAM)
    answer = await client.answer()

    assert not answer.whole
    assert read_named(answer.body)[-1][1]["error"]["code"] == "engine_error"
    assert b"/srv" not in answer.body
    assert serving.outcomes() == {"truncated": 1}


async def test_a_failure_before_the_first_word_is_an_http_error(client: Client, engine: ScriptedEngine) -> None:
    engine.on(RESPONSES, stream(*response_events(end=None)[:2], named("error", error={"message": "boom"})))
    await client.post(RESPONSES, STREAM)
    answer = await client.answer()

    assert answer.status == 502
    assert answer.error["code"] == "engine_error"


async def test_a_failure_before_the_first_word_goes_to_another_replica(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """Though the first one has said that it began."""
    settings = one_engine(engine)
    settings["engines"]["e"]["urls"] = [engine.url, other.url]
    serving = await gateway(settings)
    engine.on(RESPONSES, stream(*response_events(end=None)[:2], named("error", error={"message": "boom"})))
    other.on(RESPONSES, stream(*response_events("Hi")))
    async with await serving.connect() as client:
        for _ in range(2):
            await client.post(RESPONSES, STREAM)
            answer = await client.answer()
            assert answer.whole
            assert read_named(answer.body)[-1][0] == "response.completed"

    assert len(engine.requests) >= 1
    assert len(other.requests) == 2


async def test_a_client_that_leaves_ends_the_engines_request(serving: Serving, engine: ScriptedEngine) -> None:
    async def endless(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*response_events("a", "b", end=None))
        await talk.stall()

    engine.on(RESPONSES, endless)
    async with await serving.connect() as client:
        await client.post(RESPONSES, STREAM)
        await client.head()
        talk = await engine.request()
    await talk.left.wait()
    await serving.settled()
    assert serving.outcomes() == {"client_gone": 1}


async def test_an_engine_that_falls_silent_is_too_late(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, timeouts={"first_token": 0.2}))
    engine.on(RESPONSES, silent)
    async with await serving.connect() as client:
        await client.post(RESPONSES, STREAM)
        answer = await client.answer()

    assert (answer.status, answer.error["code"]) == (504, "engine_timeout")


async def test_after_a_heartbeat_an_error_is_a_failed_response(gateway: Gateway, engine: ScriptedEngine) -> None:
    """The status is out, and no engine has given the response an id."""
    serving = await gateway(one_engine(engine, server={"heartbeat": 0.1}))
    asked = asyncio.Event()

    async def slow(talk: Talk) -> None:
        await asked.wait()
        await reply(vllm_error("dead", 500), status=500)(talk)

    engine.on(RESPONSES, slow)
    async with await serving.connect() as client:
        await client.post(RESPONSES, STREAM)
        head = await client.head()
        first = await client.chunk()
        asked.set()
        answer = await client.body(head)

    assert first.startswith(b":")
    assert not answer.whole
    ((kind, told),) = read_named(answer.body.replace(first, b""))
    assert (kind, told["error"]["code"]) == ("response.failed", "engine_error")
    assert told["response"]["id"].startswith("resp_")


# ---- refusals


async def test_an_engine_without_the_path_is_a_clear_refusal(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, "triton"))
    async with await serving.connect() as client:
        await client.post(RESPONSES, ASK)
        answer = await client.answer()

    assert answer.status == 400
    assert answer.error["message"] == "The engine that serves 'm' has no /v1/responses endpoint."
    assert answer.error["param"] == "model"
    assert engine.requests == []


async def test_a_model_on_several_engines_is_served_by_those_that_have_the_path(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    serving = await gateway(
        {
            "engines": {"t": {"kind": "triton", "urls": [other.url]}, "v": {"kind": "vllm", "urls": [engine.url]}},
            "models": {"m": {"targets": [{"engine": "t", "weight": 9}, {"engine": "v"}]}},
        }
    )
    engine.on(RESPONSES, reply(response()))
    async with await serving.connect() as client:
        for _ in range(3):
            await client.post(RESPONSES, ASK)
            assert (await client.answer()).status == 200

    assert len(engine.requests) == 3
    assert other.requests == []


@pytest.mark.parametrize("body", [b'{"detail":"Not Found"}', b""], ids=["older", "rust"])
@pytest.mark.parametrize("kind", ["vllm", "trtllm"])
async def test_an_older_engine_without_the_path(
    gateway: Gateway, engine: ScriptedEngine, kind: str, body: bytes
) -> None:
    """Also vLLM's Rust frontend, which answers an empty 404. It is asked again each time: it may have been replaced."""
    engine.on(RESPONSES, reply(body, status=404))
    engine.on(CHAT, reply(completion()))
    serving = await gateway(one_engine(engine, kind))
    async with await serving.connect() as client:
        for _ in range(2):
            await client.post(RESPONSES, ASK)
            answer = await client.answer()
            assert (answer.status, answer.error["param"]) == (400, "model")
            assert "has no /v1/responses endpoint" in answer.error["message"]
        await client.post(CHAT, HELLO)
        assert (await client.answer()).status == 200
    assert len(engine.requests) == 3


async def test_an_older_engine_beside_one_with_the_path_is_asked_once(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    serving = await gateway(
        {
            "engines": {"t": {"kind": "trtllm", "urls": [other.url]}, "v": {"kind": "vllm", "urls": [engine.url]}},
            "models": {"m": {"targets": [{"engine": "t", "weight": 9}, {"engine": "v"}]}},
        }
    )
    engine.on(RESPONSES, reply(response()))
    async with await serving.connect() as client:
        statuses = []
        for _ in range(4):
            await client.post(RESPONSES, ASK)
            statuses.append((await client.answer()).status)

        assert statuses == [400, 200, 200, 200]
        assert len(other.requests) == 1

        link = serving.plane.engines["t"]
        link.learn(link.build)  # somebody has looked: it may have been replaced
        other.on(RESPONSES, reply(response()))
        for _ in range(2):
            await client.post(RESPONSES, ASK)
            assert (await client.answer()).status == 200
    assert len(other.requests) > 1


@pytest.mark.parametrize("model", ["vectors", "ranker"])
async def test_a_model_for_something_else(gateway: Gateway, engine: ScriptedEngine, model: str) -> None:
    settings = one_engine(engine)
    settings["models"]["ranker"] = {"engine": "e", "task": "rerank"}
    serving = await gateway(settings)
    async with await serving.connect() as client:
        await client.post(RESPONSES, ASK | {"model": model})
        answer = await client.answer()

    assert answer.status == 400
    assert f"'{model}' is a" in answer.error["message"]
    assert engine.requests == []


async def test_errors_have_openais_shape(client: Client, engine: ScriptedEngine) -> None:
    engine.on(
        RESPONSES,
        in_turn(
            reply(vllm_error("This model's maximum context length is 8 tokens."), status=400),
            reply(vllm_error("busy", 503, "Service Unavailable"), status=503),
        ),
    )
    await client.post(RESPONSES, ASK)
    first = await client.answer()
    await client.post(RESPONSES, ASK | {"model": "nope"})
    second = await client.answer()

    assert (first.status, first.error["code"]) == (400, "context_length_exceeded")
    assert (second.status, second.error["code"]) == (404, "model_not_found")


# ---- the real SDK


async def test_the_sdk_reads_an_answer_and_a_stream(simulated: AsyncOpenAI) -> None:
    answer = await simulated.responses.create(model="gpt-5", input="Hello", temperature=0)
    texts, final = [], None
    async for event in await simulated.responses.create(model="gpt-5", input="Hello", temperature=0, stream=True):
        if event.type == "response.output_text.delta":
            texts.append(event.delta)
        elif event.type == "response.completed":
            final = event.response

    assert (answer.output_text, answer.model) == (GREETING, "gpt-5")
    assert answer.usage is not None
    assert answer.usage.output_tokens > 0
    assert "".join(texts) == GREETING
    assert final is not None
    assert (final.output_text, final.model, final.usage) == (GREETING, "gpt-5", answer.usage)


async def test_the_sdks_stream_helper_gives_the_same_answer(simulated: AsyncOpenAI) -> None:
    async with simulated.responses.stream(model="chat", input="Tell me a story.", temperature=0) as events:
        streamed = await events.get_final_response()
    answer = await simulated.responses.create(model="chat", input="Tell me a story.", temperature=0)

    assert streamed.output_text == answer.output_text
    assert streamed.output_text.endswith("The end.")


async def test_an_answer_cut_by_its_limit_is_incomplete(simulated: AsyncOpenAI) -> None:
    answer = await simulated.responses.create(model="chat", input="Tell me a story.", max_output_tokens=5)

    assert answer.status == "incomplete"
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"


async def test_an_answer_that_was_not_kept(simulated: AsyncOpenAI) -> None:
    """vLLM keeps none unless told to; the parameter is named by the client's name for it."""
    with pytest.raises(openai.BadRequestError) as refused:
        await simulated.responses.create(model="chat", input="Hello", previous_response_id="resp_nope")

    assert refused.value.param == "previous_response_id"
    assert "resp_nope" in refused.value.message


async def test_the_sdk_raises_when_a_stream_breaks(sdk: AsyncOpenAI, engine: ScriptedEngine) -> None:
    engine.on(RESPONSES, stream(*response_events("Hel", end=None)))
    events = aiter(await sdk.responses.create(model="m", input="hello", stream=True))
    seen = [(await anext(events)).type for _ in range(4)]
    with pytest.raises(openai.APIError) as broken:
        await anext(events)

    assert seen[-1] == "response.output_text.delta"
    assert broken.value.code == "stream_interrupted"


async def test_an_engine_that_dies_in_mid_stream(vllm: RunningEngine, simulated: AsyncOpenAI) -> None:
    vllm.faults = Faults(die_after=6)
    with pytest.raises(openai.APIError) as broken:
        async for _ in await simulated.responses.create(model="chat", input="Tell me a story.", stream=True):
            pass

    assert broken.value.code == "stream_interrupted"


# ---- Codex


async def test_what_codex_sends_reaches_the_engine_whole(client: Client, engine: ScriptedEngine) -> None:
    """Nothing is dropped or renamed but the model."""
    engine.on(RESPONSES, stream(*response_events("ok")))
    await client.post(RESPONSES, CODEX, [("originator", "codex_cli_rs"), ("session_id", "0199a213")])
    answer = await client.answer()

    assert answer.whole
    assert json.loads(engine.requests[0].body) == CODEX | {"model": "org/m"}
    assert not {"originator", "session_id"} & set(engine.requests[0].names)


async def test_a_turn_of_codex_with_a_tool(simulated: AsyncOpenAI) -> None:
    """The call of a tool as a stream, then its output, as Codex goes on: without stored answers."""
    body: Json = CODEX | {"model": "chat"}
    create: Json = simulated.responses.create  # its overloads want to know the members
    calls = []
    async for event in await create(**body):
        if event.type == "response.output_item.done" and event.item.type == "function_call":
            calls.append(event.item)
    (call,) = calls
    history: Json = [
        *body["input"],
        {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments},
        {"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees"},
    ]
    texts = []
    async for event in await create(**body | {"input": history}):
        if event.type == "response.output_text.delta":
            texts.append(event.delta)

    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "Paris"})
    assert "".join(texts) == "It is 21 degrees in Paris."
