"""Requests that simulated engines refuse in their own ways: a client's mistake, never an engine's."""

import contextlib
from collections.abc import AsyncIterator, Mapping

import pytest

from engines.profile import EngineKind
from engines.simulator import RunningEngine, SimulatedModel, build_app, start
from gateway.balance.endpoint import EndpointState
from tests.integration.conftest import Gateway
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, COMPLETIONS
from tests.support.serving import Serving

LONG = "word " * 300
"""More tokens than `LENGTH`."""
LENGTH = 200
ASK = {"role": "user", "content": "What is the weather in Paris?"}
WEATHER: Json = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}


@pytest.fixture
async def stack() -> AsyncIterator[contextlib.AsyncExitStack]:
    async with contextlib.AsyncExitStack() as opened:
        yield opened


async def two_replicas(
    kind: EngineKind, gateway: Gateway, stack: contextlib.AsyncExitStack, model: Mapping[str, Json] | None = None
) -> Serving:
    """A gateway in front of two engines of a kind, their model `tiny` called `m`."""
    running: list[RunningEngine] = []
    for _ in range(2):
        running.append(await start(build_app(kind, [SimulatedModel("tiny", max_length=LENGTH)])))
        stack.push_async_callback(running[-1].stop)
    return await gateway(
        {
            "engines": {"e": {"kind": kind.value, "urls": [engine.url for engine in running]}},
            "models": {"m": {"engine": "e", "model": "tiny", **(model or {})}},
        }
    )


def all_up(serving: Serving) -> bool:
    return all(endpoint.state is not EndpointState.EJECTED for endpoint in serving.plane.endpoints)


TOO_LONG: Mapping[str, tuple[str, Json]] = {
    "chat": (CHAT, {"model": "m", "messages": [{"role": "user", "content": LONG}]}),
    "completions": (COMPLETIONS, {"model": "m", "prompt": LONG}),
}


@pytest.mark.parametrize("kind", list(EngineKind), ids=lambda kind: kind.value)
@pytest.mark.parametrize("operation", TOO_LONG)
async def test_prompts_that_are_too_long_take_no_engine_out(
    kind: EngineKind, operation: str, gateway: Gateway, stack: contextlib.AsyncExitStack
) -> None:
    """Twelve of them, each 400 at its first engine: whatever status the engine gives, it is the client's mistake."""
    serving = await two_replicas(kind, gateway, stack)
    path, body = TOO_LONG[operation]
    async with await serving.connect() as client:
        for _ in range(12):
            await client.post(path, body)
            answer = await client.answer()
            assert (answer.status, answer.error["code"]) == (400, "context_length_exceeded")
            assert answer.header("x-turnout-attempts") == "1"
            assert "tiny" not in answer.error["message"]
    assert all_up(serving)


@pytest.mark.parametrize("operation", TOO_LONG)
async def test_tritons_streams_of_too_long_prompts_are_tried_twice(
    operation: str, gateway: Gateway, stack: contextlib.AsyncExitStack
) -> None:
    """The connection is cut without a word: it may be the request, so it goes to one more replica and no further."""
    serving = await two_replicas(EngineKind.TRITON, gateway, stack)
    path, body = TOO_LONG[operation]
    async with await serving.connect() as client:
        await client.post(path, {**body, "stream": True})
        answer = await client.answer()
    assert (answer.status, answer.error["code"]) == (502, "engine_error")
    assert answer.header("x-turnout-attempts") == "2"


@pytest.mark.parametrize("kind", list(EngineKind), ids=lambda kind: kind.value)
async def test_no_messages_at_all(kind: EngineKind, gateway: Gateway, stack: contextlib.AsyncExitStack) -> None:
    """Each engine's words for it become one that names the parameter."""
    serving = await two_replicas(kind, gateway, stack)
    async with await serving.connect() as client:
        await client.post(CHAT, {"model": "m", "messages": None})
        answer = await client.answer()
    assert (answer.status, answer.error["param"]) == (400, "messages")
    assert "'messages'" in answer.error["message"]


async def test_a_stop_that_is_none_on_vllm(gateway: Gateway, stack: contextlib.AsyncExitStack) -> None:
    """Neither text nor a list: refused by the engine in the name of the parameter."""
    serving = await two_replicas(EngineKind.VLLM, gateway, stack)
    async with await serving.connect() as client:
        await client.post(CHAT, {"model": "m", "messages": [ASK], "stop": 5})
        answer = await client.answer()
    assert (answer.status, answer.error["param"]) == (400, "stop")


@pytest.mark.parametrize("streamed", [False, True])
async def test_tritons_500s_about_earlier_calls_are_not_sent_for(
    streamed: bool, gateway: Gateway, stack: contextlib.AsyncExitStack
) -> None:
    """Broken arguments in the history are refused before Triton can fail at them, with their place."""
    serving = await two_replicas(EngineKind.TRITON, gateway, stack)
    call = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": "{city"}}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    async with await serving.connect() as client:
        await client.post(CHAT, {"model": "m", "stream": streamed, "messages": [ASK, said], "tools": [WEATHER]})
        answer = await client.answer()
    assert (answer.status, answer.error["param"]) == (400, "messages[1].tool_calls[0].function.arguments")
    assert all_up(serving)
