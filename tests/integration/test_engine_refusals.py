"""Requests that simulated engines refuse in their own ways: a client's mistake, never an engine's."""

import contextlib
import re
from collections.abc import AsyncIterator, Mapping

import pytest

from engines.profile import EngineKind
from engines.simulator import RunningEngine, SimulatedModel, build_app, start
from gateway.balance.endpoint import EndpointState
from tests.integration.conftest import Gateway
from tests.support.json_type import Json
from tests.support.openai_bytes import (
    CHAT,
    COMPLETIONS,
    DONE,
    HELLO,
    STREAM,
    compact,
    completion,
    deltas,
    vllm_error,
)
from tests.support.scripted import (
    Script,
    ScriptedEngine,
    chunked,
    hang_up,
    in_turn,
    packets,
    reply,
    stream,
    stream_head,
)
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


async def one_scripted(kind: str, engine: ScriptedEngine, gateway: Gateway) -> Serving:
    """A gateway in front of a scripted engine, which calls the model `m` by its own name `org/Secret-7B`."""
    return await gateway(
        {
            "engines": {"e": {"kind": kind, "urls": [engine.url]}},
            "models": {"m": {"engine": "e", "model": "org/Secret-7B"}},
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
            assert answer.error["message"].endswith("(context_length_exceeded)")
    assert all_up(serving)


@pytest.mark.parametrize("operation", TOO_LONG)
async def test_tritons_streams_of_too_long_prompts_are_refused_in_words(
    operation: str, gateway: Gateway, stack: contextlib.AsyncExitStack
) -> None:
    """Triton cuts them without a word; asked once more for a whole answer it says why, and is not blamed."""
    serving = await two_replicas(EngineKind.TRITON, gateway, stack)
    path, body = TOO_LONG[operation]
    async with await serving.connect() as client:
        for _ in range(12):
            await client.post(path, {**body, "stream": True})
            answer = await client.answer()
            assert (answer.status, answer.error["code"]) == (400, "context_length_exceeded")
            assert answer.header("x-turnout-attempts") == "1"
    assert all_up(serving)
    assert serving.retries() == {"cut": 12}


async def test_one_choice_of_several_that_is_too_long_is_refused_in_words(
    gateway: Gateway, stack: contextlib.AsyncExitStack
) -> None:
    """Each choice is a request of its own on Triton; the client gets one error all the same."""
    serving = await two_replicas(EngineKind.TRITON, gateway, stack)
    path, body = TOO_LONG["chat"]
    async with await serving.connect() as client:
        await client.post(path, {**body, "stream": True, "n": 2})
        answer = await client.answer()
    assert (answer.status, answer.error["code"]) == (400, "context_length_exceeded")
    assert all_up(serving)


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


CUT = packets(stream_head(), chunked(deltas(finish=None)[0]), fin=True)
"""How Triton refuses a stream: the role, then the end of the connection."""


async def test_what_a_cut_stream_is_asked_again_for(gateway: Gateway, engine: ScriptedEngine) -> None:
    """The same prompt for one token, in one piece, without wishes that so short an answer cannot fulfil."""
    serving = await one_scripted("triton", engine, gateway)
    engine.answer(in_turn(CUT, reply({"detail": "maximum context length is 5"}, status=500)))
    wishes = {"max_completion_tokens": 50, "min_tokens": 9, "stream_options": {"include_usage": True}, "seed": 3}
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM | wishes)
        answer = await client.answer()
    assert (answer.status, answer.error["code"]) == (400, "context_length_exceeded")
    first, second = (request.json for request in engine.requests)
    assert second == {
        "model": "org/Secret-7B",
        "messages": first["messages"],
        "temperature": 1,
        "seed": 3,
        "max_tokens": 1,
    }


@pytest.mark.parametrize(
    "again",
    [
        reply(completion()),
        reply({"detail": "Something else."}, status=500),
        hang_up,
        CUT,
    ],
    ids=["served", "failed", "no answer", "cut"],
)
async def test_a_stream_that_a_failing_engine_cut_stays_its_failure(
    again: Script, gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """If the second look shows no mistake of the client's, another replica is tried as ever."""
    serving = await gateway(
        {
            "engines": {"e": {"kind": "triton", "urls": [engine.url, other.url]}},
            "models": {"m": {"engine": "e", "policy": "round_robin"}},
        }
    )
    whole = stream(*deltas("Hi."), DONE)
    engine.answer(in_turn(CUT, again, whole))
    other.answer(in_turn(whole))
    async with await serving.connect() as client:
        for _ in range(2):  # whichever of the two is first
            await client.post(CHAT, STREAM)
            answer = await client.answer()
            assert answer.status == 200
            assert answer.body.endswith(DONE)
    assert len(engine.requests) == 2
    assert serving.retries() == {"cut": 1, "died": 1}


async def test_streams_of_other_engines_are_not_asked_for_twice(gateway: Gateway, engine: ScriptedEngine) -> None:
    """They say what is wrong with a request before they begin to stream."""
    serving = await one_scripted("vllm", engine, gateway)
    engine.answer(CUT)
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM)
        answer = await client.answer()
    assert (answer.status, answer.error["code"]) == (502, "engine_error")
    assert len(engine.requests) == 1


@pytest.mark.parametrize(
    ("kind", "status", "body"),
    [
        ("vllm", 400, vllm_error("org/Secret-7B does not do what `org/Secret-7B` is asked.")),
        ("vllm", 400, vllm_error("The maximum context length of org/Secret-7B is 5.")),
        ("trtllm", 400, {"object": "error", "message": "No such thing in 'org/Secret-7B'.", "code": 400}),
        ("triton", 400, {"detail": "Model org/Secret-7B has no such tensor."}),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_an_engine_s_own_name_for_a_model_stays_inside(
    kind: str, status: int, body: Json, streamed: bool, gateway: Gateway, engine: ScriptedEngine
) -> None:
    """In words that no rule knows, the client reads the name that it asked for."""
    serving = await one_scripted(kind, engine, gateway)
    engine.answer(reply(compact(body), status=status))
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO | {"stream": streamed})
        answer = await client.answer()
    assert answer.status == 400
    assert "Secret" not in answer.error["message"]
    assert "m" in re.findall(r"\w+", answer.error["message"])
