"""Calls that are JSON: an object with a name and arguments, or a list of such objects."""

from dataclasses import dataclass, field
from typing import Final

from gateway.wire.toolcalls.cursor import CutError, MismatchError, Pull
from gateway.wire.toolcalls.jsontext import as_value, unquoted_beginning
from gateway.wire.toolcalls.reader import Reader
from gateway.wire.toolcalls.spec import Grammar

_NEUTRAL: Final = frozenset({"type", "index"})
"""Members that a call may have beside its own without meaning anything."""
_WRAPPERS: Final = frozenset({"function", "function_call", "tool_call"})


@dataclass(slots=True)
class _Call:
    """What is known about one call object so far."""

    name: str = ""
    id: str = ""
    arguments: list[str] = field(default_factory=list)
    have_arguments: bool = False
    done: bool = False
    foreign: bool = False


def read(reader: Reader, grammar: Grammar) -> Pull[None]:
    """Reads an item: an object, a list of objects, either of them in a code fence.

    Raises:
        MismatchError: it is something else.
        CutError: the text ended.
    """
    fenced = yield from reader.fence()
    if fenced:
        reader.sink.repair("code_fence")
    match (yield from reader.cursor.peek()):
        case "[":
            yield from read_list(reader, grammar)
        case "{":
            yield from read_object(reader, grammar)
        case "":
            raise CutError
        case _:
            raise MismatchError
    if fenced:
        yield from reader.fence_end()


def read_list(reader: Reader, grammar: Grammar) -> Pull[None]:
    """Reads a list of call objects."""
    first = reader.sink.count
    cursor = reader.cursor
    yield from reader.expect("[")
    while True:
        yield from cursor.spaces()
        char = yield from cursor.peek()
        if char == "{":
            yield from read_object(reader, grammar)
            cursor.mark()
        elif char and char in ",]" and reader.sink.count > first:
            cursor.take(cursor.pos + 1)
            if char == "]":
                return
        elif char:
            raise MismatchError
        else:
            raise CutError


def read_object(reader: Reader, grammar: Grammar) -> Pull[None]:
    """Reads one call object."""
    call = _Call()
    reader.named = None
    yield from _members(reader, grammar, call)
    if call.done:
        return
    guessed = call.foreign or reader.needs_arguments or (reader.only_offered and not reader.offer.known)
    if not call.name or (guessed and not call.have_arguments):
        raise MismatchError
    reader.call(call.name, "".join(call.arguments) or "{}", call.id)


def _members(reader: Reader, grammar: Grammar, call: _Call) -> Pull[None]:
    cursor = reader.cursor
    yield from reader.expect("{")
    while True:
        yield from cursor.spaces()
        char = yield from cursor.peek()
        if char and char in "\"'":
            key = yield from reader.string()
            yield from cursor.spaces()
            yield from reader.expect(":")
            yield from cursor.spaces()
            yield from _member(reader, grammar, call, key)
        elif char == ",":
            cursor.take(cursor.pos + 1)
        elif char == "}":
            cursor.take(cursor.pos + 1)
            return
        elif call.done:
            reader.sink.repair("missing_brace")
            return
        else:
            raise MismatchError if char else CutError


def _member(reader: Reader, grammar: Grammar, call: _Call, key: str) -> Pull[None]:
    char = yield from reader.cursor.peek()
    if key in grammar.name_keys and not call.name and char in ('"', "'"):
        call.name = reader.name((yield from reader.string()))
        if call.have_arguments:
            reader.call(call.name, "".join(call.arguments), call.id)
            call.done = True
        else:
            reader.named = (call.name, call.id)
    elif key in grammar.arguments_keys and not call.have_arguments:
        yield from _arguments(reader, call, char)
    elif key in _WRAPPERS and char == "{" and not call.name:
        yield from _members(reader, grammar, call)
    elif key in grammar.id_keys and char in ('"', "'"):
        call.id = yield from reader.string()
        if reader.named:
            reader.named = (call.name, call.id)
    elif char in ('"', "'") and key in _WRAPPERS and not call.name:
        call.name = reader.name((yield from reader.string()))
        reader.named = (call.name, call.id)
    else:
        if key not in _NEUTRAL and key not in grammar.id_keys:
            call.foreign = True
            reader.named = None
            if reader.only_offered and not call.done:
                raise MismatchError
        yield from reader.json(_nowhere)


def _arguments(reader: Reader, call: _Call, char: str) -> Pull[None]:
    if char == "{":
        call.have_arguments = True
        if not call.name:
            yield from reader.json(call.arguments.append)
            return
        reader.begin(call.name, call.id)
        yield from reader.json(reader.arguments)
        reader.end()
        call.done = True
        return
    call.arguments = [(yield from _odd_arguments(reader, char))]
    call.have_arguments = True
    if call.name:
        reader.call(call.name, call.arguments[0], call.id)
        call.done = True


def _odd_arguments(reader: Reader, char: str) -> Pull[str]:
    """Arguments that are no object: null, an empty list, or an object written into a string."""
    if char in ('"', "'"):
        return (yield from _stringified(reader))
    if not char:
        raise CutError
    text: list[str] = []
    yield from reader.json(text.append)
    if "".join(text).replace(" ", "") not in ("null", "[]"):
        raise MismatchError
    return "{}"


def _stringified(reader: Reader) -> Pull[str]:
    raw: list[str] = []
    try:
        inner = yield from reader.string(raw)
    except CutError:
        if reader.named and reader.cut:
            reader.begin(*reader.named)
            reader.arguments(unquoted_beginning("".join(raw)))
        raise
    try:
        value = as_value(inner) if inner.strip() else {}
        if isinstance(value, str):
            inner = value
            value = as_value(inner)
    except ValueError as error:
        raise MismatchError from error
    if not isinstance(value, dict):
        raise MismatchError
    reader.sink.repair("stringified_arguments")
    return inner.strip() or "{}"


def _nowhere(_text: str) -> None:
    """Takes text that nobody wants."""


def read_keyed(reader: Reader, grammar: Grammar) -> Pull[None]:
    """Reads `[{"name": {…}}, …]`: the name is the key of the arguments."""
    del grammar
    first = reader.sink.count
    cursor = reader.cursor
    yield from reader.expect("[")
    while True:
        yield from cursor.spaces()
        char = yield from cursor.peek()
        if char == "{":
            yield from _keyed_object(reader)
            cursor.mark()
        elif char and char in ",]" and reader.sink.count > first:
            cursor.take(cursor.pos + 1)
            if char == "]":
                return
        else:
            raise MismatchError if char else CutError


def _keyed_object(reader: Reader) -> Pull[None]:
    cursor = reader.cursor
    yield from reader.expect("{")
    yield from cursor.spaces()
    name = reader.name((yield from reader.string()))
    yield from cursor.spaces()
    yield from reader.expect(":")
    yield from cursor.spaces()
    reader.named = (name, "")
    yield from read_arguments(reader, name, "")
    yield from cursor.spaces()
    if (yield from cursor.peek()) == "}":
        cursor.take(cursor.pos + 1)


def read_arguments(reader: Reader, name: str, call_id: str) -> Pull[None]:
    """Reads the arguments of a call whose name is known, and makes it."""
    char = yield from reader.cursor.peek()
    if char == "{":
        reader.begin(name, call_id)
        yield from reader.json(reader.arguments)
        reader.end()
    else:
        reader.call(name, (yield from _odd_arguments(reader, char)), call_id)
