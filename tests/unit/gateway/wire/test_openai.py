"""Request bodies of any kind are read or refused, and nothing of them is lost."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.profile import Operation
from gateway.errors import InvalidRequest
from gateway.wire.embeddings import is_token_input
from gateway.wire.openai import STREAMED, Call, expected_choices, parse_call
from tests.support.json_type import Json
from tests.unit.gateway.wire.strategies import spelled, texts, values

operations = st.sampled_from(list(Operation))


def read(operation: Operation, body: bytes) -> Call | InvalidRequest:
    """The call, or the refusal; anything else that is raised is a bug."""
    try:
        return parse_call(operation, body)
    except InvalidRequest as refused:
        return refused


@given(operations, st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(operation: Operation, body: bytes) -> None:
    found = read(operation, body)

    if isinstance(found, InvalidRequest):
        assert found.status == 400
        assert json.loads(found.body())["error"]["message"]


@given(operations, st.dictionaries(st.sampled_from(["model", "stream", "messages", "n", "prompt", "input"]), values))
def test_any_object_is_read_or_refused(operation: Operation, body: Json) -> None:
    found = read(operation, spelled(body))

    if isinstance(found, InvalidRequest):
        assert found.param in ("model", "stream")
    else:
        assert found.model == body["model"]
        assert found.stream is (operation in STREAMED and bool(body.get("stream")))
        assert expected_choices(found) >= 1


@given(texts.filter(bool), st.dictionaries(texts, values, max_size=4), st.booleans())
def test_members_are_the_bodys_own_bytes(model: str, members: Json, spaced: bool) -> None:
    document = {name: value for name, value in members.items() if name != "stream"} | {"model": model}
    body = spelled(document, spaced=spaced)
    call = parse_call(Operation.CHAT, body)

    assert call.body is body
    assert call.model == model
    assert {name: json.loads(bytes(raw)) for name, raw in call.members.items()} == document
    assert all(bytes(raw) in body for raw in call.members.values())


def test_the_last_of_two_members_counts() -> None:
    """As for Python's engines."""
    assert parse_call(Operation.CHAT, b'{"model":"a","model":"b"}').model == "b"


@pytest.mark.parametrize(
    ("operation", "more", "choices"),
    [
        (Operation.CHAT, {}, 1),
        (Operation.CHAT, {"n": 3}, 3),
        (Operation.CHAT, {"n": None}, 1),
        (Operation.CHAT, {"n": 0}, 1),
        (Operation.CHAT, {"n": -2}, 1),
        (Operation.CHAT, {"n": "3"}, 1),
        (Operation.CHAT, {"n": 2.0}, 1),
        (Operation.CHAT, {"prompt": ["a", "b"]}, 1),
        (Operation.COMPLETIONS, {"prompt": "a"}, 1),
        (Operation.COMPLETIONS, {"prompt": ["a", "b"], "n": 2}, 4),
        (Operation.COMPLETIONS, {"prompt": [1, 2, 3]}, 1),
        (Operation.COMPLETIONS, {"prompt": [[1, 2], [3]]}, 2),
        (Operation.COMPLETIONS, {"prompt": []}, 1),
        (Operation.COMPLETIONS, {"prompt": None}, 1),
        (Operation.COMPLETIONS, {}, 1),
    ],
)
def test_the_number_of_choices(operation: Operation, more: Json, choices: int) -> None:
    assert expected_choices(parse_call(operation, spelled({"model": "m", **more}))) == choices


def test_an_absurd_number_of_choices_is_a_number() -> None:
    assert expected_choices(parse_call(Operation.CHAT, b'{"model":"m","n":' + b"9" * 5000 + b"}")) > 1


@given(values)
def test_token_ids_are_numbers_in_lists(value: Json) -> None:
    first = value[0] if isinstance(value, list) and value else None
    if isinstance(first, list):
        first = first[0] if first else None
    expected = isinstance(first, int | float) and not isinstance(first, bool)

    for text in (spelled(value), spelled(value, spaced=True), json.dumps(value, indent=1).encode()):
        assert is_token_input(msgspec.Raw(text)) is expected


def test_no_input_is_no_token_ids() -> None:
    assert not is_token_input(None)
    assert not is_token_input(msgspec.Raw(b""))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"a":"\\ud800"}', "the escape \\ud800 is half of a UTF-16 pair, and no character"),
        (b'{"a":"x\\\\\\uDBFFy","model":"m"}', "the escape \\uDBFF is half of a UTF-16 pair, and no character"),
        (b'{"a":"\\ud800\\u0041","model":"m"}', "the escape \\ud800 is half of a UTF-16 pair, and no character"),
        (b'{"a":"\\udc00","model":"m"}', "the escape \\udc00 is half of a UTF-16 pair, and no character"),
        (b'{"\\ud800":1}', "the escape \\ud800 is half of a UTF-16 pair, and no character"),
        (b'{"a":"\\\\ud800"', "Input data was truncated"),
        (b'{"a":"\\ud83d\\ude00"', "Input data was truncated"),
        (b'{"a":' + b"[" * 100_000, "it is nested too deeply"),
        (b'{"a":' * 100_000, "it is nested too deeply"),
        (b"{\xff}", "it is not UTF-8 text (byte 1)"),
        (b"hello", "invalid character (byte 0)"),
    ],
    ids=range(11),
)
def test_what_is_wrong_with_json_is_said(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_call(Operation.CHAT, body)

    assert caught.value.message == f"The request body is not valid JSON: {reason}."


def test_a_model_that_is_no_text_is_told_apart_from_one_that_is_no_string() -> None:
    for body, what in ((b'{"model":"\xff"}', "UTF-8 text"), (b'{"model":5}', "a string")):
        with pytest.raises(InvalidRequest, match=f"'model' must be {what}"):
            parse_call(Operation.CHAT, body)


def test_prompts_that_are_no_text_are_counted_as_one() -> None:
    assert expected_choices(parse_call(Operation.COMPLETIONS, b'{"model":"m","prompt":"\xff"}')) == 1
