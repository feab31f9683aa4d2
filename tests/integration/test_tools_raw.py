"""Models whose calls only the gateway reads: engines without a parser, and their raw text."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import openai
import pytest
from openai import AsyncOpenAI

from engines.profile import EngineKind
from tests.integration.conftest import Gateway
from tests.support.agent import ASKS, READERS, TIME, TOOLS, WEATHER, Said, accumulated, streamed, whole
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, DONE, completion, delta, event
from tests.support.raw_model import ANSWER, REFUSAL, TIER_1, RawModel
from tests.support.scripted import ScriptedEngine, reply, stream
from tests.support.sdk import openai_client
from tests.support.serving import Serving
from tests.unit.gateway.wire.toolcalls.renderers import FAMILIES

PARIS = ("get_weather", {"city": "Paris"})
GUIDED = {"required": '[{"name": "get_weather", "parameters": {"city": "Paris"}}]', "named": '{"city": "Paris"}'}


def settings(engine: ScriptedEngine, kind: EngineKind, *, model: Json = None, **of_engine: Json) -> Json:
    return {
        "engines": {"e": {"kind": kind.value, "urls": [engine.url], **of_engine}},
        "models": {"m": {"engine": "e", "model": "org/m", **(model or {})}},
    }


@pytest.fixture(params=list(EngineKind), ids=lambda kind: kind.value)
def kind(request: pytest.FixtureRequest) -> EngineKind:
    return EngineKind(request.param)


@pytest.fixture
async def served(gateway: Gateway) -> AsyncIterator[Callable[..., Json]]:
    """Puts a model behind the gateway and gives a client of it."""
    clients: list[Json] = []

    async def serve(engine: ScriptedEngine, kind: EngineKind, text: str, **more: Json) -> tuple[AsyncOpenAI, RawModel]:
        raw = RawModel(kind, text)
        engine.on(CHAT, raw)
        serve.serving = await gateway(settings(engine, kind, **more))  # type: ignore[attr-defined]
        client = openai_client(serve.serving)  # type: ignore[attr-defined]
        clients.append(client)
        return await client.__aenter__(), raw

    yield serve
    for client in clients:
        await client.__aexit__(None, None, None)


def same(said: Said, *calls: tuple[str, Json], finish: str = "tool_calls") -> None:
    assert said.arguments == list(calls)
    assert said.finish == finish
    assert said.content is None


@pytest.mark.parametrize("form", TIER_1)
async def test_an_agent_of_two_turns(served: Json, engine: ScriptedEngine, kind: EngineKind, form: str) -> None:
    """Call, result, answer; whole and streamed; the ids that come back are the ids that the template needs."""
    text = FAMILIES[form].render([PARIS, ("get_time", {})])
    sdk, raw = await served(engine, kind, text, parser="none", model={"tools": {"format": form}})
    for read in READERS.values():
        said = await read(sdk)
        same(said, PARIS, ("get_time", {}))
        results = [{"role": "tool", "tool_call_id": one, "content": "21 degrees"} for one in said.ids]
        end = await read(sdk, [*ASKS, said.assistant, *results])
        assert (end.content, end.calls, end.finish) == (ANSWER, [], "stop")
        history = raw.bodies[-1]["messages"]
        ids = [call["id"] for call in history[1]["tool_calls"]]
        assert [message["tool_call_id"] for message in history[2:]] == ids
        if form == "kimi_k2":
            assert ids == ["functions.get_weather:0", "functions.get_time:1"]
        if form.startswith("mistral"):
            assert all(len(one) == 9 and one.isalnum() for one in ids)


@pytest.mark.parametrize("form", TIER_1)
async def test_an_agent_of_three_turns(served: Json, engine: ScriptedEngine, kind: EngineKind, form: str) -> None:
    """Call, result, call, result, answer; ids that templates count go on over the conversation."""
    render = FAMILIES[form].render
    sdk, raw = await served(engine, kind, render([PARIS]), parser="none", model={"tools": {"format": form}})
    raw.later = (render([("get_time", {}), ("get_weather", {"city": "Oslo"})]),)
    for read in READERS.values():
        messages: list[Json] = [*ASKS]
        made: list[tuple[str, Json]] = []
        while (said := await read(sdk, messages)).calls:
            assert said.finish == "tool_calls"
            made += said.arguments
            messages.append(said.assistant)
            messages += [{"role": "tool", "tool_call_id": one, "content": "21 degrees"} for one in said.ids]
        assert made == [PARIS, ("get_time", {}), ("get_weather", {"city": "Oslo"})]
        assert (said.content, said.finish) == (ANSWER, "stop")
        history = raw.bodies[-1]["messages"]
        ids = [call["id"] for message in history for call in message.get("tool_calls") or ()]
        assert [message["tool_call_id"] for message in history if message["role"] == "tool"] == ids
        assert len(set(ids)) == 3
        if form == "kimi_k2":
            assert ids == ["functions.get_weather:0", "functions.get_time:1", "functions.get_weather:2"]
        if form.startswith("mistral"):
            assert all(len(one) == 9 and one.isalnum() for one in ids)


async def test_the_same_answer_again_has_other_ids(served: Json, engine: ScriptedEngine, kind: EngineKind) -> None:
    """A conversation may hold the same call twice; results are told apart by the ids."""
    text = FAMILIES["hermes"].render([PARIS, PARIS])
    sdk, _ = await served(engine, kind, text, parser="none", model={"tools": {"format": "hermes"}})
    ids = [one for read in READERS.values() for _ in range(2) for one in (await read(sdk)).ids]

    assert len(set(ids)) == len(ids) == 4 * len(READERS)


async def test_what_the_engine_is_asked(served: Json, engine: ScriptedEngine, kind: EngineKind) -> None:
    sdk, raw = await served(engine, kind, "Hi.", parser="none", model={"tools": {"format": "hermes"}})
    await whole(sdk)
    (body,) = raw.bodies

    assert [one["function"]["name"] for one in body["tools"]] == ["get_weather", "get_time"]
    assert body.get("tool_choice") == (None if kind is EngineKind.TRTLLM else "none")
    assert body.get("skip_special_tokens") is (None if kind is EngineKind.TRITON else False)


async def test_text_before_and_after_a_call(served: Json, engine: ScriptedEngine, kind: EngineKind) -> None:
    text = "Let me look. " + FAMILIES["hermes"].render([PARIS]) + " Done."
    sdk, _ = await served(engine, kind, text, parser="none", model={"tools": {"format": "hermes"}})
    for read in READERS.values():
        said = await read(sdk)
        assert said.content == "Let me look.  Done."
        assert said.arguments == [PARIS]


async def test_reasoning_before_a_call(served: Json, engine: ScriptedEngine, kind: EngineKind) -> None:
    text = "<think>\nThey ask for <tool_call>.\n</think>\n\n" + FAMILIES["qwen3_xml"].render([PARIS])
    sdk, _ = await served(engine, kind, text, parser="none", model={"tools": {"format": "qwen3_coder"}})
    for read in READERS.values():
        said = await read(sdk)
        same(said, PARIS)
        assert said.reasoning == "\nThey ask for <tool_call>.\n"


@pytest.mark.parametrize("piece", [1, 7, 1000])
async def test_no_answer_without_a_call_changes(
    served: Json, engine: ScriptedEngine, kind: EngineKind, piece: int
) -> None:
    text = 'A <tool_call> in prose, {"name": "get_weather"} too: 1 < 2 [x].'
    sdk, raw = await served(engine, kind, text, parser="none", model={"tools": {"format": "hermes"}})
    raw.piece = piece
    for read in READERS.values():
        said = await read(sdk)
        assert (said.content, said.calls, said.finish) == (text, [], "stop")


async def test_a_call_cut_by_the_limit(served: Json, engine: ScriptedEngine, kind: EngineKind) -> None:
    """It comes as far as it was written, and says so."""
    text = (
        FAMILIES["hermes"].render([("get_time", {})])
        + '\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Par'
    )
    sdk, raw = await served(engine, kind, text, parser="none", model={"tools": {"format": "hermes"}})
    raw.finish = "length"
    for read in (whole, streamed):
        said = await read(sdk)
        assert said.calls == [("get_time", "{}"), ("get_weather", '{"city": "Par')]
        assert said.finish == "length"


async def test_one_call_at_most(served: Json, engine: ScriptedEngine, kind: EngineKind) -> None:
    text = FAMILIES["hermes"].render([PARIS, ("get_time", {})])
    sdk, raw = await served(engine, kind, text, parser="none", model={"tools": {"format": "hermes"}})
    for read in READERS.values():
        same(await read(sdk, parallel_tool_calls=False), PARIS)
        assert "parallel_tool_calls" not in raw.bodies[-1]
    answer = await sdk.chat.completions.with_raw_response.create(
        model="m", messages=ASKS, tools=TOOLS, parallel_tool_calls=False
    )
    assert answer.headers.get("x-turnout-dropped") == (None if kind is EngineKind.VLLM else "parallel_tool_calls")


async def test_allowed_tools(served: Json, engine: ScriptedEngine, kind: EngineKind) -> None:
    text = FAMILIES["hermes"].render([PARIS])
    sdk, raw = await served(engine, kind, text, parser="none", model={"tools": {"format": "hermes"}})
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "get_weather"}}]}
    same(await whole(sdk, tool_choice={"type": "allowed_tools", "allowed_tools": allowed}), PARIS)

    assert [one["function"]["name"] for one in raw.bodies[-1]["tools"]] == ["get_weather"]


async def test_a_choice_of_none(served: Json, engine: ScriptedEngine, kind: EngineKind) -> None:
    """No call is wanted, so that markup is text."""
    text = FAMILIES["hermes"].render([PARIS])
    sdk, _ = await served(engine, kind, text, parser="none", model={"tools": {"format": "hermes"}})
    for read in READERS.values():
        said = await read(sdk, tool_choice="none", parallel_tool_calls=False)
        assert (said.content, said.calls, said.finish) == (text, [], "stop")


@pytest.mark.parametrize("mode", GUIDED)
async def test_forced_calls_of_a_vllm(served: Json, engine: ScriptedEngine, mode: str) -> None:
    """Held to a schema, since it refuses to force calls without a parser."""
    sdk, raw = await served(engine, EngineKind.VLLM, GUIDED[mode], parser="none", model={"tools": {"format": "hermes"}})
    choice: Json = {"type": "function", "function": {"name": "get_weather"}} if mode == "named" else "required"
    for read in READERS.values():
        same(await read(sdk, tool_choice=choice), PARIS, finish="stop" if mode == "named" else "tool_calls")
        body = raw.bodies[-1]
        assert body["tool_choice"] == "none"
        schema = body["response_format"]["json_schema"]["schema"]
        if mode == "named":
            assert schema == WEATHER["function"]["parameters"]
        else:
            names = [one["properties"]["name"]["const"] for one in schema["items"]["anyOf"]]
            assert names == ["get_weather", "get_time"]


@pytest.mark.parametrize("mode", GUIDED)
async def test_forced_calls_of_a_trtllm_with_guided_decoding(served: Json, engine: ScriptedEngine, mode: str) -> None:
    sdk, raw = await served(engine, EngineKind.TRTLLM, GUIDED[mode], parser="none", guided_decoding=True)
    choice: Json = {"type": "function", "function": {"name": "get_weather"}} if mode == "named" else "required"
    for read in READERS.values():
        same(await read(sdk, tool_choice=choice), PARIS, finish="stop" if mode == "named" else "tool_calls")
        assert raw.bodies[-1]["response_format"]["type"] == "json"


@pytest.mark.parametrize("mode", GUIDED)
async def test_forced_calls_of_a_trtllm_without_it_are_refused(served: Json, engine: ScriptedEngine, mode: str) -> None:
    sdk, raw = await served(engine, EngineKind.TRTLLM, GUIDED[mode], parser="none")
    choice: Json = {"type": "function", "function": {"name": "get_weather"}} if mode == "named" else "required"
    with pytest.raises(openai.BadRequestError) as raised:
        await whole(sdk, tool_choice=choice)

    assert (raised.value.param, raised.value.code) == ("tool_choice", "unsupported_parameter")
    assert "engines.e.guided_decoding: true" in raised.value.message
    assert raw.bodies == []


@pytest.mark.parametrize("kind", [EngineKind.VLLM, EngineKind.TRITON])
async def test_an_engine_says_that_it_has_no_parser(served: Json, engine: ScriptedEngine, kind: EngineKind) -> None:
    """It is asked again at once, and from then on as it wants to be; nobody had to configure anything."""
    sdk, raw = await served(engine, kind, FAMILIES["minimax_m2"].render([PARIS]))
    same(await streamed(sdk), PARIS)
    assert len(raw.bodies) == 2
    same(await whole(sdk), PARIS)
    assert len(raw.bodies) == 3
    assert served.serving.meters.meter("m", "e").outcomes == {"served": 2}


@pytest.mark.parametrize("form", [form for form in TIER_1 if form != "llama3_json"])
async def test_a_format_that_nobody_named(served: Json, engine: ScriptedEngine, form: str) -> None:
    """Markup shows what it is."""
    sdk, _ = await served(engine, EngineKind.TRTLLM, "Well.\n" + FAMILIES[form].render([PARIS]))
    for read in READERS.values():
        said = await read(sdk)
        assert said.arguments == [PARIS]
        assert said.finish == "tool_calls"
        assert said.content is not None
        assert said.content.strip() == "Well."


async def test_log_probabilities_stay_with_the_text(served: Json, engine: ScriptedEngine) -> None:
    """And swallowed markup stays swallowed."""
    sdk, _ = await served(engine, EngineKind.VLLM, "", parser="none", model={"tools": {"format": "hermes"}})
    text = "Hm. " + FAMILIES["hermes"].render([PARIS])
    probabilities = {"content": [{"token": "x", "logprob": -0.5, "bytes": None, "top_logprobs": []}]}
    events = [event(delta("", role="assistant"))]
    for start in range(0, len(text), 4):
        one = delta(text[start : start + 4])
        one["choices"][0]["logprobs"] = probabilities
        events.append(event(one))
    engine.on(CHAT, stream(*events, event(delta(finish="stop")), DONE))
    chunks = [
        chunk
        async for chunk in await sdk.chat.completions.create(
            model="m", messages=ASKS, tools=TOOLS, stream=True, logprobs=True
        )
    ]
    choices = [choice for chunk in chunks for choice in chunk.choices]

    assert "".join(choice.delta.content or "" for choice in choices) == "Hm. "
    assert sum(choice.logprobs is not None for choice in choices) == len(events) - 1


async def test_legacy_functions(served: Json, engine: ScriptedEngine, kind: EngineKind) -> None:
    """OpenAI's words of 2023, there and back."""
    sdk, raw = await served(
        engine, kind, FAMILIES["hermes"].render([PARIS]), parser="none", model={"tools": {"format": "hermes"}}
    )
    functions = [one["function"] for one in TOOLS]
    answer = await sdk.chat.completions.with_raw_response.create(model="m", messages=ASKS, functions=functions)
    (choice,) = answer.parse().choices
    assert choice.finish_reason == "function_call"
    assert choice.message.function_call is not None
    assert choice.message.tool_calls is None
    assert (choice.message.function_call.name, json.loads(choice.message.function_call.arguments)) == PARIS
    assert "functions" in answer.headers["x-turnout-translated"]

    name, arguments, reasons = "", "", []
    async for chunk in await sdk.chat.completions.create(model="m", messages=ASKS, functions=functions, stream=True):
        for part in chunk.choices:
            reasons.append(part.finish_reason)
            assert part.delta.tool_calls is None
            if part.delta.function_call is not None:
                name += part.delta.function_call.name or ""
                arguments += part.delta.function_call.arguments or ""
    assert (name, json.loads(arguments)) == PARIS
    assert reasons[-1] == "function_call"

    history: Json = [
        *ASKS,
        {"role": "assistant", "content": None, "function_call": {"name": name, "arguments": arguments}},
        {"role": "function", "name": name, "content": "21 degrees"},
    ]
    end = await sdk.chat.completions.create(model="m", messages=history, functions=functions)
    assert end.choices[0].message.content == ANSWER
    assert [message["role"] for message in raw.bodies[-1]["messages"]] == ["user", "assistant", "tool"]


async def test_parsing_switched_off(served: Json, engine: ScriptedEngine, kind: EngineKind) -> None:
    """Markup stays where it is, and is counted."""
    text = FAMILIES["hermes"].render([PARIS])
    sdk, _ = await served(engine, kind, "", model={"tools": {"parse": "off"}})
    engine.on(CHAT, stream(event(delta("", role="assistant")), event(delta(text)), event(delta(finish="stop")), DONE))
    said = await streamed(sdk)

    assert (said.content, said.calls) == (text, [])
    assert leaks(served.serving) == 1


async def test_leaked_markup_is_counted_and_read(served: Json, engine: ScriptedEngine) -> None:
    """An engine that is said to parse does not."""
    sdk, _ = await served(engine, EngineKind.VLLM, "", parser="hermes")
    text = FAMILIES["qwen3_xml"].render([PARIS])
    pieces = [event(delta(text[start : start + 5])) for start in range(0, len(text), 5)]
    engine.on(CHAT, stream(event(delta("", role="assistant")), *pieces, event(delta(finish="stop")), DONE))
    for read in (accumulated, streamed):
        same(await read(sdk), PARIS)
    engine.on(CHAT, reply(completion(text)))
    same(await whole(sdk), PARIS)

    assert leaks(served.serving) == 3


def leaks(serving: Serving) -> int:
    found = [one for one in serving.meters.snapshot().events if one[0] == "tool_markup_leaked"]
    assert all(labels == ("m",) for _, labels, _ in found)
    return sum(count for _, _, count in found)


@pytest.mark.parametrize("form", ["hermes", "auto"])
async def test_several_choices(served: Json, engine: ScriptedEngine, form: str) -> None:
    """Each is read by itself, however they are mixed."""
    sdk, _ = await served(engine, EngineKind.VLLM, "", parser="none", model={"tools": {"format": form}})
    text = FAMILIES["hermes"].render([PARIS])
    events = [event(delta("", role="assistant", index=index)) for index in (0, 1)]
    for start in range(0, len(text), 4):
        events.append(event(delta(text[start : start + 4], index=0)))
        events.append(event(delta("word ", index=1)))
    events += [event(delta(finish="stop", index=index)) for index in (1, 0)]
    engine.on(CHAT, stream(*events, DONE))
    async with sdk.chat.completions.stream(model="m", messages=ASKS, tools=[WEATHER, TIME], n=2) as running:
        async for _ in running:
            pass
        first, second = (await running.get_final_completion()).choices

    assert first.finish_reason == "tool_calls"
    assert first.message.tool_calls is not None
    assert json.loads(first.message.tool_calls[0].function.arguments) == PARIS[1]
    assert (second.finish_reason, second.message.tool_calls) == ("stop", None)
    assert second.message.content is not None
    assert second.message.content.startswith("word word ")


@pytest.mark.parametrize("kind", [EngineKind.VLLM, EngineKind.TRITON])
async def test_many_learn_at_once_that_there_is_no_parser(
    served: Json, engine: ScriptedEngine, kind: EngineKind
) -> None:
    """Each request that was refused is asked again, not only the first."""
    sdk, raw = await served(engine, kind, FAMILIES["hermes"].render([PARIS]))
    for said in await asyncio.gather(*(streamed(sdk) for _ in range(8))):
        same(said, PARIS)
    assert len(raw.bodies) <= 16
    await served.serving.settled()


async def test_an_engine_that_refuses_again_is_believed(served: Json, engine: ScriptedEngine) -> None:
    sdk, _ = await served(engine, EngineKind.VLLM, "")
    engine.on(CHAT, reply(REFUSAL[EngineKind.VLLM], status=400))
    with pytest.raises(openai.BadRequestError):
        await whole(sdk)

    assert len(engine.requests) == 2
    await served.serving.settled()


@pytest.mark.parametrize("parse", ["engine", "off"])
async def test_who_wants_the_engine_to_parse_hears_its_refusal(
    served: Json, engine: ScriptedEngine, parse: str
) -> None:
    sdk, raw = await served(engine, EngineKind.VLLM, "Hi.", model={"tools": {"parse": parse}})
    with pytest.raises(openai.BadRequestError):
        await whole(sdk)

    assert len(raw.bodies) == 1


async def test_several_answers_of_an_engine_that_gives_one(served: Json, engine: ScriptedEngine) -> None:
    """Triton serves one choice at a time; each is read."""
    text = FAMILIES["llama3_json"].render([PARIS])
    sdk, raw = await served(engine, EngineKind.TRITON, text, parser="llama3")
    answer = await sdk.chat.completions.create(model="m", messages=ASKS, tools=TOOLS, n=2)
    for choice in answer.choices:
        assert choice.finish_reason == "tool_calls"
        assert choice.message.tool_calls is not None
        assert json.loads(choice.message.tool_calls[0].function.arguments) == PARIS[1]
    assert [body["tool_choice"] for body in raw.bodies] == ["none", "none"]


async def test_a_stream_that_breaks_inside_a_call(served: Json, engine: ScriptedEngine) -> None:
    """It is no call: the client hears of the break."""
    sdk, _ = await served(engine, EngineKind.VLLM, "", parser="none", model={"tools": {"format": "hermes"}})
    pieces = ('Hm. <tool_call>{"name": "get_weather", ', '"arguments": {"city": "Pa')
    engine.on(CHAT, stream(event(delta("", role="assistant")), *(event(delta(one)) for one in pieces)))
    with pytest.raises(openai.APIError) as raised:
        await streamed(sdk)

    assert raised.value.code == "stream_interrupted"
    await served.serving.settled()


async def test_reasoning_that_the_template_opens(served: Json, engine: ScriptedEngine, kind: EngineKind) -> None:
    """Only its end is in the text; and not at all where a request switches thinking off."""
    model = {"tools": {"format": "hermes"}, "reasoning": {"opened": True, "field": "both"}}
    sdk, raw = await served(
        engine, kind, "Hm.</think>" + FAMILIES["hermes"].render([PARIS]), parser="none", model=model
    )
    for read in READERS.values():
        said = await read(sdk)
        same(said, PARIS)
        assert said.reasoning == "Hm."
        raw.text = "Hm.</think>Hi."
        said = await read(sdk, ASKS, [])
        assert (said.reasoning, said.content) == ("Hm.", "Hi.")
        raw.text = "Hm.</think>" + FAMILIES["hermes"].render([PARIS])
    if kind is not EngineKind.TRITON:
        raw.text = "Hi."
        off: Json = {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}
        for read in READERS.values():
            said = await read(sdk, ASKS, [], **off)
            assert (said.reasoning, said.content) == (None, "Hi.")
