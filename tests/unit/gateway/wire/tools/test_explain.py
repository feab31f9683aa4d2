"""Who reads a model's calls, in words."""

import pytest

from engines.profile import EngineKind
from gateway.wire.tools import Facts, Parse, explain
from tests.unit.gateway.wire.tools.asking import facts_of


@pytest.mark.parametrize(
    ("facts", "reader", "why"),
    [
        (facts_of(EngineKind.VLLM), "engine", "whether it has a tool parser is not known"),
        (facts_of(EngineKind.VLLM, parser="hermes"), "engine", "it has a tool parser"),
        (facts_of(EngineKind.VLLM, parser="none"), "gateway", "it has no tool parser"),
        (facts_of(EngineKind.VLLM, learnt=True), "gateway", "it said that it has no tool parser"),
        (facts_of(EngineKind.TRTLLM, parse=Parse.GATEWAY), "gateway", "tools.parse is gateway"),
        (facts_of(EngineKind.TRITON, parse=Parse.ENGINE), "engine", "tools.parse is engine"),
        (facts_of(EngineKind.TRITON, parse=Parse.OFF), "nobody", "tools.parse is off"),
        (
            facts_of(EngineKind.TRITON, parser="llama3"),
            "gateway",
            "its parsers lose calls, and the format is known (parser)",
        ),
    ],
)
def test_the_reason_is_part_of_the_choice(facts: Facts, reader: str, why: str) -> None:
    found = explain(facts)

    assert (found.reader, found.why) == (reader, why)


def test_the_evidence_is_told_too() -> None:
    found = explain(facts_of(EngineKind.VLLM, form="qwen3-coder"))
    assert (found.format, found.source, found.evidence) == ("qwen3_xml", "configuration", "qwen3-coder")
    found = explain(facts_of(EngineKind.VLLM))
    assert (found.format, found.source) == ("", "")
