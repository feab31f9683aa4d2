"""Embeddings: what the input of a request is, and which form the vectors of an answer have."""

import base64
import re
import sys
from array import array
from typing import Final

import msgspec

from gateway.errors import ApiError, ContextLengthExceeded, InvalidRequest

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


_VECTOR: Final = re.compile(rb'"embedding"\s*:\s*(["\[])')
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
_decode_numbers = msgspec.json.Decoder(list[float]).decode
_decode_text = msgspec.json.Decoder(str).decode


def spell_vectors(body: bytes, encoding_format: msgspec.Raw | None) -> bytes:
    """The answer with its vectors in the form that the client asked for, whatever the engine gave.

    ``base64`` is that of little-endian float32 numbers, as OpenAI's SDKs read it; anything else, nothing included,
    means lists of numbers. The same object when nothing had to change.

    Raises ValueError when a vector is neither of the two.
    """
    first = _VECTOR.search(body)
    wants_text = encoding_format is not None and bytes(encoding_format) == b'"base64"'
    if first is None or (first[1] == b'"') == wants_text:
        return body
    try:
        members = _decode_members(body)
        items = [
            item | {"embedding": _spelled(item["embedding"], wants_text=wants_text)}
            for item in _decode_items(members["data"])
        ]
    except (msgspec.DecodeError, KeyError, RecursionError) as error:
        raise ValueError(f"the engine's vectors cannot be read: {error}") from None
    return msgspec.json.encode(members | {"data": msgspec.Raw(msgspec.json.encode(items))})


def _spelled(raw: msgspec.Raw, *, wants_text: bool) -> msgspec.Raw:
    is_text = bytes(memoryview(raw)[:1]) == b'"'
    if is_text == wants_text:
        return raw
    if wants_text:
        numbers = array("f", _decode_numbers(raw))
        return msgspec.Raw(b'"' + base64.b64encode(_little(numbers).tobytes()) + b'"')
    numbers = array("f")
    numbers.frombytes(base64.b64decode(_decode_text(raw), validate=True))
    return msgspec.Raw(msgspec.json.encode(_little(numbers).tolist()))


def _little(numbers: "array[float]") -> "array[float]":
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


_LIMIT: Final = re.compile(r"maximum context length (?:is|of) (\d{1,9})")
_INDEX: Final = re.compile(r"\binput\[(\d{1,6})\]")
_SPECIAL_TOKENS: Final = 8
"""As many may come to a text's own tokens, of which each is at least a byte."""


def name_input(error: ApiError, given: msgspec.Raw | None) -> ApiError:
    """The error about inputs that are too long, with the one that it must be about.

    vLLM refuses a whole batch for one input and does not say for which (recording `embed_one_of_two_too_long`). When
    only one can have more tokens than the limit, it is named; else the longest is mentioned.
    """
    if not isinstance(error, ContextLengthExceeded) or given is None:
        return error
    sizes = _sizes(given)
    if len(sizes) < 2:
        return ContextLengthExceeded(error.message, param="input", code=error.code)
    limit = _LIMIT.search(error.message)
    suspects = [at for at, size in enumerate(sizes) if limit is None or size > int(limit[1]) - _SPECIAL_TOKENS]
    if len(suspects) == 1:
        item = f"input[{suspects[0]}]"
        return ContextLengthExceeded(f"{item}: {error.message}", param=item, code=error.code)
    longest = max(range(len(sizes)), key=sizes.__getitem__)
    message = f"{error.message} This is about at least one of the {len(sizes)} inputs; input[{longest}] is the longest."
    return ContextLengthExceeded(message, param="input", code=error.code)


def of_item(error: InvalidRequest, name: str, first: int, *, alone: bool) -> InvalidRequest:
    """The error about a part of a list, with the place in the whole list of what it is about.

    ``first`` is where the part begins; ``alone``: it is one item. A part of several items already says which one is too
    long, unless it is the last and has only one.
    """
    if alone or (isinstance(error, ContextLengthExceeded) and _INDEX.search(error.message) is None):
        item = f"{name}[{first}]"
        return type(error)(f"{item}: {error.message}", param=item, code=error.code)
    param = None if error.param is None else _moved(error.param, first)
    return type(error)(_moved(error.message, first), param=param, code=error.code)


def _moved(text: str, by: int) -> str:
    return _INDEX.sub(lambda found: f"input[{int(found[1]) + by}]", text)


def _sizes(given: msgspec.Raw) -> list[int]:
    """Bytes of each text, or token ids of each list; one size for what is one input."""
    try:
        items = msgspec.json.decode(given)
    except msgspec.DecodeError:
        return []
    if not isinstance(items, list) or not items or isinstance(items[0], int):
        return [1]
    return [
        len(item.encode()) if isinstance(item, str) else len(item) for item in items if isinstance(item, str | list)
    ]
