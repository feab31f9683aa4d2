"""What clients get of models that write a call although the request says `tool_choice: none`."""

import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from engines.profile import EngineKind
from engines.simulator import Markup, SimulatedModel, build_app, start
from tests.integration.conftest import Gateway
from tests.support.agent import TOOLS
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT

MARKUPS = [
    (EngineKind.VLLM, Markup.HERMES),
    (EngineKind.TRTLLM, Markup.HERMES),
    (EngineKind.TRITON, Markup.LLAMA3),
    (EngineKind.TRITON, Markup.MISTRAL),
]
BODY: Json = {
    "model": "m",
    "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
    "tools": TOOLS,
    "tool_choice": "none",
}


@pytest.fixture
async def stack() -> AsyncIterator[contextlib.AsyncExitStack]:
    async with contextlib.AsyncExitStack() as opened:
        yield opened


async def answer(
    kind: EngineKind,
    markup: Markup,
    parser: bool,
    streamed: bool,
    gateway: Gateway,
    stack: contextlib.AsyncExitStack,
    parse: str = "auto",
) -> Answer:
    engine = await start(build_app(kind, [SimulatedModel("tiny", markup=markup, parser=parser)]))
    stack.push_async_callback(engine.stop)
    serving = await gateway(
        {
            "engines": {"e": {"kind": kind.value, "urls": [engine.url]}},
            "models": {"m": {"engine": "e", "model": "tiny", "tools": {"parse": parse, "format": markup.value}}},
        }
    )
    async with await serving.connect() as client:
        await client.post(CHAT, {**BODY, "stream": streamed})
        return await client.answer()


def said(answer: Answer) -> tuple[str, bool, str]:
    """The content, whether there is a call, and the reason why it ended."""
    if answer.header("content-type") == "application/json":
        choices = json.loads(answer.body)["choices"]
        parts = [choice["message"] for choice in choices]
    else:
        events = [json.loads(line[6:]) for line in answer.body.decode().splitlines() if line.startswith("data: {")]
        choices = [choice for event in events for choice in event["choices"]]
        parts = [choice["delta"] for choice in choices]
    text = "".join(part.get("content") or "" for part in parts)
    return text, any(part.get("tool_calls") for part in parts), choices[-1]["finish_reason"]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("parser", [False, True])
@pytest.mark.parametrize(("kind", "markup"), MARKUPS)
async def test_under_none_there_is_never_a_call(
    kind: EngineKind,
    markup: Markup,
    parser: bool,
    streamed: bool,
    gateway: Gateway,
    stack: contextlib.AsyncExitStack,
) -> None:
    """The markup is the model's text, unless the engine itself takes it away."""
    text, called, finish = said(await answer(kind, markup, parser, streamed, gateway, stack))
    assert (called, finish) == (False, "stop")
    if not (kind is EngineKind.TRTLLM and parser):
        assert "get_weather" in text
        assert "Paris" in text


@pytest.mark.parametrize("streamed", [False, True])
async def test_trtllm_with_a_parser_takes_the_markup_away(
    streamed: bool, gateway: Gateway, stack: contextlib.AsyncExitStack
) -> None:
    """Nothing is left of an answer that was all call; `tools.parse: gateway` cannot have it back either."""
    for parse in ("auto", "gateway"):
        given = await answer(EngineKind.TRTLLM, Markup.HERMES, True, streamed, gateway, stack, parse)
        assert said(given) == ("", False, "stop")
