"""Answers to requests without tools: reasoning at their beginning, and then nothing to do."""

import json

import pytest

from engines.answers import Answers
from engines.profile import Operation
from gateway.wire.answer import AnswerNames
from gateway.wire.shape import ReasoningField, Shape
from gateway.wire.shape.whole import shape_answer
from gateway.wire.stream import StreamRelay
from gateway.wire.tools import ReasoningRule
from gateway.wire.tools.thinking import Thinking
from tests.support.json_type import Json
from tests.support.openai_bytes import DONE, compact, completion, delta, event
from tests.unit.gateway.wire.shape.shaping import NOW, OWN, documents

CHAT = Operation.CHAT
NAMES = AnswerNames(CHAT, "org/m")


def relayed(stage: Thinking, *events: bytes, expected: int = 1, field: str = "both") -> bytes:
    chain = Shape(CHAT, Answers(), reasoning=ReasoningField(field)).chain({}, {}, stage)
    relay = StreamRelay(NAMES, OWN, chain, lambda: NOW)
    out = b"".join(relay.feed(one) for one in events)
    return out if relay.done else out + (relay.end(expected) or b"")


def texts(*pieces: str, index: int = 0) -> list[bytes]:
    return [event(delta(piece, index=index)) for piece in pieces]


def told(out: bytes, index: int = 0) -> tuple[str, str]:
    """Reasoning and content of one choice."""
    parts = [choice["delta"] for one in documents(out) for choice in one["choices"] if choice["index"] == index]
    return tuple("".join(part.get(name) or "" for part in parts) for name in ("reasoning", "content"))  # type: ignore[return-value]


START, END = event(delta("", role="assistant")), event(delta(finish="stop"))


@pytest.mark.parametrize("pieces", [("Hi", " there."), ("<", "b>bold</b>"), (" ", " Hi."), ("<thin", "g>")])
def test_an_answer_without_reasoning_says_the_same(pieces: tuple[str, ...]) -> None:
    out = relayed(Thinking(ReasoningRule()), START, *texts(*pieces), END, DONE)

    assert told(out) == ("", "".join(pieces))


def test_an_answer_that_begins_plainly_passes_byte_for_byte() -> None:
    events = [START, *texts("Hi ", "<think>", "no", "</think>"), END, DONE]
    stage = Thinking(ReasoningRule())

    assert relayed(stage, *events) == b"".join(events)
    assert stage.over


def test_reasoning_is_streamed_as_it_comes() -> None:
    stage = Thinking(ReasoningRule(field=ReasoningField.REASONING))
    pieces = ("<th", "ink>", "\nOne", " two", "\n</thi", "nk>\n", "\nHi", ".")
    parts = documents(relayed(stage, START, *texts(*pieces), END, DONE, field="reasoning"))
    deltas = [part["choices"][0]["delta"] for part in parts]

    assert deltas[1:-1] == [
        {"reasoning": "\nOne"}, {"reasoning": " two"}, {"reasoning": "\n"}, {"content": "\n\nHi"}, {"content": "."}
    ]  # fmt: skip
    assert stage.over


def test_reasoning_of_the_engine_settles_the_question() -> None:
    thought: Json = delta()
    thought["choices"][0]["delta"] = {"reasoning": "Hm.", "reasoning_content": "Hm."}
    events = [START, event(thought), *texts("<think>", "is content"), END, DONE]
    stage = Thinking(ReasoningRule(opened=True))

    assert told(relayed(stage, *events)) == ("Hm.", "<think>is content")
    assert stage.over


def test_each_choice_has_its_own_beginning() -> None:
    stage = Thinking(ReasoningRule(), choices=2)
    starts = [event(delta("", role="assistant", index=index)) for index in (0, 1)]
    mixed = [*texts("Hi"), *texts("<think>a", index=1), *texts(" there"), *texts("</think>b", index=1)]
    ends = [event(delta(finish="stop", index=index)) for index in (0, 1)]
    out = relayed(stage, *starts, *mixed, *ends, DONE, expected=2)

    assert told(out) == ("", "Hi there")
    assert told(out, 1) == ("a", "b")
    assert stage.over


def test_an_answer_that_is_cut_while_thinking() -> None:
    out = relayed(
        Thinking(ReasoningRule()), START, *texts("<think>One", " two</th"), event(delta(finish="length")), DONE
    )

    assert told(out) == ("One two</th", "")
    assert documents(out)[-1]["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("content", "rule", "reasoning", "said"),
    [
        ("Hi.", ReasoningRule(), None, "Hi."),
        ("<think>Hm.</think>Hi.", ReasoningRule(), "Hm.", "Hi."),
        ("</think>Hi.", ReasoningRule(), None, "Hi."),
        ("<think>Hm.</think>Hi.", ReasoningRule("off"), None, "<think>Hm.</think>Hi."),
        ("[THINK]Hm.[/THINK]Hi.", ReasoningRule("magistral"), "Hm.", "Hi."),
        ("Hm.</think>Hi.", ReasoningRule(opened=True), "Hm.", "Hi."),
        ("<think>Hm.", ReasoningRule(), "Hm.", None),
    ],
)
def test_whole_answers(content: str, rule: ReasoningRule, reasoning: str | None, said: str | None) -> None:
    body = compact(completion(content))
    chain = Shape(CHAT, Answers()).chain({}, {}, Thinking(rule))
    made = shape_answer(body, NAMES, OWN, chain, lambda: NOW)
    (message,) = [choice["message"] for choice in json.loads(made)["choices"]]

    assert (message.get("reasoning"), message["content"]) == (reasoning, said)
    assert message.get("reasoning_content") == reasoning
    assert (made is body) == (content == said)


def test_markup_that_nobody_reads_is_told_once() -> None:
    leaks: list[str] = []
    stage = Thinking(ReasoningRule(), on_leak=leaks.append)
    events = [START, *texts("Hi. <tool_", "call>\n{", '"name": "f"}</tool_call>', "<tool_call>"), END, DONE]

    assert relayed(stage, *events) == b"".join(events)
    assert leaks == ["hermes"]
