"""Calls that are Python: `[f(a='x', b=1), g()]`. Only literals are read, and nothing is evaluated."""

import ast
import re
from collections.abc import Callable
from typing import Final

from gateway.wire.toolcalls.cursor import CutError, MismatchError, Pull
from gateway.wire.toolcalls.jsontext import dumps, escaped, quoted
from gateway.wire.toolcalls.kernels import json_calls
from gateway.wire.toolcalls.marks import marks
from gateway.wire.toolcalls.reader import MAX_NAME, Reader
from gateway.wire.toolcalls.spec import Grammar

_IDENTIFIER: Final = re.compile(r"[\w.:-]+")
_KEYWORD: Final = re.compile(r"\w+")
_NUMBER: Final = re.compile(r"[-+.\w]+")
_JSON_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_NUMBER_SO_FAR: Final = re.compile(r"-?(?:0|[1-9][0-9]*)?(?:\.[0-9]*)?")
_WORDS: Final = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_PREFIXES: Final = frozenset({"r", "b", "u", "f", "R", "B", "U", "F"})
_STARTS: Final = frozenset("'\"[({-+.TFNtfnrbuRBU")
_QUOTES: Final = marks("'''", '"""', "'", '"')
_ESCAPES: Final = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "\n": "", "\\": "\\", "'": "'",
    '"': '"',
}  # fmt: skip
_HEX_ESCAPES: Final = {"x": 2, "u": 4, "U": 8}
_HEX: Final = re.compile(r"[0-9a-fA-F]+")
_MAX_NUMBER: Final = 4096
_MAX_DEPTH: Final = 100
_CLOSERS: Final = {"[": "]", "(": ")", "{": "}"}


def read(reader: Reader, grammar: Grammar) -> Pull[None]:
    """Reads a list of calls, or one call.

    Raises:
        MismatchError: it is something else.
        CutError: the text ended.
    """
    cursor = reader.cursor
    if (yield from cursor.peek()) != "[":
        yield from _call(reader, grammar)
        return
    cursor.take(cursor.pos + 1)
    first = reader.sink.count
    while True:
        yield from cursor.spaces()
        char = yield from cursor.peek()
        if char == "{":
            yield from json_calls.read_object(reader, grammar)
            cursor.mark()
        elif char and char in ",]" and reader.sink.count > first:
            cursor.take(cursor.pos + 1)
            if char == "]":
                return
        elif char:
            yield from _call(reader, grammar)
            reader.only_offered = False
        else:
            raise CutError


def _call(reader: Reader, grammar: Grammar) -> Pull[None]:
    cursor = reader.cursor
    reader.named = None
    written = yield from cursor.run(_IDENTIFIER, MAX_NAME)
    name = reader.name(written.removesuffix(grammar.suffix))
    yield from cursor.spaces()
    yield from reader.expect("(")
    reader.named = (name, "")
    emit = reader.arguments
    begun = False
    given = 0
    while True:
        yield from cursor.spaces()
        char = yield from cursor.peek()
        if char == ")":
            cursor.take(cursor.pos + 1)
            break
        if char == "," and given:
            cursor.take(cursor.pos + 1)
            continue
        key = yield from _keyword(reader, name, given)
        if not begun:
            yield from _plausible(reader)
            reader.begin(name)
            begun = True
        emit((", " if given else "{") + quoted(key) + ": ")
        yield from literal(reader, emit, 0)
        given += 1
    if not begun:
        reader.begin(name)
    emit("}" if given else "{}")
    reader.end()


def _keyword(reader: Reader, tool: str, given: int) -> Pull[str]:
    """The name of the next argument; positional ones take it from the order in the tool's schema."""
    cursor = reader.cursor
    char = yield from cursor.peek()
    if not char:
        raise CutError
    if char in "'\"[{(-" or char.isdigit():
        positions = reader.offer.positions(tool)
        if given >= len(positions):
            raise MismatchError
        reader.sink.repair("positional_argument")
        return positions[given]
    word = yield from cursor.run(_KEYWORD, MAX_NAME)
    if not word:
        raise MismatchError
    yield from cursor.spaces()
    yield from reader.expect("=")
    yield from cursor.spaces()
    return word


def _plausible(reader: Reader) -> Pull[None]:
    """Refuses what cannot be a literal before anything is committed to."""
    char = yield from reader.cursor.peek()
    if not char:
        raise CutError
    if char not in _STARTS and not char.isdigit():
        raise MismatchError


def literal(reader: Reader, emit: Callable[[str], None], depth: int) -> Pull[None]:
    """Reads one Python literal and emits it as JSON, strings as they arrive.

    Raises:
        MismatchError: it is no literal.
        CutError: the text ended inside it.
    """
    if depth > _MAX_DEPTH:
        raise MismatchError
    cursor = reader.cursor
    char = yield from cursor.peek()
    if not char:
        raise CutError
    if char in "'\"":
        yield from _string(reader, emit, raw=False)
    elif char in _CLOSERS:
        cursor.take(cursor.pos + 1)
        if char == "{":
            yield from _mapping(reader, emit, depth)
        else:
            yield from _sequence(reader, emit, _CLOSERS[char], depth)
    else:
        yield from _word(reader, emit)


def _word(reader: Reader, emit: Callable[[str], None]) -> Pull[None]:
    cursor = reader.cursor
    word = yield from cursor.run(_NUMBER, _MAX_NUMBER)
    if word in _PREFIXES and (yield from cursor.peek()) in ("'", '"'):
        yield from _string(reader, emit, raw=word in "rR")
        return
    known = _WORDS.get(word)
    if cursor.eof and cursor.pos >= len(cursor.buf):
        emit(known or (word if _NUMBER_SO_FAR.fullmatch(word) else ""))
        raise CutError
    emit(known or (word if _JSON_NUMBER.fullmatch(word) else _python_number(word)))


def _python_number(word: str) -> str:
    try:
        value = ast.literal_eval(word)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise MismatchError from error
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MismatchError
    try:
        return dumps(value)
    except ValueError as error:
        raise MismatchError from error


def _sequence(reader: Reader, emit: Callable[[str], None], closer: str, depth: int) -> Pull[None]:
    cursor = reader.cursor
    emit("[")
    given = 0
    while (yield from _after_comma(reader, given)) != closer:
        if given:
            emit(", ")
        yield from literal(reader, emit, depth + 1)
        given += 1
    cursor.take(cursor.pos + 1)
    emit("]")


def _mapping(reader: Reader, emit: Callable[[str], None], depth: int) -> Pull[None]:
    cursor = reader.cursor
    emit("{")
    given = 0
    while (yield from _after_comma(reader, given)) != "}":
        key: list[str] = []
        yield from literal(reader, key.append, depth + 1)
        text = "".join(key)
        emit((", " if given else "") + (text if text.startswith('"') else quoted(text)))
        yield from cursor.spaces()
        yield from reader.expect(":")
        emit(": ")
        yield from cursor.spaces()
        yield from literal(reader, emit, depth + 1)
        given += 1
    cursor.take(cursor.pos + 1)
    emit("}")


def _after_comma(reader: Reader, given: int) -> Pull[str]:
    """Passes the comma between elements; returns the character that stands then."""
    cursor = reader.cursor
    yield from cursor.spaces()
    char = yield from cursor.peek()
    if given and char == ",":
        cursor.take(cursor.pos + 1)
        yield from cursor.spaces()
        char = yield from cursor.peek()
    elif given and char not in ("]", ")", "}", ""):
        raise MismatchError
    if not char:
        raise CutError
    return char


def _string(reader: Reader, emit: Callable[[str], None], *, raw: bool) -> Pull[None]:
    """One string, or several side by side, which Python joins."""
    cursor = reader.cursor
    emit('"')
    while quote := (yield from cursor.lit(_QUOTES)):
        yield from _inside(reader, emit, quote, raw=raw)
        yield from cursor.spaces()
        raw = False
    emit('"')


def _inside(reader: Reader, emit: Callable[[str], None], quote: str, *, raw: bool) -> Pull[None]:
    """The inside of a string up to its closing quote."""
    ends = marks(quote, "\\")
    while word := (yield from reader.cursor.until(ends, lambda text: emit(escaped(text)))):
        if word == quote:
            return
        yield from _escape(reader, emit, raw=raw)
    raise CutError


def _escape(reader: Reader, emit: Callable[[str], None], *, raw: bool) -> Pull[None]:
    """What follows a backslash; `\\uXXXX` means the same in JSON and stays as it is."""
    cursor = reader.cursor
    char = yield from cursor.peek()
    if not char:
        raise CutError
    cursor.take(cursor.pos + 1)
    if raw:
        emit(escaped("\\" + char))
    elif char in _ESCAPES:
        emit(escaped(_ESCAPES[char]))
    elif char in _HEX_ESCAPES:
        yield from _hex(reader, emit, char)
    else:
        emit(escaped("\\" + char))


def _hex(reader: Reader, emit: Callable[[str], None], kind: str) -> Pull[None]:
    cursor = reader.cursor
    size = _HEX_ESCAPES[kind]
    digits = ""
    while len(digits) < size:
        char = yield from cursor.peek()
        if not char:
            raise CutError
        if not _HEX.match(char):
            emit(escaped("\\" + kind + digits))
            return
        digits += cursor.take(cursor.pos + 1)
    code = int(digits, 16)
    if kind == "u":
        emit("\\u" + digits)
    elif code > 0x10FFFF:
        emit(escaped("\\" + kind + digits))
    else:
        emit(escaped(chr(code)))
