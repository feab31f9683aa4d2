"""Calls that are a name, a separator and a JSON object (DeepSeek, Kimi, Mistral, PLaMo)."""

import re
from typing import Final

from gateway.wire.toolcalls.cursor import CutError, MismatchError, Pull
from gateway.wire.toolcalls.kernels import json_calls
from gateway.wire.toolcalls.marks import Marks, marks
from gateway.wire.toolcalls.reader import MAX_NAME, Reader
from gateway.wire.toolcalls.spec import Grammar

_INDEX: Final = re.compile(r"(.*?):\d+", re.DOTALL)
_CALL_ID: Final = marks("[CALL_ID]")
_CALL_ID_END: Final = marks("[ARGS]", "{")


def read(reader: Reader, grammar: Grammar) -> Pull[None]:
    """Reads an item whose opener was consumed.

    Raises:
        MismatchError: it is something else.
        CutError: the text ended inside it.
    """
    cursor = reader.cursor
    yield from cursor.spaces()
    if grammar.list_of and (yield from cursor.peek()) in ("[", "{"):
        yield from json_calls.read(reader, grammar)
        return
    if not grammar.at_start:
        yield from cursor.lit(marks(*grammar.prefixes))
    raw = yield from _name(reader, grammar)
    name, call_id = _split(raw, grammar) if grammar.indexed else (raw, "")
    name = reader.name(_without_prefix(name, grammar))
    reader.named = (name, call_id)
    if grammar.list_of:
        call_id = yield from _call_id(reader)
        reader.named = (name, call_id)
    yield from _body(reader, grammar, name, call_id)


def _without_prefix(name: str, grammar: Grammar) -> str:
    for prefix in grammar.prefixes:
        name = name.removeprefix(prefix)
    return name


def _split(raw: str, grammar: Grammar) -> tuple[str, str]:
    """Name and id of Kimi's `functions.NAME:INDEX`."""
    found = _INDEX.fullmatch(raw)
    name = _without_prefix(found[1] if found else raw, grammar)
    return name, f"functions.{name}:{raw[len(found[1]) + 1 :]}" if found else ""


def _name(reader: Reader, grammar: Grammar) -> Pull[str]:
    """Reads a name up to what ends it: a separator (consumed), or what the arguments begin with."""
    raw = ""
    ends = marks(*grammar.head.ends, *grammar.head.stops)

    def collect(text: str) -> None:
        nonlocal raw
        raw += text
        bare = raw.strip()
        if len(raw) > MAX_NAME or any(char in bare for char in "\n <"):
            raise MismatchError
        if grammar.at_start and not _may_be_offered(reader, grammar, bare):
            raise MismatchError

    end = yield from reader.cursor.until(ends, collect, tail=False)
    if not end:
        raise CutError
    if end in grammar.head.stops:
        reader.cursor.unread(end)
    return raw.strip()


def _may_be_offered(reader: Reader, grammar: Grammar, so_far: str) -> bool:
    """Whether a name at the very start of an answer can still become the name of an offered tool."""
    if not reader.offer.known:
        return False
    for prefix in grammar.prefixes or ("",):
        for name in reader.offer.names:
            whole = prefix + name
            if whole.startswith(so_far) or (grammar.indexed and re.fullmatch(re.escape(whole) + r":\d*", so_far)):
                return True
    return False


def _call_id(reader: Reader) -> Pull[str]:
    """Reads Mistral's `[CALL_ID]…` and the `[ARGS]` after it, if they are there."""
    cursor = reader.cursor
    parts: list[str] = []
    if (yield from cursor.lit(_CALL_ID)):
        end = yield from cursor.until(_CALL_ID_END, parts.append)
        if not end:
            raise CutError
        if end == "{":
            cursor.unread(end)
        if len("".join(parts)) > MAX_NAME:
            raise MismatchError
    return "".join(parts).strip()


def _body(reader: Reader, grammar: Grammar, name: str, call_id: str) -> Pull[None]:
    cursor = reader.cursor
    separators = _between(grammar)
    while True:
        yield from cursor.spaces()
        if not (yield from cursor.lit(separators)):
            break
    fenced = yield from reader.fence()
    char = yield from cursor.peek()
    if fenced and char == "`":
        yield from reader.fence_end()
        char = yield from cursor.peek()
    if (yield from cursor.ahead(grammar.instead_of_arguments)) or (not char and not reader.cut):
        reader.call(name, "{}", call_id)
        return
    yield from json_calls.read_arguments(reader, name, call_id)
    if fenced:
        yield from reader.fence_end()


def _between(grammar: Grammar) -> Marks:
    return marks(*grammar.head.ends, *grammar.skips) if grammar.skips else marks(*grammar.head.ends)
