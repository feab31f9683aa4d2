"""What an embeddings request gives, and the form of the vectors that come back."""

import base64
import json
import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ApiError, ContextLengthExceeded, InvalidRequest
from gateway.wire.embeddings import is_token_input, name_input, spell_vectors

BASE64, FLOAT = msgspec.Raw(b'"base64"'), msgspec.Raw(b'"float"')
FLOATS = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=8)
RECORDED = "This model's maximum context length is 256 tokens. However, your prompt contains at least 257 input tokens."


def packed(numbers: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


def answer(*vectors: object) -> bytes:
    data = [{"index": at, "object": "embedding", "embedding": vector} for at, vector in enumerate(vectors)]
    return json.dumps({"object": "list", "data": data, "usage": {"total_tokens": 2}}).encode()


def vectors(body: bytes) -> list[object]:
    return [item["embedding"] for item in json.loads(body)["data"]]


@given(st.lists(FLOATS, min_size=1, max_size=3))
def test_lists_become_base64(numbers: list[list[float]]) -> None:
    """Little-endian float32, as the SDKs read it: never a list for base64."""
    assert vectors(spell_vectors(answer(*numbers), BASE64)) == [packed(vector) for vector in numbers]


@given(st.lists(FLOATS, min_size=1, max_size=3), st.sampled_from([FLOAT, None, msgspec.Raw(b"null")]))
def test_base64_becomes_lists(numbers: list[list[float]], asked: msgspec.Raw | None) -> None:
    """Every number comes back exactly; who asks for nothing gets OpenAI's default."""
    assert vectors(spell_vectors(answer(*map(packed, numbers)), asked)) == numbers


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        (answer([0.1, 2]), FLOAT),
        (answer([0.1, 2]), None),
        (answer(packed([0.5])), BASE64),
        (answer(), BASE64),
        (b'{"object":"list","data":[{"object": "embedding"}]}', BASE64),
    ],
)
def test_what_is_right_is_not_touched(body: bytes, asked: msgspec.Raw | None) -> None:
    """The very same bytes, numbers spelled as the engine spelled them."""
    assert spell_vectors(body, asked) is body


def test_the_rest_of_an_answer_stays() -> None:
    body = spell_vectors(b'{"x":1.50,"data":[{"y":2.50,"embedding": [0.5]}]}', BASE64)

    assert body == b'{"x":1.50,"data":[{"y":2.50,"embedding":"AAAAPw=="}]}'


def test_a_mixed_answer_is_made_even() -> None:
    assert vectors(spell_vectors(answer([0.5], packed([0.5])), BASE64)) == [packed([0.5])] * 2


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        (answer("no base64!"), None),
        (answer("AAA="), None),
        (answer([["nested"]]), BASE64),
        (answer(["1"]), BASE64),
        (b'{"embedding":[1]', BASE64),
        (b'{"embedding":[1]}', BASE64),
        (b'[{"embedding":[1]}]', BASE64),
    ],
)
def test_what_is_no_vector_is_told(body: bytes, asked: msgspec.Raw | None) -> None:
    with pytest.raises(ValueError, match=r"vectors|padding|base64|multiple|size"):
        spell_vectors(body, asked)


@given(st.recursive(st.text(max_size=3) | st.integers() | st.booleans() | st.none(), st.lists, max_leaves=6))
def test_token_ids_are_numbers_in_one_list_or_two(value: object) -> None:
    first = value[0] if isinstance(value, list) and value else None
    inner = first[0] if isinstance(first, list) and first else None
    expected = any(isinstance(one, int) and not isinstance(one, bool) for one in (first, inner))

    assert is_token_input(msgspec.Raw(json.dumps(value).encode())) is expected


def too_long(given: object, message: str = RECORDED) -> ApiError:
    error = ContextLengthExceeded(message, param="input_tokens")
    return name_input(error, msgspec.Raw(json.dumps(given).encode()))


def test_the_only_input_that_can_be_too_long_is_named() -> None:
    """vLLM does not say which (recording `embed_one_of_two_too_long`): a text has a byte for each token at least."""
    error = too_long(["ok", "river " * 300, "fine"])

    assert (error.param, error.code) == ("input[1]", "context_length_exceeded")
    assert error.message == f"input[1]: {RECORDED}"
    assert too_long([[1, 2], [3] * 300]).param == "input[1]"
    assert too_long(["ok", "é" * 130]).param == "input[1]"


def test_of_several_long_inputs_none_is_accused() -> None:
    error = too_long(["ok", "x" * 400, "y" * 500])

    assert error.param == "input"
    assert error.message.endswith("at least one of the 3 inputs; input[2] is the longest.")
    assert too_long(["a", "b"], "It is too long.").param == "input"


@pytest.mark.parametrize("value", ["x", ["x"], [1, 2, 3], [], 5, {}])
def test_a_single_input_needs_no_number(value: object) -> None:
    error = too_long(value)

    assert (error.param, error.message) == ("input", RECORDED)


def test_other_errors_stay() -> None:
    other = InvalidRequest("no", param="dimensions")

    assert name_input(other, msgspec.Raw(b'["a","b"]')) is other
    assert name_input(too := ContextLengthExceeded("x"), None) is too
