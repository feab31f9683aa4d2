"""Embedding requests: what their input is."""

from typing import Final

import msgspec

_BLANK: Final = b" \t\r\n"

TOKEN_INPUT_REFUSED: Final = (
    "This model takes text, not token ids: ids of another tokenizer would give wrong vectors without any error. "
    "Send strings (LangChain's OpenAIEmbeddings: check_embedding_ctx_length=False), or ask for "
    "'token_inputs: pass' on this model."
)


def is_token_input(raw: msgspec.Raw | None) -> bool:
    """Whether ``input`` holds token ids: a list of numbers, or a list of such lists.

    Only the first element is looked at: mixed lists are no engine's input, and the engine says so.
    """
    if raw is None:
        return False
    view = memoryview(raw)
    depth = 0
    for byte in view:
        if byte in _BLANK:
            continue
        if byte == 0x5B and depth < 2:  # "["
            depth += 1
            continue
        return depth > 0 and (0x30 <= byte <= 0x39 or byte == 0x2D)
    return False
