"""Small pure functions on JSON text."""

import json
import re
from json.encoder import encode_basestring
from typing import Final

_LONGEST_ESCAPE: Final = 6
_LONE: Final = re.compile("[\ud800-\udfff]")


def quoted(text: str) -> str:
    """`text` as a JSON string, non-ASCII characters left as they are, lone surrogates escaped."""
    return escape_lone(encode_basestring(text))


def escaped(text: str) -> str:
    """The inside of `quoted`, without the quotes: pieces of a string can be escaped one by one."""
    return quoted(text)[1:-1]


def escape_lone(text: str) -> str:
    """Writes surrogate characters as JSON escapes: they cannot be encoded as UTF-8."""
    if text.isascii() or not _LONE.search(text):
        return text
    return _LONE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def unquoted(raw: str) -> str:
    """The text that the inside of a JSON string stands for, or `raw` itself where it is not valid."""
    if "\\" not in raw:
        return raw
    try:
        text = json.loads(f'"{raw}"', strict=False)
    except ValueError:
        return raw
    return str(text).encode("utf-8", "replace").decode() if _LONE.search(text) else str(text)


def unquoted_beginning(raw: str) -> str:
    """As `unquoted`, for a string that was cut off, perhaps inside an escape."""
    for cut in range(min(len(raw), _LONGEST_ESCAPE)):
        kept = raw[: len(raw) - cut]
        if unquoted(kept) != kept or "\\" not in kept:
            return unquoted(kept)
    return ""


def refuse_constant(name: str) -> None:
    """For `json.loads(parse_constant=…)`: NaN and Infinity are not JSON."""
    raise ValueError(name)


def as_value(text: str) -> object:
    """The value of strict JSON text.

    Raises:
        ValueError: it is not JSON (RFC 8259), or nested too deeply to be read.
    """
    try:
        value: object = json.loads(text, parse_constant=refuse_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value


def dumps(value: object) -> str:
    """JSON text with non-ASCII characters as they are and lone surrogates escaped.

    Raises:
        ValueError: the value has a number that JSON cannot say.
    """
    return escape_lone(json.dumps(value, ensure_ascii=False, allow_nan=False))
