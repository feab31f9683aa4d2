"""Whole answers that are passed on as they are, but for the model's name: every path without rules of its own."""

from typing import Final

import msgspec

from engines.profile import Members, Operation
from gateway.wire.answer import AnswerNames, Usage

PASSED: Final = frozenset(
    {
        Operation.RESPONSES,
        Operation.MESSAGES,
        Operation.COUNT_TOKENS,
        Operation.RERANK,
        Operation.SCORE,
        Operation.TOKENIZE,
        Operation.DETOKENIZE,
    }
)
"""Operations whose answers are read by `pass_answer`."""


class Tokens(msgspec.Struct, frozen=True):
    """Token counts by the names of all these APIs."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_tokens = msgspec.json.Decoder(Tokens).decode
_NOTHING: Final = Tokens()


def read_members(body: bytes | msgspec.Raw) -> Members | None:
    """A JSON object taken apart; None for anything else."""
    try:
        return _decode_members(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def read_tokens(raw: msgspec.Raw | None) -> Tokens:
    """A ``usage`` object; one without counts for anything else."""
    if raw is None:
        return _NOTHING
    try:
        return _decode_tokens(raw)
    except msgspec.DecodeError:
        return _NOTHING


def name_model(members: Members, names: AnswerNames) -> Members | None:
    """The members with the model's name that the client asked for; None when nothing has to change."""
    model = members.get("model")
    if model is None or bytes(model) == bytes(names.model_json):
        return None
    return members | {"model": names.model_json}


def pass_answer(body: bytes, names: AnswerNames) -> tuple[bytes, Usage | None]:
    """The answer with the right ``model``, where it has one, and its usage.

    The same object is given back when nothing had to change. Raises ValueError when it is not a JSON object.
    """
    members = read_members(body)
    if members is None:
        raise ValueError("the engine's answer is not a JSON object")
    renamed = name_model(members, names)
    tokens = read_tokens(members.get("usage"))
    asked = tokens.prompt_tokens if tokens.input_tokens is None else tokens.input_tokens
    made = tokens.completion_tokens if tokens.output_tokens is None else tokens.output_tokens
    usage = None if asked is None else Usage(asked, made or 0)
    return body if renamed is None else msgspec.json.encode(renamed), usage
