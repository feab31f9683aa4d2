"""How many tokens a call will take, guessed before an engine has counted them.

A prompt's tokens are taken to be four bytes of the request each, which is right for English prose with its JSON around
it, too much for images, too little for some scripts. An answer's are its limit where the client gives one, up to
`ANSWER_MOST` because clients give generous ones, else `ANSWER`. What was reserved is corrected when the engine has
answered.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from engines.profile import Operation
from gateway.wire.openai import Call

BYTES_PER_TOKEN: Final = 4
ANSWER: Final = 256
"""Tokens of an answer whose client names no limit."""
ANSWER_MOST: Final = 4096
"""Tokens of an answer that are reserved at most."""

_LIMITS: Final[Mapping[Operation, tuple[str, ...]]] = {
    Operation.CHAT: ("max_completion_tokens", "max_tokens"),
    Operation.COMPLETIONS: ("max_tokens",),
    Operation.RESPONSES: ("max_output_tokens",),
    Operation.MESSAGES: ("max_tokens",),
}
"""Operations that generate text, and where the limit of it stands; the first that is there counts."""

_decode_limit: Final = msgspec.json.Decoder(int | None).decode

_READ_ONLY: Final = frozenset({Operation.EMBEDDINGS, Operation.RERANK, Operation.SCORE})
"""Operations whose prompts a model reads, and answers with numbers."""


def prompt_tokens(size: int) -> int:
    """The tokens of a request body of so many bytes."""
    return size // BYTES_PER_TOKEN


def uncounted(operation: Operation, asked: int, answered: int) -> tuple[int, int] | None:
    """The tokens of a prompt and an answer, of a request and an answer of so many bytes, where the engine counts none.

    None for operations that work on no tokens.
    """
    if operation in _LIMITS:
        return prompt_tokens(asked), answered // BYTES_PER_TOKEN
    return (prompt_tokens(asked), 0) if operation in _READ_ONLY else None


def total_tokens(call: Call) -> int:
    """The tokens of the prompt and of the answer."""
    tokens = len(call.body) // BYTES_PER_TOKEN
    names = _LIMITS.get(call.operation)
    if names is None:
        return tokens
    members = call.members
    for name in names:
        if name in members and (limit := _limit(members[name])) is not None:
            return tokens + limit
    return tokens + ANSWER


def _limit(raw: msgspec.Raw) -> int | None:
    """What is reserved for a limit; None for what is none."""
    try:
        limit = _decode_limit(raw)
    except msgspec.DecodeError:  # nothing that an engine takes; or a number with thousands of digits
        return ANSWER_MOST if bytes(raw).isdigit() else None
    if limit is None or 0 <= limit <= ANSWER_MOST:
        return limit
    return ANSWER_MOST if limit > 0 else None
