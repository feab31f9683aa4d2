"""How a request with tools is served, by what is known of the model and its engine."""

import pytest

from engines.policy import ParameterRefused
from engines.profile import EngineKind
from gateway.wire.tools import (
    EngineParses,
    Facts,
    Forced,
    Named,
    Off,
    Parse,
    Raw,
    Refused,
    Union,
    known_format,
    plan,
    prepare,
    read_ask,
)
from tests.support.json_type import Json
from tests.unit.gateway.wire.tools.asking import NAMED, TIME, TOOLS, WEATHER, asked, facts_of, members_of, plain

VLLM, TRTLLM, TRITON = EngineKind.VLLM, EngineKind.TRTLLM, EngineKind.TRITON


@pytest.mark.parametrize(
    ("facts", "choice", "kind"),
    [
        (facts_of(VLLM), None, EngineParses),
        (facts_of(VLLM), "required", EngineParses),
        (facts_of(VLLM, parser="hermes"), NAMED, EngineParses),
        (facts_of(VLLM, parser="none"), "auto", Raw),
        (facts_of(VLLM, parser="none"), "required", Forced),
        (facts_of(VLLM, parser="none"), NAMED, Forced),
        (facts_of(VLLM, parser="none"), "none", Off),
        (facts_of(VLLM, learnt=True), None, Raw),
        (facts_of(VLLM, parser="hermes", learnt=True), None, Raw),
        (facts_of(VLLM, parser="hermes", parse=Parse.GATEWAY), None, Raw),
        (facts_of(VLLM, parser="none", parse=Parse.ENGINE), None, EngineParses),
        (facts_of(VLLM, parser="none", parse=Parse.OFF), None, Off),
        (facts_of(TRTLLM), None, EngineParses),
        (facts_of(TRTLLM, form="hermes"), None, Raw),
        (facts_of(TRTLLM, parser="qwen3"), None, EngineParses),
        (facts_of(TRTLLM, parser="none"), None, Raw),
        (facts_of(TRTLLM, parser="none"), NAMED, Refused),
        (facts_of(TRTLLM, parser="none", guided=True), NAMED, Forced),
        (facts_of(TRTLLM, parser="none", guided=True), "required", Forced),
        (facts_of(TRTLLM, parser="qwen3"), NAMED, EngineParses),
        (facts_of(TRTLLM, parser="qwen3"), "required", Refused),
        (facts_of(TRTLLM, parser="qwen3", guided=True), "required", Forced),
        (facts_of(TRTLLM), NAMED, EngineParses),
        (facts_of(TRITON), None, EngineParses),
        (facts_of(TRITON, form="hermes"), None, Raw),
        (facts_of(TRITON, parser="llama3"), None, Raw),
        (facts_of(TRITON, parser="llama3", parse=Parse.ENGINE), None, EngineParses),
        (facts_of(TRITON, parser="none"), NAMED, EngineParses),
        (facts_of(TRITON), "required", Union),
    ],
)
def test_who_reads_the_calls(facts: Facts, choice: Json, kind: type) -> None:
    ask, _ = asked(choice=choice)
    decided = plan(facts, ask)

    assert isinstance(decided, kind)
    assert isinstance(decided, Refused) or decided.why


@pytest.mark.parametrize("facts", [facts_of(TRITON), facts_of(TRTLLM, parser="qwen3")])
def test_the_only_tool_is_asked_for_by_name(facts: Facts) -> None:
    ask, members = asked([TIME], "required")
    decided = plan(facts, ask)

    assert isinstance(decided, Named)
    tooled = prepare(decided, facts, ask, members)
    assert tooled.members is not None
    assert plain(tooled.members)["tool_choice"] == {"type": "function", "function": {"name": "get_time"}}
    assert tooled.translated == ("tool_choice",)


def test_a_request_whose_tools_nobody_can_read_is_the_engines() -> None:
    for choice in ("auto", "required"):
        ask, members = asked("nonsense", choice)
        for kind in EngineKind:
            decided = plan(facts_of(kind), ask)
            if not isinstance(decided, Refused):
                assert prepare(decided, facts_of(kind), ask, members).members is None
    ask, members = asked("nonsense", "required")
    with pytest.raises(ParameterRefused):
        prepare(Forced(""), facts_of(VLLM, parser="none"), ask, members)


@pytest.mark.parametrize("tools", [[], None])
def test_no_tools_no_plan(tools: Json) -> None:
    assert read_ask(members_of(tools=tools, tool_choice="none")) is None
    assert read_ask(members_of(messages=[])) is None


def test_the_best_evidence_for_a_format_wins() -> None:
    """Configuration, then the engine's parser, then the model's name."""
    by_name = known_format("auto", None, VLLM, "org/Qwen3-Coder-30B")
    assert (by_name.format, by_name.source) == ("qwen3_xml", "name")
    by_parser = known_format("auto", "glm4", TRTLLM, "org/Qwen3-Coder-30B")
    assert (by_parser.format, by_parser.source) == ("glm45", "parser")
    configured = known_format("minimax-m2", "glm4", TRTLLM, "org/Qwen3-Coder-30B")
    assert (configured.format, configured.source) == ("minimax_m2", "configuration")
    assert known_format("auto", "none", VLLM, "mine", "Qwen3-8B").format == "hermes"
    assert known_format("", None, VLLM, "mine").format == ""


def test_mistrals_parser_is_another_one_on_triton() -> None:
    assert known_format("auto", "mistral", TRITON, "x").format == "mistral_v3"
    assert known_format("auto", "mistral", VLLM, "x").format == "mistral_v11"


def test_a_constraint_of_the_clients_and_a_forced_call_exclude_each_other() -> None:
    ask, members = asked(choice="required", structured_outputs={"regex": "a"})
    facts = facts_of(VLLM, parser="none")
    with pytest.raises(ParameterRefused) as raised:
        prepare(plan(facts, ask), facts, ask, members)

    assert raised.value.param == "structured_outputs"


def test_a_forced_call_takes_the_place_of_a_format() -> None:
    ask, members = asked(choice=NAMED, response_format={"type": "json_object"})
    facts = facts_of(VLLM, parser="none")
    tooled = prepare(plan(facts, ask), facts, ask, members)
    assert tooled.members is not None
    made = plain(tooled.members)

    assert made["response_format"]["json_schema"]["schema"] == WEATHER["function"]["parameters"]
    assert made["tool_choice"] == "none"
    assert made["tools"] == TOOLS


def test_a_tool_that_is_not_offered_cannot_be_forced() -> None:
    ask, members = asked(choice={"type": "function", "function": {"name": "other"}})
    facts = facts_of(VLLM, parser="none")
    with pytest.raises(ParameterRefused) as raised:
        prepare(plan(facts, ask), facts, ask, members)

    assert (raised.value.param, raised.value.code) == ("tool_choice", "invalid_value")


def test_what_needs_no_change_goes_on_as_it_came() -> None:
    ask, members = asked(parallel_tool_calls=False)
    facts = facts_of(VLLM, parser="hermes")

    assert prepare(plan(facts, ask), facts, ask, members).members is None
