"""`turnout doctor` on tool calls, reasoning and JSON schemas: formats, parsers, and who reads what."""

import json
from pathlib import Path

import pytest

from engines.profile import EngineKind
from engines.simulator import SimulatedModel
from engines.simulator.markup import Markup
from engines.simulator.script import Answer, Thought, Turn, tiny_script
from engines.simulator.server import listening
from gateway.doctor.finding import Level
from tests.integration.doctor import Doctor, engine
from tests.support.bent import Bent

FLAG = "--enable-auto-tool-choice --tool-call-parser"


@pytest.fixture
def doctor(tmp_path: Path) -> Doctor:
    return Doctor(tmp_path)


def file(kind: str, url: str, model: str = "", more: str = "") -> str:
    return f"engines:\n  e: {{kind: {kind}, urls: [{url}]{more}}}\nmodels:\n  m: {{engine: e{model}}}\n"


async def test_a_vllm_without_tool_parser_is_found_with_the_flags_for_its_model(doctor: Doctor) -> None:
    """The gateway reads the calls itself: a warning, which goes away when the file says so."""
    async with engine("vllm", "m:noparser") as url:
        finding = await doctor.only(file("vllm", url), "tool_calls")
        assert finding.level is Level.WARNING
        assert "has no tool parser" in finding.evidence
        assert f"{FLAG} hermes, or say so: turnout.yaml:2: engines.e.parser: none" in finding.fix
        assert await doctor(file("vllm", url, ", tools: {format: hermes}", ", parser: none")) == []


async def test_without_parser_it_is_an_error_where_the_engine_is_to_parse(doctor: Doctor) -> None:
    async with engine("vllm", "m:noparser") as url:
        finding = await doctor.only(file("vllm", url, ", tools: {parse: engine}"), "tool_calls")
    assert finding.level is Level.ERROR
    assert f"{FLAG} hermes" in finding.fix
    assert "models.m.tools: {parse: gateway}" in finding.fix


async def test_a_parser_that_the_file_claims_and_the_engine_has_not_is_found(doctor: Doctor) -> None:
    async with engine("vllm", "m:noparser") as url:
        finding = await doctor.only(file("vllm", url, more=", parser: hermes"), "tool_calls")
    assert "the file says that its parser is hermes" in finding.evidence


async def test_a_wrong_parser_that_loses_calls_is_found_with_the_right_one(doctor: Doctor) -> None:
    """vLLM with the hermes parser, and a model that writes as Llama does."""
    async with engine("vllm", SimulatedModel("m", markup=Markup.LLAMA3)) as url:
        finding = await doctor.one(file("vllm", url), "tool_calls")
    assert finding.level is Level.ERROR
    assert "(llama3_json)" in finding.evidence
    assert f"{FLAG} llama3_json" in finding.fix
    assert "models.m.tools: {format: llama3_json, parse: gateway}" in finding.fix


async def test_markup_that_a_wrong_parser_lets_through_names_its_format(doctor: Doctor) -> None:
    async with engine("vllm", SimulatedModel("m", markup=Markup.MISTRAL)) as url:
        finding = await doctor.one(file("vllm", url), "tool_calls")
    assert "markup as text" in finding.evidence
    assert f"{FLAG} mistral" in finding.fix


async def test_a_wrong_format_in_the_file_is_found_with_the_line_that_mends_it(doctor: Doctor) -> None:
    async with engine("vllm", "m") as url:
        finding = await doctor.one(file("vllm", url, ", tools: {format: mistral, parse: gateway}"), "tool_format")
        assert finding.level is Level.ERROR
        assert finding.evidence == "the model writes hermes, and the file says mistral"
        assert finding.fix == "turnout.yaml:4: models.m.tools.format: hermes"
        # Where the engine's own parser reads, the wrong line does less harm.
        finding = await doctor.only(file("vllm", url, ", tools: {format: mistral}"), "tool_format")
        assert finding.level is Level.WARNING


async def test_a_parser_of_the_file_that_does_not_fit_the_model_is_found(doctor: Doctor) -> None:
    async with engine("vllm", "m") as url:
        finding = await doctor.only(file("vllm", url, more=", parser: kimi_k2"), "tool_format")
    assert "the engine's parser is said to be kimi_k2" in finding.evidence
    assert finding.fix.startswith("turnout.yaml:2: engines.e.parser: hermes")


async def test_a_name_that_suggests_the_wrong_format_is_found(doctor: Doctor) -> None:
    async with engine("vllm", "deepseek-r1-distill") as url:
        finding = await doctor.only(file("vllm", url, ", model: deepseek-r1-distill"), "tool_format")
    assert "its name suggests deepseek" in finding.evidence
    assert finding.fix == "turnout.yaml:4: models.m.tools.format: hermes"


async def test_a_trtllm_without_parser_is_found_although_it_says_nothing(doctor: Doctor) -> None:
    async with engine("trtllm", "m:noparser") as url:
        finding = await doctor.one(file("trtllm", url), "tool_calls")
    assert "hermes markup as text" in finding.evidence
    assert "--tool_parser qwen3" in finding.fix
    assert "engines.e.parser: none" in finding.fix


async def test_guided_decoding_that_the_file_promises_and_the_engine_has_not_is_found(doctor: Doctor) -> None:
    async with engine("trtllm", SimulatedModel("m", guided=False)) as url:
        found = await doctor(file("trtllm", url, more=", parser: qwen3, guided_decoding: true"))
    named = next(finding for finding in found if finding.check == "tool_named")
    assert named.level is Level.ERROR
    assert "guided_decoding_backend: xgrammar" in named.fix
    assert "json_schema" in {finding.check for finding in found}


@pytest.mark.parametrize("kind", ["vllm", "trtllm"])
async def test_a_schema_that_is_taken_and_not_kept_is_found(doctor: Doctor, kind: str) -> None:
    async with engine(kind, SimulatedModel("m", guided=False)) as url:
        finding = await doctor.one(file(kind, url), "json_schema")
    assert "taken and not kept" in finding.evidence


async def test_a_call_that_arrives_broken_is_found(doctor: Doctor) -> None:
    def broken(path: str, body: bytes) -> bytes:
        return body.replace(b'{\\"city\\": \\"Paris\\"}', b'{\\"town\\": \\"Paris\\"}')

    async with listening(Bent(EngineKind.VLLM, [SimulatedModel("m")], broken)) as running:
        found = await doctor(file("vllm", running.url, ", tools: {parse: engine}"))
    assert {finding.check for finding in found} == {"tool_calls", "tool_required", "tool_named"}
    assert 'get_weather {"town": "Paris"}' in found[0].evidence


async def test_a_call_that_is_right_in_one_piece_and_broken_in_a_stream_is_found(doctor: Doctor) -> None:
    """Seen with real parsers: arguments sent twice, or not at all."""

    def twice(path: str, body: bytes) -> bytes:
        if not body.startswith(b"data: {") or b'"function":{"arguments":' not in body:
            return body
        event = json.loads(body[6:])
        function = event["choices"][0]["delta"]["tool_calls"][0]["function"]
        function["arguments"] *= 2
        return b"data: " + json.dumps(event).encode() + b"\n\n"

    async with listening(Bent(EngineKind.VLLM, [SimulatedModel("m")], twice)) as running:
        finding = await doctor.only(file("vllm", running.url, ", tools: {format: hermes}"), "tool_stream")
    assert finding.level is Level.ERROR
    assert "does not arrive in a stream: get_weather {" in finding.evidence
    assert finding.fix.endswith("turnout.yaml:4: models.m.tools: {format: hermes, parse: gateway}")


def always_thinking(turn: Turn) -> Answer:
    return Answer((Thought("Hm."), *tiny_script(turn).segments))


def never_thinking(turn: Turn) -> Answer:
    return Answer(tuple(part for part in tiny_script(turn).segments if not isinstance(part, Thought)))


async def test_a_reasoning_parser_for_a_model_that_does_not_think_is_found(doctor: Doctor) -> None:
    """vLLM's parser takes everything for thoughts where no tag opens any."""
    model = SimulatedModel("m", reasoning="qwen3", script=never_thinking)
    async with engine("vllm", model) as url:
        finding = await doctor.one(file("vllm", url), "reasoning")
    assert "a whole answer arrives as reasoning" in finding.evidence
    assert "without --reasoning-parser" in finding.fix


async def test_thoughts_in_the_content_are_found_where_the_file_leaves_them_there(doctor: Doctor) -> None:
    async with engine("vllm", SimulatedModel("m", script=always_thinking)) as url:
        assert "reasoning" not in {finding.check for finding in await doctor(file("vllm", url))}
        finding = await doctor.one(file("vllm", url, ", reasoning: {format: 'off'}"), "reasoning")
    assert "<think> in the content" in finding.evidence
    assert finding.fix == "turnout.yaml:4: models.m.reasoning.format: auto"


async def test_a_template_that_opens_the_reasoning_itself_is_found(doctor: Doctor) -> None:
    def opened(turn: Turn) -> Answer:
        return Answer(("I see.\n</think>\n\n", *never_thinking(turn).segments))

    async with engine("vllm", SimulatedModel("m", script=opened)) as url:
        finding = await doctor.one(file("vllm", url, ", reasoning: {format: seed_oss}"), "reasoning")
    assert "</think> in the content" in finding.evidence
    assert "{opened: true}" in finding.fix


async def test_a_parser_that_swallows_calls_with_all_their_text_is_found(doctor: Doctor) -> None:
    """Tokens are counted, and there is nothing: seen with parsers that trtllm-serve had chosen by itself."""

    def swallow(path: str, body: bytes) -> bytes:
        if b'"tool_calls":[{' not in body:
            return body
        answer = json.loads(body)
        answer["choices"][0]["message"]["tool_calls"] = []
        answer["choices"][0]["finish_reason"] = "stop"
        return json.dumps(answer).encode()

    model = SimulatedModel("qwen3-coder-30b")
    async with listening(Bent(EngineKind.TRTLLM, [model], swallow)) as running:
        text = file("trtllm", running.url, ", model: qwen3-coder-30b", ", guided_decoding: false")
        finding = await doctor.one(text, "tool_calls")
    assert finding.level is Level.ERROR
    assert "tokens were generated, and neither a call nor a text arrives" in finding.evidence
    assert "--tool_parser qwen3_coder" in finding.fix
