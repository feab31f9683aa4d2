"""What a call is taken to cost before it is asked."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.profile import Operation
from gateway.wire.estimate import ANSWER, ANSWER_MOST, total_tokens
from gateway.wire.openai import parse_call

LIMITS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 10_000), st.integers(10**18, 10**30), st.floats(0, 9), st.text()
)


def answer_tokens(body: bytes, operation: Operation = Operation.CHAT) -> int:
    return total_tokens(parse_call(operation, body)) - len(body) // 4


@given(st.dictionaries(st.sampled_from(["max_tokens", "max_completion_tokens"]), LIMITS))
def test_an_answer_costs_its_first_limit_that_is_a_number_and_else_what_is_usual(members: dict[str, object]) -> None:
    asked = [members.get(name) for name in ("max_completion_tokens", "max_tokens")]
    limits = [min(limit, ANSWER_MOST) for limit in asked if type(limit) is int and limit >= 0]

    assert answer_tokens(json.dumps({"model": "m", **members}).encode()) == next(iter(limits), ANSWER)


def test_a_number_with_thousands_of_digits_is_a_limit_too() -> None:
    assert answer_tokens(b'{"model": "m", "max_tokens": %s}' % (b"9" * 5_000)) == ANSWER_MOST


@pytest.mark.parametrize(
    ("operation", "tokens"),
    [(Operation.RESPONSES, 7), (Operation.MESSAGES, ANSWER), (Operation.EMBEDDINGS, 0), (Operation.TOKENIZE, 0)],
)
def test_each_operation_has_its_own_limit_and_vectors_have_none(operation: Operation, tokens: int) -> None:
    assert answer_tokens(b'{"model": "m", "max_output_tokens": 7}', operation) == tokens
