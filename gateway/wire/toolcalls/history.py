"""Tool-call ids in the message history, as a family's chat template needs them.

Kimi's template writes the id itself and nothing else of the function's name; Mistral's refuses ids that are not nine
letters or digits. Clients send back the ids that they were given, by whichever engine, so they are rewritten on the way
to the engine, calls and results alike.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from gateway.wire.toolcalls.spec import IdStyle

Message: TypeAlias = Mapping[str, Any]
_NINE: Final = re.compile(r"[A-Za-z0-9]{9}")
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def rewrite_ids(messages: Sequence[Message], style: IdStyle) -> Sequence[Message]:
    """The messages with ids in the family's style.

    Messages that need no change are the same objects; if none does, so is the sequence. A result is matched to the
    nearest earlier call with its id; a result without an id, or with one that no call has, to the first call that has
    no result yet. The same history always gives the same ids.
    """
    if style is IdStyle.ANY:
        return messages
    rewriting = _Rewriting(_kimi if style is IdStyle.KIMI else _mistral)
    made = [rewriting.message(message) for message in messages]
    return messages if all(new is old for new, old in zip(made, messages, strict=True)) else made


def _kimi(name: str, number: int, _old: str) -> str:
    return f"functions.{name}:{number}"


def _mistral(_name: str, number: int, old: str) -> str:
    if _NINE.fullmatch(old):
        return old
    rest = int.from_bytes(hashlib.blake2s(f"{number}:{old}".encode("utf-8", "replace"), digest_size=8).digest())
    made = ""
    for _ in range(9):
        rest, digit = divmod(rest, len(_DIGITS))
        made += _DIGITS[digit]
    return made


class _Rewriting:
    """One pass over a conversation."""

    def __init__(self, style: Callable[[str, int, str], str]) -> None:
        self._style = style
        self._number = 0
        self._waiting: list[tuple[str, str]] = []
        self._used: set[str] = set()

    def message(self, message: Message) -> Message:
        """The message with its ids rewritten; itself if they are right."""
        calls = message.get("tool_calls")
        if message.get("role") == "assistant" and isinstance(calls, Sequence) and not isinstance(calls, str):
            self._waiting = []
            made = [self._call(call) for call in calls]
            same = all(new is old for new, old in zip(made, calls, strict=True))
            return message if same else {**message, "tool_calls": made}
        if message.get("role") == "tool":
            return self._result(message)
        return message

    def _call(self, call: object) -> object:
        if not isinstance(call, Mapping):
            return call
        function = call.get("function")
        name = function.get("name") if isinstance(function, Mapping) else None
        old = call.get("id")
        old = old if isinstance(old, str) else ""
        new = self._style(str(name or ""), self._number, old)
        if new in self._used:
            new = self._style(str(name or ""), self._number, f"{old}#{self._number}")
        self._used.add(new)
        self._number += 1
        self._waiting.append((old, new))
        return call if new == call.get("id") else {**call, "id": new}

    def _result(self, message: Message) -> Message:
        old = message.get("tool_call_id")
        at = next((at for at, (known, _) in enumerate(self._waiting) if known and known == old), None)
        if at is None:
            if not self._waiting or (old and any(new == old for _, new in self._waiting)):
                return message
            at = 0
        _, new = self._waiting.pop(at)
        return message if new == old else {**message, "tool_call_id": new}
