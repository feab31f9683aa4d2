"""A real vLLM's tool calls are the same whether its parser reads them or the gateway does."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolChoiceOptionParam, ChatCompletionToolParam

from tests.e2e.conftest import Engine
from tests.e2e.serve_vllm import CHAT_MODEL
from tests.e2e.test_real_vllm import GET_TIME, GET_WEATHER
from tests.running import LOOPBACK, answers, free_port, running

pytestmark = pytest.mark.e2e

CONFIG = """\
engines:
  chat: {{kind: vllm, urls: [{chat}]}}
models:
  parsed: {{engine: chat, model: {model}}}
  raw: {{engine: chat, model: {model}, tools: {{format: hermes, parse: gateway}}}}
  guessed: {{engine: chat, model: {model}, tools: {{parse: gateway}}}}
"""
MODELS = ("parsed", "raw", "guessed")
TOOLS: list[ChatCompletionToolParam] = [GET_WEATHER, GET_TIME]
Calls = list[tuple[str, object]]


@pytest.fixture(scope="module")
def sdk(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    """The SDK, pointed at a gateway that serves one vLLM model under three names."""
    folder = tmp_path_factory.mktemp("tools")
    config = folder / "turnout.yaml"
    config.write_text(CONFIG.format(chat=engine.chat_url, model=CHAT_MODEL))
    port = free_port()
    url = f"http://{LOOPBACK}:{port}"
    turnout = str(Path(sys.executable).with_name("turnout"))
    with running("tools", [turnout, "serve", "--config", str(config), "--port", str(port)], folder) as gateway:
        gateway.wait_until(lambda: answers(f"{url}/readyz"), 30)
        with OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0, timeout=60) as client:
            yield client


def ask(prompt: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": prompt}]


def whole(sdk: OpenAI, model: str, prompt: str, choice: ChatCompletionToolChoiceOptionParam = "auto") -> Calls:
    answer = sdk.chat.completions.create(
        model=model, messages=ask(prompt), temperature=0, tools=TOOLS, tool_choice=choice, max_tokens=200
    )
    calls = answer.choices[0].message.tool_calls or []
    return [(call.function.name, json.loads(call.function.arguments)) for call in calls if call.type == "function"]


def streamed(sdk: OpenAI, model: str, prompt: str, choice: ChatCompletionToolChoiceOptionParam = "auto") -> Calls:
    calls: list[list[str]] = []
    for chunk in sdk.chat.completions.create(
        model=model,
        messages=ask(prompt),
        temperature=0,
        tools=TOOLS,
        tool_choice=choice,
        max_tokens=200,
        stream=True,
    ):
        for part in chunk.choices[0].delta.tool_calls or []:
            assert part.function is not None
            if part.index == len(calls):
                calls.append([part.function.name or "", ""])
            calls[part.index][1] += part.function.arguments or ""
    return [(name, json.loads(arguments)) for name, arguments in calls]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("prompt", "calls"),
    [
        ("What is the weather in Paris?", [("get_weather", {"city": "Paris"})]),
        ("What time is it?", [("get_time", {})]),
        (
            "What is the weather in Paris and Oslo?",
            [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Oslo"})],
        ),
        ("Hello!", []),
    ],
)
def test_whoever_reads_them_the_calls_are_the_same(sdk: OpenAI, model: str, prompt: str, calls: Calls) -> None:
    assert whole(sdk, model, prompt) == calls
    assert streamed(sdk, model, prompt) == calls


@pytest.mark.parametrize("model", MODELS)
def test_an_agent_of_two_turns(sdk: OpenAI, model: str) -> None:
    messages = ask("What is the weather in Paris?")
    first = sdk.chat.completions.create(model=model, messages=messages, temperature=0, tools=TOOLS)
    message = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls"
    assert message.content is None
    assert message.tool_calls
    messages += [
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
                for call in message.tool_calls
                if call.type == "function"
            ],
        },
        {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "21 degrees"},
    ]
    last = sdk.chat.completions.create(model=model, messages=messages, temperature=0, tools=TOOLS)

    assert last.choices[0].message.content == "It is 21 degrees in Paris."


@pytest.mark.parametrize("model", ["raw", "guessed"])
@pytest.mark.parametrize("choice", ["required", "named"])
def test_calls_are_forced_without_the_engines_parser(sdk: OpenAI, model: str, choice: str) -> None:
    """By a JSON schema. The tiny model was never taught to write such; it may go on until its limit."""
    named: ChatCompletionToolChoiceOptionParam = {"type": "function", "function": {"name": "get_weather"}}
    answer = sdk.chat.completions.create(
        model=model,
        messages=ask("What is the weather in Paris?"),
        temperature=0,
        tools=[GET_WEATHER],
        tool_choice="required" if choice == "required" else named,
        max_tokens=60,
    )
    message = answer.choices[0].message
    assert message.content is None
    assert message.tool_calls
    call = message.tool_calls[0]
    assert call.type == "function"
    assert call.function.name == "get_weather"
    assert call.function.arguments.replace(" ", "").startswith('{"city":"')


@pytest.mark.parametrize("model", MODELS)
def test_thoughts_are_no_content(sdk: OpenAI, model: str) -> None:
    for tools in (TOOLS, openai.omit):
        answer = sdk.chat.completions.create(
            model=model, messages=ask("Think: what is 2+2?"), temperature=0, tools=tools, max_tokens=100
        )
        message = answer.choices[0].message
        assert "<think>" not in (message.content or "")
        if tools is openai.omit:
            assert message.content is not None
            assert message.content.strip() == "2+2 is 4."
            assert "two" in getattr(message, "reasoning", "").lower()
