"""The same requests with tools to simulated engines of each kind, with and without a parser: the same calls."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

import openai
import pytest
from openai import AsyncOpenAI

from engines.profile import EngineKind
from engines.simulator import Markup, RunningEngine, SimulatedModel, build_app, start
from tests.integration.conftest import Gateway
from tests.support.agent import ASKS, READERS, TIME, TOOLS, WEATHER, Said, streamed, tool, whole
from tests.support.json_type import Json
from tests.support.sdk import openai_client

PARIS = ("get_weather", {"city": "Paris"})
EMAIL = tool("send_email", {"to": {"type": "string"}, "body": {"type": "string"}})
EVENT = tool("create_event")
MARKUPS: Mapping[EngineKind, tuple[Markup, ...]] = {
    EngineKind.VLLM: (Markup.HERMES,),
    EngineKind.TRTLLM: (Markup.HERMES,),
    EngineKind.TRITON: (Markup.LLAMA3, Markup.MISTRAL),
}
PARSERS = {Markup.HERMES: "hermes", Markup.LLAMA3: "llama3", Markup.MISTRAL: "mistral"}


@dataclass(frozen=True, slots=True)
class Case:
    """An engine, and what the gateway is told about it."""

    kind: EngineKind
    markup: Markup
    parser: bool
    told: str
    """`nothing`, `format`, `parser`, or a value of `tools.parse`."""


CASES = [
    Case(kind, markup, parser, told)
    for kind, markups in MARKUPS.items()
    for markup in markups
    for parser in (True, False)
    for told in ("nothing", "format", "parser", "gateway", "engine")
    # Triton's parsers lose calls (engines/triton.md), which is why they are not left alone if it can be helped.
    if not (told == "engine" and (not parser or kind is EngineKind.TRITON))
    if not (told == "nothing" and kind is EngineKind.TRITON)
    # With a parser these two take markup out of the text whatever they are asked for.
    if not (told == "gateway" and parser and kind is EngineKind.TRTLLM)
]


@pytest.fixture
async def stack() -> AsyncIterator[contextlib.AsyncExitStack]:
    async with contextlib.AsyncExitStack() as opened:
        yield opened


Behind = Callable[..., Awaitable[tuple[AsyncOpenAI, RunningEngine]]]


@pytest.fixture
async def behind(stack: contextlib.AsyncExitStack, gateway: Gateway) -> Behind:
    async def serve(case: Case, *, guided: bool = False) -> tuple[AsyncOpenAI, RunningEngine]:
        model = SimulatedModel("tiny", markup=case.markup, parser=case.parser, guided=guided)
        engine = await start(build_app(case.kind, [model]))
        stack.push_async_callback(engine.stop)
        tools: Json = {}
        of_engine: Json = {"guided_decoding": True} if guided else {}
        if case.told in ("format", "gateway"):
            tools["format"] = PARSERS[case.markup]
        if case.told in ("gateway", "engine"):
            tools["parse"] = case.told
        if case.told in ("parser", "engine"):
            of_engine["parser"] = PARSERS[case.markup] if case.parser else "none"
        if case.told == "parser" and not case.parser:
            tools["format"] = PARSERS[case.markup]
        serving = await gateway(
            {
                "engines": {"e": {"kind": case.kind.value, "urls": [engine.url], **of_engine}},
                "models": {"m": {"engine": "e", "model": "tiny", "tools": tools}},
            }
        )
        return await stack.enter_async_context(openai_client(serving)), engine

    return serve


def asks(text: str) -> Json:
    return [{"role": "user", "content": text}]


def id_of(case: Case) -> str:
    return f"{case.kind.value}-{case.markup.value}-{'parser' if case.parser else 'no parser'}-{case.told}"


@pytest.fixture(params=CASES, ids=id_of)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


async def all_alike(sdk: AsyncOpenAI, text: str, tools: list[Json], **more: Json) -> Said:
    """What an application gets, however it reads the answer."""
    answers = [await read(sdk, asks(text), tools, **more) for read in READERS.values()]
    said = answers[0]
    for other in answers[1:]:
        assert (other.content, other.arguments, other.finish) == (said.content, said.arguments, said.finish)
    return said


async def test_calls(case: Case, behind: Behind) -> None:
    """One, two, one without arguments, one with odd characters, one with values of every type."""
    sdk, _ = await behind(case)
    said = await all_alike(sdk, "What is the weather in Paris?", TOOLS)
    assert (said.arguments, said.content, said.finish) == ([PARIS], None, "tool_calls")

    said = await all_alike(sdk, "What is the weather in Paris and Oslo?", TOOLS)
    assert said.arguments == [PARIS, ("get_weather", {"city": "Oslo"})]
    assert said.finish == "tool_calls"

    said = await all_alike(sdk, "What time is it?", TOOLS)
    assert (said.calls, said.finish) == ([("get_time", "{}")], "tool_calls")

    said = await all_alike(sdk, "Email Ada.", [EMAIL])
    assert said.arguments[0][1]["body"] == 'Hi "Ada",\nsee C:\\temp — café \U0001f680 {ok} </b>'

    said = await all_alike(sdk, "Create the launch event.", [EVENT])
    assert said.arguments[0][1]["place"] == {"city": "Oslo", "room": {"floor": 3}}
    assert said.arguments[0][1]["note"] is None


async def test_no_calls(case: Case, behind: Behind) -> None:
    sdk, _ = await behind(case)
    said = await all_alike(sdk, "Hello!", TOOLS)

    assert (said.content, said.calls, said.finish) == ("Hello! How can I help you today?", [], "stop")


async def test_an_agent_of_two_turns(case: Case, behind: Behind) -> None:
    sdk, _ = await behind(case)
    for read in READERS.values():
        said = await read(sdk)
        results = [
            {"role": "tool", "tool_call_id": one, "content": [{"type": "text", "text": "21"}]} for one in said.ids
        ]
        end = await read(sdk, [*ASKS, said.assistant, *results])
        assert (end.content, end.calls) == ("It is 21 degrees in Paris.", [])


async def test_one_call_at_most(case: Case, behind: Behind) -> None:
    sdk, _ = await behind(case)
    said = await all_alike(sdk, "What is the weather in Paris and Oslo?", TOOLS, parallel_tool_calls=False)

    assert said.arguments == [PARIS]


# Elsewhere the model is held to a schema, which the simulated engines do not know.
FORCED = [
    case for case in CASES if case.kind is EngineKind.TRITON or (case.parser and case.told in ("parser", "engine"))
]


@pytest.mark.parametrize("case", FORCED, ids=id_of)
async def test_a_named_tool(case: Case, behind: Behind) -> None:
    """`stop`, as OpenAI says it."""
    sdk, _ = await behind(case, guided=True)
    choice = {"type": "function", "function": {"name": "get_weather"}}
    said = await all_alike(sdk, "What is the weather in Paris?", TOOLS, tool_choice=choice)

    assert (said.arguments, said.content, said.finish) == ([PARIS], None, "stop")


@pytest.mark.parametrize("markup", MARKUPS[EngineKind.TRITON])
@pytest.mark.parametrize("parser", [True, False])
async def test_tritons_only_tool_is_required(markup: Markup, parser: bool, behind: Behind) -> None:
    sdk, _ = await behind(Case(EngineKind.TRITON, markup, parser, "nothing"))
    said = await all_alike(sdk, "What is the weather in Paris?", [WEATHER], tool_choice="required")

    assert (said.arguments, said.content, said.finish) == ([PARIS], None, "tool_calls")


@pytest.mark.parametrize("parser", [True, False])
async def test_triton_is_required_to_call_one_of_several(parser: bool, behind: Behind) -> None:
    """By one tool that stands for all; the answer names the one that was meant."""
    sdk, _ = await behind(Case(EngineKind.TRITON, Markup.LLAMA3, parser, "nothing"))
    for text in ("What is the weather in Paris?", "Hello!"):
        said = await all_alike(sdk, text, TOOLS, tool_choice="required")
        assert [name for name, _ in said.calls] == ["get_weather"]
        assert said.finish == "tool_calls"
        assert list(said.arguments[0][1]) == ["city"]
    raw = await sdk.chat.completions.with_raw_response.create(
        model="m", messages=ASKS, tools=TOOLS, tool_choice="required"
    )
    assert "tool_choice" in raw.headers["x-turnout-translated"]


async def test_trtllm_cannot_be_required_to_call(behind: Behind) -> None:
    sdk, _ = await behind(Case(EngineKind.TRTLLM, Markup.HERMES, parser=True, told="nothing"))
    with pytest.raises(openai.BadRequestError) as raised:
        await whole(sdk, tool_choice="required")

    assert raised.value.param == "tool_choice"


async def test_vllm_required(behind: Behind) -> None:
    sdk, _ = await behind(Case(EngineKind.VLLM, Markup.HERMES, parser=True, told="nothing"))
    said = await all_alike(sdk, "What is the weather in Paris?", [TIME, WEATHER], tool_choice="required")

    assert (said.arguments, said.finish) == ([PARIS], "tool_calls")


@pytest.mark.parametrize("kind", list(EngineKind), ids=lambda kind: kind.value)
async def test_reasoning_without_tools(kind: EngineKind, behind: Behind) -> None:
    """A leading `<think>` block is never content, whether or not anybody configured anything."""
    sdk, _ = await behind(Case(kind, MARKUPS[kind][0], parser=True, told="nothing"))
    for read in READERS.values():
        said = await read(sdk, asks("Think: what is 2+2?"), [])
        assert said.content is not None
        assert said.content.strip() == "2+2 is 4."
        assert said.reasoning is not None
        assert said.reasoning.strip() == "The user asks for 2+2. Two and two make four."


async def test_reasoning_and_a_call(case: Case, behind: Behind) -> None:
    sdk, _ = await behind(case)
    for read in READERS.values():
        said = await read(sdk, asks("Think: weather in Paris?"), TOOLS)
        assert said.arguments == [PARIS]
        assert said.reasoning is not None
        assert said.reasoning.strip() == "I need the weather tool."


async def test_an_answer_cut_by_the_limit(case: Case, behind: Behind) -> None:
    """`length` is the truth about it, whoever parses."""
    sdk, _ = await behind(case)
    said = await streamed(sdk, asks("What is the weather in Paris?"), TOOLS, max_tokens=12)

    assert said.finish == "length"
