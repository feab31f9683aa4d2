"""Whose key a request shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.profile import Operation
from gateway.proxy.callers import Callers
from gateway.settings.keys import Key
from tests.support.keys import key_entry

CALLERS = Callers([Key.model_validate(key_entry("a", "sk-a")), Key.model_validate(key_entry("b", "sk-b"))])


def who(*headers: tuple[bytes, bytes], operation: Operation = Operation.CHAT) -> str | None:
    found = CALLERS.find(operation, headers)
    return None if found is None else found.name


@given(st.binary(max_size=200))
def test_a_key_is_known_by_its_hash_alone(shown: bytes) -> None:
    """Any bytes may be shown: they are hashed, never decoded, and what is not the key lets nobody in."""
    expected = "a" if shown.strip() == b"sk-a" else "b" if shown.strip() == b"sk-b" else None

    assert who((b"authorization", b"Bearer " + shown)) == expected


@pytest.mark.parametrize("operation", list(Operation))
def test_anthropics_header_counts_on_its_paths(operation: Operation) -> None:
    counts = operation in (Operation.MESSAGES, Operation.COUNT_TOKENS)

    assert who((b"x-api-key", b"sk-a"), operation=operation) == ("a" if counts else None)


def test_either_of_two_headers_may_hold_the_key() -> None:
    both = [(b"authorization", b"Bearer other"), (b"x-api-key", b"sk-b")]

    assert who(*both, operation=Operation.MESSAGES) == "b"
    assert who(*reversed(both), operation=Operation.MESSAGES) == "b"
