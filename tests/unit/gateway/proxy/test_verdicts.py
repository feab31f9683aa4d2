"""What clients are told about what engines say."""

import pytest

from engines.faults import Fault, FaultKind
from engines.profile import Operation
from gateway.proxy.verdicts import error_of

TEXTS = [
    ("org/m-7b", "The model `org/m-7b` is small.", "The model `asked` is small."),
    ("org/m-7b", "org/m-7b: no. Not org/m-7b.", "asked: no. Not asked."),
    ("org/m-7b", "org/m-7b-instruct, my-org/m-7b, org/m-7b.gguf", "org/m-7b-instruct, my-org/m-7b, org/m-7b.gguf"),
    (
        "chat",
        "This chat has no 'chat', and \"chat\" no `chats`.",
        "This chat has no 'asked', and \"asked\" no `chats`.",
    ),
    ("a.b", "axb a.b", "axb asked"),
    ("asked", "asked", "asked"),
    ("", "Nothing here.", "Nothing here."),
]


@pytest.mark.parametrize(("theirs", "said", "told"), TEXTS)
def test_the_engine_s_name_for_the_model_becomes_the_client_s(theirs: str, said: str, told: str) -> None:
    """Where it stands as a name; a name that is an ordinary word only in quotes."""
    fault = Fault(FaultKind.INVALID_REQUEST, 400, said)
    assert error_of(fault, "asked", Operation.CHAT, None, theirs).message == told


def test_a_client_s_name_is_no_pattern() -> None:
    """Whatever characters it has."""
    fault = Fault(FaultKind.CONTEXT_LENGTH, 400, "org/m is full")
    assert error_of(fault, r"\1\g<0>", Operation.CHAT, None, "org/m").message == r"\1\g<0> is full"
