"""The doctor's checks take any answer, and ask no more than is stated."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.profile import EngineKind
from gateway.doctor.asking import Heard, How, Left, Question
from gateway.doctor.examination import CONTRACT, HEALTH, IDENTITY, LAST, MANNERS, SERVING, Examination
from gateway.doctor.finding import Finding, Level
from gateway.doctor.subject import Lines, Site
from gateway.settings import Settings
from gateway.settings.document import read_document

KINDS = list(EngineKind)
TEXTS = {
    EngineKind.VLLM: "{task: embedding}",
    EngineKind.TRTLLM: "{tools: {format: hermes, parse: gateway}}",
    EngineKind.TRITON: "{tools: {format: llama3_json}, reasoning: {opened: true}}",
}


def examined(kind: EngineKind, urls: str = "http://h:1") -> tuple[Examination, Site]:
    text = f"""\
engines:
  e: {{kind: {kind.value}, urls: [{urls}], api_key: k}}
models:
  plain: {{engine: e, context: 100000}}
  other: {{engine: e, {TEXTS[kind][1:-1]}}}
"""
    document = read_document(text, {})
    found = Examination(Settings.model_validate(document.tree), Lines("turnout.yaml", document))
    return found, found.sites("e")[0]


def all_questions(examination: Examination, site: Site) -> list[Question]:
    found = [question for check in (*HEALTH, *IDENTITY, *MANNERS) for question in check.asks(site)]
    for subject in examination.subjects(site):
        found += [question for check in (*SERVING, *CONTRACT, *LAST) for question in check.asks(subject)]
    return list(dict.fromkeys(found))


def all_findings(examination: Examination, site: Site, answers: Mapping[Question, Heard]) -> list[Finding]:
    found = [finding for check in (*HEALTH, *IDENTITY, *MANNERS) for finding in check.judge(site, answers)]
    for subject in examination.subjects(site):
        checks = (*SERVING, *CONTRACT, *LAST)
        found += [finding for check in checks for finding in check.judge(subject, answers)]
    return found


LEAVES = st.none() | st.booleans() | st.integers(-5, 200) | st.text(max_size=20) | st.sampled_from(["m", "length"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
MESSAGES = st.fixed_dictionaries({}, optional=dict.fromkeys(("content", "tool_calls", "reasoning", "role"), VALUES))
CHOICES = st.fixed_dictionaries({}, optional={"message": MESSAGES | VALUES, "finish_reason": VALUES, "delta": MESSAGES})
ANSWERS = st.fixed_dictionaries(
    {}, optional={"choices": st.lists(CHOICES | VALUES, max_size=2), "usage": VALUES, "data": VALUES, "error": VALUES}
)
BODIES = (
    st.binary(max_size=60)
    | ANSWERS.map(lambda value: json.dumps(value).encode())
    | st.lists(ANSWERS, max_size=3).map(lambda all_: b"".join(b"data: %s\n\n" % json.dumps(a).encode() for a in all_))
)
NUMBERS = st.none() | st.floats(0, 3)
HEARD = st.builds(
    Heard,
    status=st.sampled_from([0, 200, 200, 200, 400, 401, 404, 422, 500, 503]),
    headers=st.sampled_from([{}, {"date": "Tue, 01 Dec 2026 09:00:00 GMT"}, {"date": "\x00 yesterday"}]),
    body=BODIES,
    failure=st.sampled_from(["", "", "", "no answer within 5 s"]),
    trust=st.booleans(),
    at=st.sampled_from([0.0, 1796112000.0]),
    expires=st.none() | st.just(1.0),
    idle=NUMBERS,
    left=st.none() | st.builds(Left, NUMBERS, NUMBERS, NUMBERS, st.just(1.0)),
)


EXAMINED = {kind: examined(kind) for kind in KINDS}
QUESTIONS = {kind: all_questions(*EXAMINED[kind]) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100, deadline=None)
@given(heard=st.lists(HEARD, min_size=1, max_size=5))
def test_no_answer_of_an_engine_makes_a_check_fail(kind: EngineKind, heard: list[Heard]) -> None:
    """Whatever comes back, there are findings, in words, and each has a remedy."""
    examination, site = EXAMINED[kind]
    answers = {question: heard[at % len(heard)] for at, question in enumerate(QUESTIONS[kind])}
    for finding in all_findings(examination, site, answers):
        assert finding.evidence
        assert finding.fix
        assert finding.level in Level


@pytest.mark.parametrize("kind", KINDS)
def test_the_stated_cost_is_that_of_all_questions_and_small(kind: EngineKind) -> None:
    examination, asked = EXAMINED[kind][0], QUESTIONS[kind]
    cost = examination.cost("e")
    looks = sum(examination.patience.looks for question in asked if question.how is How.LEAVE)
    assert (cost.requests, cost.tokens) == (len(asked) + looks, sum(question.tokens for question in asked))
    assert cost.requests <= 60
    assert cost.tokens <= 1000


@pytest.mark.parametrize("kind", KINDS)
def test_every_request_that_makes_an_engine_generate_has_a_stated_number_of_tokens(kind: EngineKind) -> None:
    for question in QUESTIONS[kind]:
        if question.path in ("/v1/chat/completions", "/v1/completions"):
            assert 0 < question.tokens <= 128
            assert json.loads(question.body or b"")["messages"]


def test_a_further_replica_is_asked_for_one_answer_of_each_model_only() -> None:
    alone = EXAMINED[EngineKind.VLLM][0].cost("e")
    both = examined(EngineKind.VLLM, "http://h:1, http://h:2")[0].cost("e")
    assert both.tokens - alone.tokens <= 16
    assert both.requests - alone.requests <= 12


def test_the_line_of_a_key_is_named_or_that_of_what_is_around_it() -> None:
    examination, site = EXAMINED[EngineKind.VLLM]
    assert site.at("kind") == "turnout.yaml:2: engines.e.kind"
    assert site.at("parser") == "turnout.yaml:2: engines.e.parser"
    assert examination.lines.at("models", "other", "tools", "format") == "turnout.yaml:5: models.other.tools.format"
