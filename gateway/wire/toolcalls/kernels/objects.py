"""Calls in Gemma's object notation: `call:f{k:<|"|>v<|"|>,n:1,o:{…},l:[…]}`."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from gateway.wire.toolcalls.cursor import CutError, MismatchError, Pull
from gateway.wire.toolcalls.jsontext import escaped, quoted
from gateway.wire.toolcalls.marks import marks
from gateway.wire.toolcalls.reader import MAX_NAME, Reader
from gateway.wire.toolcalls.schema import ANY, Kinds, coerced, element, kinds_of, member
from gateway.wire.toolcalls.spec import Grammar

_CALL: Final = marks("call:")
_NAME: Final = re.compile(r"[\w.:/@ -]+")
_MAX_DEPTH: Final = 64


def read(reader: Reader, grammar: Grammar) -> Pull[None]:
    """Reads `call:NAME{…}`.

    Raises:
        MismatchError: it is something else.
        CutError: the text ended inside it.
    """
    cursor = reader.cursor
    reader.named = None
    yield from cursor.spaces()
    prefixed = yield from cursor.lit(_CALL)
    if not prefixed:
        raise MismatchError if (yield from cursor.peek()) else CutError
    name = reader.name((yield from cursor.run(_NAME, MAX_NAME)))
    if not (yield from cursor.peek()):
        raise CutError
    reader.named = (name, "")
    yield from reader.expect("{")
    yield from cursor.spaces()
    if not (yield from cursor.peek()):
        raise CutError
    reader.begin(name)
    schema = reader.offer.schema(name)
    yield from _Notation(reader, grammar, schema).mapping(schema, reader.arguments, 0)
    reader.end()


class _Notation:
    """Object notation, turned into JSON as it arrives.

    Args:
        root: the schema in which `$ref` is looked up.
    """

    __slots__ = ("_bare_ends", "_grammar", "_quotes", "_reader", "_root")

    def __init__(self, reader: Reader, grammar: Grammar, root: Mapping[str, object]) -> None:
        self._reader = reader
        self._grammar = grammar
        self._root = root
        self._quotes = marks(*grammar.quotes, '"')
        self._bare_ends = marks(",", "}", "]", *grammar.item_closes)

    def mapping(self, schema: object, emit: Callable[[str], None], depth: int) -> Pull[None]:
        """The inside of `{…}`, its opening brace consumed."""
        cursor = self._reader.cursor
        given = 0
        while (yield from self._next(given, "}")) != "}":
            key = yield from self._key()
            emit((", " if given else "{") + quoted(key) + ": ")
            yield from cursor.spaces()
            yield from self._value(member(schema, key, self._root), emit, depth)
            given += 1
        cursor.take(cursor.pos + 1)
        emit("}" if given else "{}")

    def _sequence(self, schema: object, emit: Callable[[str], None], depth: int) -> Pull[None]:
        cursor = self._reader.cursor
        inner = element(schema, self._root)
        emit("[")
        given = 0
        while (yield from self._next(given, "]")) != "]":
            if given:
                emit(", ")
            yield from self._value(inner, emit, depth)
            given += 1
        cursor.take(cursor.pos + 1)
        emit("]")

    def _next(self, given: int, closer: str) -> Pull[str]:
        """Passes the comma between elements; returns the character that stands then."""
        cursor = self._reader.cursor
        yield from cursor.spaces()
        char = yield from cursor.peek()
        if given and char == ",":
            cursor.take(cursor.pos + 1)
            yield from cursor.spaces()
            char = yield from cursor.peek()
        elif given and char not in (closer, ""):
            raise MismatchError
        if not char:
            raise CutError
        if char != closer and char in "]}":
            raise MismatchError
        return char

    def _key(self) -> Pull[str]:
        cursor = self._reader.cursor
        parts: list[str] = []
        quote = yield from cursor.lit(self._quotes)
        if quote:
            word = yield from cursor.until(marks(quote), parts.append)
            yield from cursor.spaces()
            yield from self._reader.expect(":")
        else:
            word = yield from cursor.until(marks(":", "}", ",", "{"), parts.append)
        if not word:
            raise CutError
        if not quote and word != ":":
            raise MismatchError
        return "".join(parts).strip()

    def _value(self, schema: object, emit: Callable[[str], None], depth: int) -> Pull[None]:
        if depth > _MAX_DEPTH:
            raise MismatchError
        cursor = self._reader.cursor
        kinds = ANY if schema is None else kinds_of(schema, self._root)
        quote = yield from cursor.lit(self._quotes)
        if quote:
            yield from self._string(quote, kinds, emit)
            return
        if cursor.eof and cursor.buf[cursor.pos :] in self._quotes.prefixes:
            raise CutError
        match (yield from cursor.peek()):
            case "{":
                cursor.take(cursor.pos + 1)
                yield from self.mapping(schema, emit, depth + 1)
            case "[":
                cursor.take(cursor.pos + 1)
                yield from self._sequence(schema, emit, depth + 1)
            case "":
                raise CutError
            case _:
                yield from self._bare(kinds, emit)

    def _string(self, quote: str, kinds: Kinds, emit: Callable[[str], None]) -> Pull[None]:
        reader = self._reader
        if quote == '"':
            reader.cursor.unread(quote)
            yield from reader.json(emit)
            return
        parts: list[str] = []
        coerces = self._grammar.coerces and bool(kinds) and "string" not in kinds
        if not coerces:
            emit('"')
        write = parts.append if coerces else lambda text: emit(escaped(text))
        if not (yield from reader.cursor.until(marks(quote), write, tail=False)):
            emit("".join(parts))
            raise CutError
        emit(coerced("".join(parts), kinds) if coerces else '"')

    def _bare(self, kinds: Kinds, emit: Callable[[str], None]) -> Pull[None]:
        """A value without quotes: a number, a word, or a string whose quote tokens were stripped."""
        cursor = self._reader.cursor
        parts: list[str] = []
        word = yield from cursor.until(self._bare_ends, parts.append, tail=False)
        text = "".join(parts).strip()
        if not word:
            emit(text)
            raise CutError
        cursor.unread(word)
        emit(coerced(text, kinds))
