"""Small renderings that more than one frontend needs: log probabilities, quoted text, the stop member."""

import functools
import json
from collections.abc import Sequence

from engines.simulator import tokens

_OTHER, _OTHER_LOGPROB = "alt", -1.5
"""The second candidate of every token."""


@functools.lru_cache(maxsize=4096)
def quoted(text: str) -> bytes:
    """A JSON string."""
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")


def stops(value: object) -> tuple[str, ...]:
    """The `stop` member as a tuple."""
    if isinstance(value, str):
        return (value,)
    return tuple(stop for stop in value if isinstance(stop, str)) if isinstance(value, list) else ()


def _entry(piece: str, logprob: float) -> dict[str, object]:
    return {"token": piece, "logprob": logprob, "bytes": list(piece.encode("utf-8", "replace"))}


def chat_logprobs(pieces: Sequence[str], top: int | None) -> dict[str, object]:
    """The `logprobs` object of a chat choice. `top` None leaves `top_logprobs` out."""
    content = []
    for piece in pieces:
        entry = _entry(piece, tokens.logprob(piece))
        if top is not None:
            others = [_entry(piece, tokens.logprob(piece)), _entry(_OTHER, _OTHER_LOGPROB)]
            entry["top_logprobs"] = others[:top]
        content.append(entry)
    return {"content": content}


def completion_logprobs(pieces: Sequence[str], top: int) -> dict[str, object]:
    """The `logprobs` object of a completions choice."""
    offsets, at = [], 0
    for piece in pieces:
        offsets.append(at)
        at += len(piece)
    return {
        "text_offset": offsets,
        "token_logprobs": [tokens.logprob(piece) for piece in pieces],
        "tokens": list(pieces),
        "top_logprobs": [
            {piece: tokens.logprob(piece)} | ({_OTHER: _OTHER_LOGPROB} if top > 1 else {}) for piece in pieces
        ],
    }
