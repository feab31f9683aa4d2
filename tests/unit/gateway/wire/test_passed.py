"""Whole answers that are passed on: the model's name is set right, the usage is read, the rest is left alone."""

import json

import pytest

from engines.profile import Operation
from gateway.wire.answer import AnswerNames, Usage
from gateway.wire.passed import PASSED, pass_answer
from tests.support.json_type import Json
from tests.support.named_bytes import message, response
from tests.support.openai_bytes import compact

NAMES = AnswerNames(Operation.MESSAGES, "m")
SCORES: Json = {"id": "score-1", "model": "org/m", "results": [], "usage": {"prompt_tokens": 11, "total_tokens": 11}}


@pytest.mark.parametrize("document", [response(), message(), SCORES], ids=["response", "message", "rerank"])
def test_the_client_sees_its_own_name(document: dict[str, Json]) -> None:
    out, _ = pass_answer(compact(document), NAMES)
    assert json.loads(out) == document | {"model": "m"}
    assert list(json.loads(out)) == list(document)


@pytest.mark.parametrize(
    "body",
    [
        b'{"count":5,"max_model_len":1024,"tokens":[446,330],"token_strs":null}',
        b'{"prompt":"FPZ"}',
        b'{"input_tokens":13,"context_management":{"original_input_tokens":13}}',
        b'{ "model" : "m", "x" : 1.50 }',
    ],
)
def test_what_needs_no_change_is_the_object_that_came(body: bytes) -> None:
    assert pass_answer(body, NAMES)[0] is body


def test_only_the_answers_own_model_is_changed() -> None:
    """A tool may well have an argument of that name, and stand before it."""
    call: Json = {"type": "tool_use", "id": "x", "name": "f", "input": {"model": "m"}}
    out, _ = pass_answer(compact(message() | {"content": [call]}), NAMES)
    assert json.loads(out)["content"] == [call]
    assert json.loads(out)["model"] == "m"


@pytest.mark.parametrize(
    ("document", "usage"),
    [
        (response(), Usage(13, 12)),
        (message(), Usage(13, 12)),
        (SCORES, Usage(11, 0)),
        ({"prompt": "x"}, None),
        ({"usage": None}, None),
        ({"usage": {"input_tokens": "many"}}, None),
        ({"usage": [1]}, None),
    ],
)
def test_usage(document: Json, usage: Usage | None) -> None:
    assert pass_answer(compact(document), NAMES)[1] == usage


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"\xff", b"null", b"[" * 100_000])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="not a JSON object"):
        pass_answer(body, NAMES)


def test_the_operations_without_rules_of_their_own() -> None:
    assert set(Operation) - PASSED == {Operation.CHAT, Operation.COMPLETIONS, Operation.EMBEDDINGS}
