"""Answers of engines: the few members that are the gateway's to decide, found without reading the rest.

Bytes that need no change are sent on as they came. ``model`` is the name the client asked for; ``id`` has OpenAI's
form (``chatcmpl-…`` for chat, ``cmpl-…`` for completions) and is unique (CONTRACT §5).

The searches for ``"key":`` are safe in raw JSON: inside a string value every quote is escaped, so the bytes
``"model":"`` can only be a member of an object.
"""

from typing import Final

import msgspec

from engines.profile import Members, Operation

ID_PREFIX: Final = {Operation.CHAT: "chatcmpl-", Operation.COMPLETIONS: "cmpl-"}
"""Operations whose answers carry an id of OpenAI's form; embeddings answers have none there."""

ID_LENGTH: Final = 16
"""An id's own part must be this long: trtllm-serve streams ``chatcmpl-3``, unique in one run of one server only."""

_MODEL_SEARCH = 512
"""How far into an answer its ``model`` is looked for before the whole of it is read."""

_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_id = msgspec.json.Decoder(str).decode


class Usage(msgspec.Struct, frozen=True):
    """Token counts as the engine reports them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


class AnswerNames:
    """What the answers to one model name carry in one operation; shared by all its exchanges."""

    __slots__ = (
        "id_starts",
        "model",
        "model_json",
        "model_member",
        "opening",
        "opening_length",
        "operation",
        "prefix",
        "prefix_bytes",
    )

    def __init__(self, operation: Operation, model: str) -> None:
        self.operation = operation
        self.model = model
        self.model_json = msgspec.Raw(msgspec.json.encode(model))
        self.model_member = b'"model":' + bytes(self.model_json)
        self.prefix = ID_PREFIX.get(operation)
        self.prefix_bytes = b'{"id":"' + self.prefix.encode() if self.prefix is not None else b"{"
        self.id_starts = len(self.prefix_bytes)
        # What most engines write between the time of a chat answer and its text.
        self.opening = b',%s,"choices":[{"index":0,"message":{"role":"assistant","content":"' % self.model_member
        self.opening_length = len(self.opening)

    def good_id(self, value: str | None) -> bool:
        """Whether the engine's own id may stay."""
        if self.prefix is None:
            return True
        if value is None or not value.startswith(self.prefix):
            return False
        return len(value) - len(self.prefix) >= ID_LENGTH

    def apply(self, members: Members, own_id: bytes) -> Members:
        """The members with ``id`` and ``model`` right, in their places; ``own_id`` replaces an id that may not stay."""
        members = members | {"model": self.model_json}
        if not self.good_id(_text(members.get("id"))):
            raw = msgspec.Raw(msgspec.json.encode(f"{self.prefix}{own_id.decode()}"))
            members = members | {"id": raw} if "id" in members else {"id": raw} | members
        return members


def respell_answer(body: bytes, names: AnswerNames, own_id: bytes) -> bytes:
    """The whole answer with the right ``id`` and ``model``; the same object when nothing had to change.

    ``own_id`` is the unique part of the id that is used when the engine's may not stay.

    Raises ValueError when the body is not a JSON object.
    """
    if has_good_head(body, names):
        return body
    if (renamed := _renamed(body, names)) is not None:
        return renamed
    members = _members(body)
    if members.get("model") == names.model_json and names.good_id(_text(members.get("id"))):
        return body
    return msgspec.json.encode(names.apply(members, own_id))


def _renamed(body: bytes, names: AnswerNames) -> bytes | None:
    """The answer with its model exchanged where it stands; None where that needs a closer look.

    Vectors and long texts behind it are not read.
    """
    if names.prefix is not None and (
        not body.startswith(names.prefix_bytes)
        or body.find(b'"', len(names.prefix_bytes), len(names.prefix_bytes) + ID_LENGTH) >= 0
    ):
        return None
    at = body.find(b'"model":"', 0, _MODEL_SEARCH)
    end = body.find(b'"', at + 9, _MODEL_SEARCH)
    if at < 0 or end < 0 or body.find(b"\\", 0, end) >= 0:
        return None
    if body[:1] != b"{" or body.find(b"{", 1, at) >= 0 or body.find(b"[", 0, at) >= 0:  # a member of something inside
        return None
    return b"%s%s%s" % (body[:at], names.model_member, body[end + 1 :])


def has_good_head(body: bytes, names: AnswerNames) -> bool:
    """Whether an answer, written without blanks, begins with a good id and has the right model soon after it."""
    if not body.startswith(names.prefix_bytes):
        return False
    at = body.find(b'"model":', 0, _MODEL_SEARCH)
    if at < 0 or not body.startswith(names.model_member, at):
        return False
    if names.prefix is None:
        return True
    start = len(names.prefix_bytes)
    return body.find(b'"', start, start + ID_LENGTH) < 0


def _members(body: bytes) -> Members:
    try:
        return _decode_members(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"the engine's answer is not a JSON object: {error}") from None


def _text(raw: msgspec.Raw | None) -> str | None:
    if raw is None:
        return None
    try:
        return _decode_id(raw)
    except msgspec.DecodeError:
        return None


_USAGE_KEY: Final = b'"usage":'
_USAGE_OPENS: Final = b'"usage":{'
_USAGE_OPENS_LENGTH: Final = len(_USAGE_OPENS)
_USAGE_LIMIT = 2048
_decode_usage = msgspec.json.Decoder(Usage).decode


def find_usage(data: bytes) -> Usage | None:
    """The last ``usage`` object in an answer or event, searched from its end; None if it has none or null."""
    at = data.rfind(_USAGE_OPENS)
    if at >= 0:
        end = data.find(b"}", at) + 1
        if end > 0 and data.find(b"{", at + _USAGE_OPENS_LENGTH, end) < 0:
            try:
                return _decode_usage(data[at + _USAGE_OPENS_LENGTH - 1 : end])
            except msgspec.DecodeError:
                return None
    return _find_usage_slowly(data)


def _find_usage_slowly(data: bytes) -> Usage | None:
    """As `find_usage`, for objects with details inside, and for blanks."""
    at = data.rfind(_USAGE_KEY)
    if at < 0:
        return None
    start = at + len(_USAGE_KEY)
    while data[start : start + 1] == b" ":
        start += 1
    if data[start : start + 1] != b"{":
        return None
    end = _object_end(data, start)
    return None if end < 0 else read_usage(data[start:end])


def read_usage(text: bytes) -> Usage | None:
    """A ``usage`` object as bytes; None if it is not one."""
    try:
        return _decode_usage(text)
    except msgspec.DecodeError:
        return None


def _object_end(data: bytes, start: int) -> int:
    """The index after the object that opens at ``start``. Usage objects hold no strings with braces."""
    depth = 0
    at = start
    limit = min(len(data), start + _USAGE_LIMIT)
    while True:
        closing = data.find(b"}", at, limit)
        if closing < 0:
            return -1
        depth += data.count(b"{", at, closing) - 1
        at = closing + 1
        if depth == 0:
            return at
