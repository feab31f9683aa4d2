"""What a client may send reaches each kind of engine as that engine takes it, or is refused by name."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

from engines.profile import EngineKind
from engines.simulator import Answer, Call, Markup, Request, SimulatedModel, Turn, build_app, start
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Client
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, completion
from tests.support.openai_bytes import HELLO as ASK
from tests.support.scripted import ScriptedEngine, reply
from tests.support.sdk import openai_client
from tests.support.serving import Serving

HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hello!"}]
PARAMETERS: ChatCompletionToolParam = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
TIME: ChatCompletionToolParam = {"type": "function", "function": {"name": "get_time"}}

VALUES: dict[str, Json] = {
    "audio": {"voice": "alloy", "format": "wav"},
    "frequency_penalty": 0.5,
    "function_call": "auto",
    "functions": [{"name": "f", "parameters": {"type": "object"}}],
    "logit_bias": {"5": 1},
    "logprobs": True,
    "max_completion_tokens": 5,
    "max_tokens": 5,
    "metadata": {"a": "b"},
    "modalities": ["text"],
    "n": 2,
    "parallel_tool_calls": False,
    "prediction": {"type": "content", "content": "x"},
    "presence_penalty": 0.5,
    "prompt_cache_key": "k",
    "prompt_cache_retention": "24h",
    "reasoning_effort": "low",
    "response_format": {"type": "json_object"},
    "safety_identifier": "u",
    "seed": 5,
    "service_tier": "auto",
    "stop": ["\n"],
    "store": True,
    "temperature": 0.5,
    "tool_choice": "auto",
    "tools": [],
    "top_p": 0.5,
    "user": "u",
    "verbosity": "low",
    "web_search_options": {},
    # engines' own
    "chat_template_kwargs": {"enable_thinking": False},
    "guided_choice": ["a", "b"],
    "guided_json": {"type": "object"},
    "ignore_eos": False,
    "min_p": 0.1,
    "min_tokens": 1,
    "repetition_penalty": 1.1,
    "stop_token_ids": [5],
    "structured_outputs": {"choice": ["a", "b"]},
    "top_k": 5,
}
"""A value for each parameter that an OpenAI server, or vLLM for its own, would take."""


@dataclass(slots=True)
class Setting:
    kind: EngineKind
    serving: Serving
    sdk: AsyncOpenAI
    client: Client
    asked: list[dict[str, Any]]

    async def post(self, body: dict[str, Json]) -> tuple[int, Json]:
        await self.client.post("/v1/chat/completions", {"model": "chat", "messages": list(HELLO)} | body)
        answer = await self.client.answer()
        return answer.status, answer.json


def script(turn: Turn) -> Answer:
    """Calls the first tool, twice if asked so, until it has the result."""
    if turn.text == "two":
        name = next(iter(turn.tools))
        return Answer((Call(name, '{"city": "Oslo"}'), Call(name, '{"city": "Rome"}')))
    if turn.tools and turn.tool_result is None:
        return Answer((Call(turn.forced or next(iter(turn.tools)), '{"city": "Oslo"}'),))
    return Answer(("It is cold.",))


@pytest.fixture(params=list(EngineKind), ids=lambda kind: kind.value)
async def setting(request: pytest.FixtureRequest, gateway: Gateway) -> AsyncIterator[Setting]:
    """The model ``chat`` is on an engine of that kind, which writes down what it is asked."""
    kind = EngineKind(request.param)
    asked: list[dict[str, Any]] = []

    def note(heard: Request) -> None:
        if heard.method == "POST":
            asked.append(json.loads(heard.body))

    markup = Markup.LLAMA3 if kind is EngineKind.TRITON else Markup.HERMES
    engine = await start(build_app(kind, [SimulatedModel("tiny", script=script, markup=markup)], observer=note))
    serving = await gateway(
        {
            "engines": {"e": {"kind": kind.value, "urls": [engine.url]}},
            "models": {
                "chat": {"engine": "e", "model": "tiny"},
                "strict": {"engine": "e", "model": "tiny", "unknown_parameters": "reject"},
                "raw": {"engine": "e", "model": "tiny", "tools": {"parse": "off"}},
            },
        }
    )
    async with openai_client(serving) as sdk, await serving.connect() as client:
        yield Setting(kind, serving, sdk, client, asked)
    await serving.settled()
    await engine.stop()


async def test_no_parameter_surprises_the_engine(setting: Setting) -> None:
    """Each is served, or refused by the gateway in its name; the engine never says no to what it was sent."""
    for name, value in VALUES.items():
        setting.asked.clear()
        status, document = await setting.post({name: value})
        if status == 200:
            assert setting.asked, name
            continue
        assert status == 400, (name, document)
        assert document["error"]["param"] == name, document
        assert document["error"]["code"] == "unsupported_parameter", document
        assert setting.asked == [], name


async def test_no_null_surprises_the_engine(setting: Setting) -> None:
    """null is absent for OpenAI."""
    for name in VALUES:
        status, document = await setting.post({name: None})
        assert status == 200, (name, document)


async def test_a_history_of_whole_messages(setting: Setting) -> None:
    """SDKs send an answer back as they got it: `refusal`, `annotations`, `function_call: null` and all."""
    create = setting.sdk.chat.completions.create
    first = await create(model="chat", messages=HELLO, tools=[PARAMETERS])
    call, history = first.choices[0].message, list(HELLO)
    assert call.tool_calls
    dumped: Any = call.model_dump()
    dumped |= {"refusal": None, "annotations": [], "audio": None, "function_call": None, "reasoning_content": "hm"}
    history.append(dumped)
    history.append({"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": "3 degrees"})
    second = await create(model="chat", messages=history, tools=[PARAMETERS])
    assert second.choices[0].message.content == "It is cold."
    echoed: Any = second.choices[0].message.model_dump()
    third = await create(model="chat", messages=[*history, echoed, *HELLO])

    assert third.choices[0].finish_reason == "stop"


async def test_system_messages_stay_where_they_are(setting: Setting) -> None:
    """Neither moved nor merged: what a template makes of them is the model's affair."""
    messages: list[ChatCompletionMessageParam] = [
        {"role": "user", "content": "a"},
        {"role": "system", "content": "b"},
        {"role": "developer", "content": [{"type": "text", "text": "c"}]},
        {"role": "user", "content": [{"type": "text", "text": "d"}]},
    ]
    await setting.sdk.chat.completions.create(model="chat", messages=messages)
    sent = setting.asked[-1]["messages"]

    if setting.kind is EngineKind.TRITON:
        assert sent == [*messages[:2], {"role": "system", "content": "c"}, messages[3]]
    else:
        assert sent == messages


async def test_allowed_tools(setting: Setting) -> None:
    """Only they can be called; the others do not reach the engine."""
    choice: Any = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "get_weather"}}]},
    }
    answer = await setting.sdk.chat.completions.create(
        model="chat", messages=HELLO, tools=[TIME, PARAMETERS], tool_choice=choice
    )

    assert answer.choices[0].message.tool_calls
    assert [tool["function"]["name"] for tool in setting.asked[-1]["tools"]] == ["get_weather"]
    assert setting.asked[-1]["tool_choice"] == "auto"


async def test_one_call_at_most(setting: Setting) -> None:
    """The first call is given, also where the engine knows nothing of it."""
    two: list[ChatCompletionMessageParam] = [{"role": "user", "content": "two"}]
    create = setting.sdk.chat.completions.create
    answer = await create(model="chat", messages=two, tools=[PARAMETERS], parallel_tool_calls=False)
    assert len(answer.choices[0].message.tool_calls or ()) == 1
    assert answer.choices[0].finish_reason == "tool_calls"
    indices = set()
    async for chunk in await create(
        model="chat", messages=two, tools=[PARAMETERS], parallel_tool_calls=False, stream=True
    ):
        indices |= {call.index for choice in chunk.choices for call in choice.delta.tool_calls or ()}
    assert indices == {0}

    if setting.kind is not EngineKind.VLLM:
        assert not any("parallel_tool_calls" in body for body in setting.asked)


async def test_functions_of_old(setting: Setting) -> None:
    """Asked for in OpenAI's words before there were tools, and answered in them."""
    functions: Any = [PARAMETERS["function"]]
    answer = await setting.sdk.chat.completions.create(
        model="chat", messages=HELLO, functions=functions, function_call="auto"
    )
    (choice,) = answer.choices

    assert choice.finish_reason == "function_call"
    assert choice.message.function_call is not None
    assert (choice.message.function_call.name, choice.message.tool_calls) == ("get_weather", None)
    assert json.loads(choice.message.function_call.arguments) == {"city": "Oslo"}
    assert "functions" not in setting.asked[-1]


async def test_calls_that_are_left_to_the_engine(setting: Setting) -> None:
    """With `tools.parse: off` the gateway makes no promise about calls that the engine does not keep."""
    create = setting.sdk.chat.completions.create
    if setting.kind is not EngineKind.VLLM:
        with pytest.raises(openai.BadRequestError) as refused:
            await create(model="raw", messages=HELLO, tools=[PARAMETERS], parallel_tool_calls=False)
        assert (refused.value.param, refused.value.code) == ("parallel_tool_calls", "unsupported_parameter")
    functions: Any = [PARAMETERS["function"]]
    with pytest.raises(openai.BadRequestError) as refused:
        await create(model="raw", messages=HELLO, functions=functions)
    assert (refused.value.param, refused.value.code) == ("functions", "unsupported_parameter")


async def test_what_was_done_is_told(setting: Setting) -> None:
    """The headers name what did not reach the engine, and what reached it otherwise."""
    raw = await setting.sdk.chat.completions.with_raw_response.create(
        model="chat",
        messages=HELLO,
        store=True,
        max_completion_tokens=5,
        extra_body={"unheard_of": 1, "guided_choice": ["a"]} if setting.kind is EngineKind.VLLM else {"unheard_of": 1},
    )
    dropped = set(raw.headers["x-turnout-dropped"].split(", "))
    translated = set(raw.headers.get("x-turnout-translated", "").split(", ")) - {""}

    assert dropped == {"unheard_of"} | (set() if setting.kind is EngineKind.VLLM else {"store"})
    expected = {EngineKind.VLLM: {"guided_choice"}, EngineKind.TRTLLM: {"max_completion_tokens"}}
    assert translated == expected.get(setting.kind, set())


async def test_a_strict_model_refuses_what_nobody_knows(setting: Setting) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await setting.sdk.chat.completions.create(model="strict", messages=HELLO, extra_body={"unheard_of": 1})

    assert (refused.value.param, refused.value.code) == ("unheard_of", "unknown_parameter")
    assert setting.asked == []


async def test_broken_arguments_in_the_history(setting: Setting) -> None:
    """Empty ones are taken for none; broken ones are an error of the request where the engine would fail on them."""

    def history(arguments: str) -> list[Any]:
        call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
        result = {"role": "tool", "tool_call_id": "call_1", "content": "3 degrees"}
        return [*HELLO, {"role": "assistant", "content": None, "tool_calls": [call]}, result]

    create = setting.sdk.chat.completions.create
    assert (await create(model="chat", messages=history(""))).choices[0].message.content == "It is cold."
    if setting.kind is EngineKind.TRITON:
        with pytest.raises(openai.BadRequestError) as refused:
            await create(model="chat", messages=history('{"city": "Par'))
        assert refused.value.param == "messages[1].tool_calls[0].function.arguments"


FORMATS: dict[str, Any] = {
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
    "guided_json": {"type": "object"},
    "guided_choice": ["a", "b"],
    "structured_outputs": {"regex": "a+"},
}


@pytest.mark.parametrize("said", [None, True, False])
@pytest.mark.parametrize("name", FORMATS)
async def test_a_trtllm_without_guided_decoding_promises_no_format(
    gateway: Gateway, engine: ScriptedEngine, name: str, said: bool | None
) -> None:
    """It would take the request and answer what it likes; nobody but its operator can tell the gateway so."""
    engine.answer(reply(completion()))
    serving = await gateway(one_engine(engine, "trtllm", guided_decoding=said))
    async with await serving.connect() as client:
        await client.post(CHAT, ASK | {name: FORMATS[name]})
        answer = await client.answer()
        if said is False:
            assert (answer.status, answer.error["param"]) == (400, name)
            assert answer.error["code"] == "unsupported_parameter"
            assert engine.requests == []
        else:
            assert answer.status == 200
            assert "response_format" in engine.requests[0].json
        await client.post(CHAT, ASK | {"response_format": {"type": "text"}})
        assert (await client.answer()).status == 200


async def test_what_is_said_of_guided_decoding_counts_after_a_reload(gateway: Gateway, engine: ScriptedEngine) -> None:
    """The engine stays the same one; what it may be asked for follows the settings in force."""
    engine.answer(reply(completion()))
    serving = await gateway(one_engine(engine, "trtllm"), whole=True)
    async with await serving.connect() as client:
        for said, status in ((False, 400), (True, 200), (None, 200), (False, 400)):
            settings = one_engine(engine, "trtllm", guided_decoding=said)
            serving.apply(settings | {"models": {"m": {"engine": "e", "model": "org/m"}}})
            await client.post(CHAT, ASK | {"response_format": {"type": "json_object"}})
            assert (await client.answer()).status == status
