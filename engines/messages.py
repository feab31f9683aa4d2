"""Chat messages rewritten for engines that know less than today's clients send: Triton above all.

Messages are taken apart only when a cheap look at the bytes says that something may have to change: inside a JSON
string a quote is escaped, so `"type"` with bare quotes is a member name or a whole value. Untouched messages and
untouched members of touched ones stay byte for byte.
"""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from engines.policy import NULL, Edit, Members, ParameterRefused

SIGNS = (b'"developer"', b'"type"', b'"tool_calls"')
"""A role Triton does not know; content parts; tool calls with arguments to check."""
TEXT_ROLES = frozenset({b'"system"', b'"assistant"', b'"tool"', b'"function"'})
"""Roles whose content must be a string; a user's may be a list of parts."""
PART_SEPARATOR = "\n"
"""Between text parts made one string; vLLM does the same."""
Rewrite: TypeAlias = Callable[[int, msgspec.Raw], bytes | None]
"""Gets a message's place in the list and its JSON; None when it may stay as it is."""
PART_TEXT = {"text": "text", "refusal": "refusal"}
"""Part types that are text, and the key that holds it."""


class _Function(msgspec.Struct):
    arguments: str | None = None


class _ToolCall(msgspec.Struct):
    function: _Function | None = None


def for_triton(name: str, members: Members) -> Edit | None:
    """Make messages fit Triton's schema.

    `developer` becomes `system`; lists of text parts become a string where only a string is taken (both 422 otherwise:
    recordings `chat_role_developer`, `chat_system_parts`, `chat_assistant_parts`, `chat_tool_parts`); empty `arguments`
    of earlier calls become `{}` (500 otherwise: `chat_tool_results_empty_arguments`).

    Raises:
        ParameterRefused: content that is no text, or arguments that are no JSON (500:
            `chat_tool_results_bad_arguments`).
    """
    return _rewritten(name, members, SIGNS, _for_triton)


def with_sound_arguments(name: str, members: Members) -> Edit | None:
    """Make empty `arguments` of earlier calls `{}` and refuse broken ones.

    vLLM's Rust frontend answers both with 500 (`rust_tool_result_empty_arguments`, `rust_tool_result_bad_arguments`).

    Raises:
        ParameterRefused: arguments that are no JSON.
    """
    return _rewritten(name, members, (b'"tool_calls"',), _with_sound_arguments)


def _rewritten(name: str, members: Members, signs: tuple[bytes, ...], rewrite: Rewrite) -> Edit | None:
    raw = bytes(members[name])
    if not any(sign in raw for sign in signs):
        return None
    try:
        messages = msgspec.json.decode(raw, type=list[msgspec.Raw])
        changed = [rewrite(at, message) for at, message in enumerate(messages)]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None  # not what OpenAI takes either: the engine's own refusal says so
    if not any(changed):
        return None
    return {name: b"[" + b",".join(new or bytes(old) for new, old in zip(changed, messages, strict=True)) + b"]"}


def _with_sound_arguments(at: int, raw: msgspec.Raw) -> bytes | None:
    message = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    calls = message.get("tool_calls", NULL)
    new = None if calls == NULL else _tool_calls(at, calls)
    return None if new is None else msgspec.json.encode(message | {"tool_calls": msgspec.Raw(new)})


def _for_triton(at: int, raw: msgspec.Raw) -> bytes | None:
    message = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    role = bytes(message.get("role", NULL))
    changed = False
    if role == b'"developer"':
        role = b'"system"'
        message["role"] = msgspec.Raw(role)
        changed = True
    content = message.get("content", NULL)
    if role in TEXT_ROLES and bytes(content)[:1] == b"[":
        message["content"] = msgspec.Raw(msgspec.json.encode(_joined(at, content)))
        changed = True
    calls = message.get("tool_calls", NULL)
    if calls != NULL:
        new = _tool_calls(at, calls)
        if new is not None:
            message["tool_calls"] = msgspec.Raw(new)
            changed = True
    return msgspec.json.encode(message) if changed else None


def _joined(at: int, content: msgspec.Raw) -> str:
    texts: list[str] = []
    for part in msgspec.json.decode(content, type=list[dict[str, object]]):
        kind = part.get("type")
        text = part.get(PART_TEXT.get(kind, "")) if isinstance(kind, str) else None
        if not isinstance(text, str):
            raise ParameterRefused(
                f"messages[{at}].content", "Triton takes only text in messages of this role.", "unsupported_value"
            )
        texts.append(text)
    return PART_SEPARATOR.join(texts)


def _tool_calls(at: int, raw: msgspec.Raw) -> bytes | None:
    calls = msgspec.json.decode(raw, type=list[_ToolCall])
    empty: set[int] = set()
    for index, call in enumerate(calls):
        arguments = call.function.arguments if call.function is not None else None
        if arguments is None:
            continue
        if not arguments.strip():
            empty.add(index)
        elif not _is_json(arguments):
            raise ParameterRefused(
                f"messages[{at}].tool_calls[{index}].function.arguments",
                "The arguments of an earlier tool call are not valid JSON.",
                "invalid_value",
            )
    if not empty:
        return None
    members = msgspec.json.decode(raw, type=list[dict[str, msgspec.Raw]])
    for index in empty:
        function = msgspec.json.decode(members[index]["function"], type=dict[str, msgspec.Raw])
        function["arguments"] = msgspec.Raw(b'"{}"')
        members[index]["function"] = msgspec.Raw(msgspec.json.encode(function))
    return msgspec.json.encode(members)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):  # Triton's parser gives up on deep nesting too
        return False
    return True
