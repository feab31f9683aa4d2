"""A client's request body, read as far as routing needs and no further.

The body is taken apart into raw members: what no rule changes goes on to the engine byte for byte.
"""

import re
from typing import Final

import msgspec

from engines.profile import Members, Operation
from gateway.errors import InvalidRequest

STREAMED: Final = frozenset({Operation.CHAT, Operation.COMPLETIONS, Operation.RESPONSES, Operation.MESSAGES})
"""Operations that know ``stream``; elsewhere it is a member like any other."""

_TRUE = b"true"
_BOOLEANS = (_TRUE, b"false", b"null")
_ABSENT = (None, b"null")
_COUNT_DIGITS = 9
_LONE_SURROGATE = re.compile(
    rb"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})(?<!\\)(?:\\\\)*(\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode


class Call(msgspec.Struct, eq=False, frozen=True):
    """One parsed request. ``body`` is what the client sent, ``members`` the same taken apart.

    A msgspec Struct, as everything that is made per request: its constructor is C.
    """

    operation: Operation
    model: str
    stream: bool
    members: Members
    body: bytes
    rank: int | None = None
    """What its key makes of the member `priority` where the engine heeds it, the lowest first; None without a key."""


NO_CALL: Final = Call(Operation.CHAT, "", stream=False, members={}, body=b"")
"""Stands for a call that could not be read."""

PROMPTS: Final = ("messages", "prompt", "input", "query", "text_1", "system", "instructions")
"""Members that hold what a model is asked."""

LONGEST_PROMPT: Final = 2000
"""Characters of a prompt that are shown."""


def prompt_of(call: Call) -> str:
    """The beginning of what a model is asked, as JSON."""
    raw = next((call.members[name] for name in PROMPTS if name in call.members), b"")
    text = bytes(raw)[: 4 * LONGEST_PROMPT + 4].decode(errors="replace")
    return text if len(text) <= LONGEST_PROMPT else text[:LONGEST_PROMPT] + "…"


def parse_call(operation: Operation, body: bytes, rank: int | None = None) -> Call:
    """Reads a request body. ``rank``: what the caller's key makes of its priority.

    Only what every operation shares is checked here: JSON, an object, ``model``, ``stream``. The rest belongs to
    the engine or to its profile. Raises InvalidRequest naming the parameter.
    """
    try:
        members = _decode_members(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _unreadable(body, error) from None
    try:
        model = _decode_text(members["model"])
    except (KeyError, msgspec.DecodeError):
        model = ""
    if not model:
        raise _bad_model(members.get("model"))
    raw_stream = members.get("stream")
    stream = raw_stream is not None and operation in STREAMED and _is_true(raw_stream)
    return Call(operation, model, stream, members, body, rank)


def _is_true(stream: msgspec.Raw) -> bool:
    value = bytes(stream)
    if value not in _BOOLEANS:
        raise InvalidRequest("'stream' must be true or false.", param="stream", code="invalid_type")
    return value == _TRUE


def expected_choices(call: Call) -> int:
    """How many choices a complete answer has: ``n``, times the number of prompts of a completion."""
    count = _count(call.members.get("n"))
    prompt = call.members.get("prompt")
    if call.operation is Operation.COMPLETIONS and prompt is not None:
        try:
            prompts = msgspec.json.decode(prompt)
        except msgspec.DecodeError:  # text that is not UTF-8: the engine's to refuse
            return count
        if not isinstance(prompts, list):
            return count
        if prompts and not isinstance(prompts[0], int):
            count *= len(prompts)
    return count


def _count(raw: msgspec.Raw | None) -> int:
    if raw is None:
        return 1
    text = bytes(raw)
    # More digits than any engine takes, and than Python converts.
    return max(1, int(text[:_COUNT_DIGITS])) if text.isdigit() else 1


def _text(raw: msgspec.Raw | None) -> str | None:
    if raw is None:
        return None
    try:
        return _decode_text(raw)
    except msgspec.DecodeError:
        return None


def _bad_model(raw: msgspec.Raw | None) -> InvalidRequest:
    if raw is None or bytes(raw) in _ABSENT or bytes(raw) == b'""':
        return InvalidRequest(
            "You must provide a model parameter. GET /v1/models lists what can be asked for.",
            param="model",
            code="missing_required_parameter",
        )
    what = "UTF-8 text" if bytes(raw).startswith(b'"') else "a string"
    return InvalidRequest(f"'model' must be {what}.", param="model", code="invalid_type")


def _unreadable(body: bytes, error: Exception) -> InvalidRequest:
    if not body.strip():
        return InvalidRequest("The request has no body; a JSON object is expected.", code="invalid_json")
    if body[:2] == b"\x1f\x8b":
        return InvalidRequest(
            "The request body is compressed; send it as plain JSON, without Content-Encoding.", code="invalid_json"
        )
    if isinstance(error, msgspec.ValidationError):
        return InvalidRequest("The request body must be a JSON object.", code="invalid_json")
    return InvalidRequest(f"The request body is not valid JSON: {_reason(body, error)}.", code="invalid_json")


def _reason(body: bytes, error: Exception) -> str:
    """What is wrong, where the decoder's own words would mislead."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    lone = _LONE_SURROGATE.search(body)
    if lone is not None:
        return f"the escape {(lone[1] or lone[2]).decode()} is half of a UTF-16 pair, and no character"
    try:
        body.decode()
    except UnicodeDecodeError as found:
        return f"it is not UTF-8 text (byte {found.start})"
    return str(error).removeprefix("JSON is malformed: ")
