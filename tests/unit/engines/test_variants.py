"""What a running engine says about itself chooses between the variants of its kind."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.policy import Pass, Table
from engines.profile import Build, EngineKind, Operation, ParameterRefused, Variant
from engines.profile import version_numbers as numbers
from engines.registry import PROFILES, profile

from .support import members, sent

VLLM = profile(EngineKind.VLLM)
RUST = VLLM.for_build(Build("0.32.0", rust_frontend=True))
CHAT = Operation.CHAT


def test_an_unknown_build_is_the_usual_one() -> None:
    """Until an engine has been asked, and where no variant fits, the profile is the very same object."""
    for known in PROFILES.values():
        assert known.for_build(Build()) is known
    assert VLLM.for_build(Build("0.32.0")) is VLLM


def test_the_rust_frontend_has_fewer_paths() -> None:
    """It knows no API but OpenAI's older ones (`rust_responses_basic`, `rust_messages_basic`)."""
    lacking = VLLM.paths.keys() - RUST.paths.keys()
    assert lacking == {Operation.RESPONSES, Operation.MESSAGES, Operation.COUNT_TOKENS}
    assert RUST.health is VLLM.health


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.32.0", (0, 32, 0)),
        ("0.33.0rc1", (0, 33, 0)),
        ("0.32.0+cpu", (0, 32, 0)),
        ("1", (1,)),
        ("main", ()),
        ("", ()),
        (None, ()),
    ],
)
def test_a_version_begins_with_numbers(text: str | None, expected: tuple[int, ...]) -> None:
    """Suffixes of builds say nothing about behaviour."""
    assert numbers(text) == expected


@pytest.mark.parametrize(
    ("version", "fits"),
    [("0.9", False), ("0.10.0", True), ("0.10.2", True), ("0.11.0", False), ("0.11.0rc1", False), (None, False)],
)
def test_a_range_of_versions(version: str | None, fits: bool) -> None:
    """The lower bound belongs to it, the upper does not; numbers are compared, not letters."""
    assert Variant("old", {}, since=(0, 10), before=(0, 11)).fits(Build(version)) is fits


@given(st.text(max_size=20))
def test_any_version_text_can_be_read(text: str) -> None:
    """What an engine says about itself is not trusted to be a version."""
    assert all(number >= 0 for number in numbers(text))


def test_later_variants_win() -> None:
    """Two that fit are applied in their order."""
    first, second = (Table("x", {name: Pass()}) for name in ("a", "b"))
    both = (Variant("one", {CHAT: first}), Variant("two", {CHAT: second}))
    assert replace(VLLM, variants=both).for_build(Build()).tables[CHAT] is second


def test_arguments_of_earlier_calls_are_sound_on_the_rust_frontend() -> None:
    """Empty or broken ones are 500 there (`rust_tool_result_empty_arguments`, `rust_tool_result_bad_arguments`)."""

    def history(arguments: str) -> dict[str, object]:
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
        return {"model": "m", "messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}

    request = members(history(""))
    assert sent(request, RUST.prepare(CHAT, request)) == history("{}")
    assert RUST.prepare(CHAT, members(history("{}"))).members is None
    assert VLLM.prepare(CHAT, members(history(""))).members is None
    with pytest.raises(ParameterRefused) as refused:
        RUST.prepare(CHAT, members(history('{"a":')))
    assert refused.value.param == "messages[0].tool_calls[0].function.arguments"


def test_the_rust_frontend_runs_no_clients_template() -> None:
    """It would use one without the server's leave (`rust_chat_chat_template_request`); the Python frontend refuses."""
    request = members({"model": "m", "messages": [], "chat_template": "{{ 1 }}"})
    with pytest.raises(ParameterRefused) as refused:
        RUST.prepare(CHAT, request)
    assert refused.value.param == "chat_template"
    assert VLLM.prepare(CHAT, request).members is None
