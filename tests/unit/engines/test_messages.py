"""Chat messages for Triton: what its schema of 2024 does not take is rewritten, the rest keeps its bytes."""

import msgspec
import pytest

from engines.messages import for_triton
from engines.policy import ParameterRefused

from .support import raw_members


def rewritten(messages: bytes) -> object:
    """Give the rewritten messages, or None."""
    edit = for_triton("messages", raw_members(b'{"messages":' + messages + b"}"))
    if edit is None:
        return None
    assert edit.keys() == {"messages"}
    value = edit["messages"]
    assert value is not None
    return msgspec.json.decode(value)


@pytest.mark.parametrize(
    "messages",
    [
        b'[{"role":"user","content":"Hello"}]',
        b'[{"role":"user","content":"the \\"developer\\" and the \\"type\\""}]',
        b'[{"role":"user","content":[{"type":"text","text":"Hello"}]}]',
        b'[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}]',
        b'[{"role":"assistant","content":"x","tool_calls":null}]',
    ],
)
def test_what_triton_takes_is_left_alone(messages: bytes) -> None:
    """Plain messages, a user's parts and whole tool calls need nothing."""
    assert rewritten(messages) is None


def test_a_developer_is_a_system_message() -> None:
    """The newer role is 422 there (`chat_role_developer`)."""
    assert rewritten(b'[{"role":"developer","content":"Be brief.","name":"n"},{"role":"user","content":"x"}]') == [
        {"role": "system", "content": "Be brief.", "name": "n"},
        {"role": "user", "content": "x"},
    ]


@pytest.mark.parametrize("role", ["system", "developer", "assistant", "tool", "function"])
def test_text_parts_become_one_string(role: str) -> None:
    """Only a user's content may be a list there (`chat_system_parts`, `chat_assistant_parts`, `chat_tool_parts`)."""
    parts = b'[{"type":"text","text":"a"},{"type":"text","text":"\xc3\xa9\\n"}]'
    result = rewritten(b'[{"role":"' + role.encode() + b'","content":' + parts + b"}]")
    assert result == [{"role": "system" if role == "developer" else role, "content": "a\né\n"}]


def test_a_refusal_in_history_is_text() -> None:
    """Clients send back the parts they got."""
    assert rewritten(b'[{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]}]') == [
        {"role": "assistant", "content": "No."}
    ]


def test_an_image_outside_a_users_message_is_refused() -> None:
    """It cannot be made text."""
    with pytest.raises(ParameterRefused) as caught:
        rewritten(
            b'[{"role":"user","content":"x"},{"role":"tool","content":[{"type":"image_url","image_url":{"url":"u"}}]}]'
        )
    assert (caught.value.param, caught.value.code) == ("messages[1].content", "unsupported_value")


def test_empty_arguments_become_an_empty_object() -> None:
    """500 otherwise (`chat_tool_results_empty_arguments`); vLLM and OpenAI take them."""
    call = b'{"id":"c%d","type":"function","extra":1.50,"function":{"name":"f","arguments":%s}}'
    calls = b",".join((call % (1, b'"{\\"a\\": 1}"'), call % (2, b'""'), call % (3, b'" "')))
    edit = for_triton("messages", raw_members(b'{"messages":[{"role":"assistant","tool_calls":[' + calls + b"]}]}"))
    assert edit is not None
    value = edit["messages"]
    assert value is not None
    assert value.count(b"1.50") == 3
    made = msgspec.json.decode(value)[0]["tool_calls"]
    assert [c["function"]["arguments"] for c in made] == ['{"a": 1}', "{}", "{}"]


def test_broken_arguments_are_refused() -> None:
    """500 otherwise (`chat_tool_results_bad_arguments`): the client's mistake is said to be one."""
    with pytest.raises(ParameterRefused) as caught:
        rewritten(b'[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{\\"a\\": "}}]}]')
    assert caught.value.param == "messages[0].tool_calls[0].function.arguments"
    assert caught.value.code == "invalid_value"


def test_deep_or_unreadable_arguments_are_no_json() -> None:
    """Nesting that no parser follows is refused like any broken JSON."""
    with pytest.raises(ParameterRefused):
        rewritten(b'[{"role":"assistant","tool_calls":[{"function":{"arguments":"' + b"[" * 100_000 + b'"}}]}]')


def test_text_that_is_not_unicode_is_left_to_the_engine() -> None:
    """It cannot be joined; the engine says what it thinks of it."""
    assert rewritten(b'[{"role":"system","content":[{"type":"text","text":"\xff"}]}]') is None


def test_other_messages_keep_their_bytes() -> None:
    """Blanks, escapes and numbers of messages that need nothing are as the client wrote them."""
    kept = b'{ "role" : "user",  "content":"\\u00e9", "x": 1.0e5 }'
    edit = for_triton("messages", raw_members(b'{"messages":[' + kept + b',{"role":"developer","content":"\\u00e9"}]}'))
    assert edit is not None
    assert edit["messages"] == b"[" + kept + b',{"role":"system","content":"\\u00e9"}]'
