"""Calls that an engine was made to write as plain JSON: a list of calls, or the arguments of a named tool."""

from typing import Final

from gateway.wire.toolcalls.cursor import CutError, MismatchError, Pull
from gateway.wire.toolcalls.kernels import json_calls
from gateway.wire.toolcalls.marks import marks
from gateway.wire.toolcalls.reader import Reader
from gateway.wire.toolcalls.spec import Grammar, Kernel

_CALL: Final = Grammar(Kernel.JSON)
_STRAY: Final = marks("}", "]", "```")


def read(reader: Reader, forced: str) -> Pull[None]:
    """Reads guided JSON: a list of calls, a call, or the arguments of the `forced` function.

    Raises:
        MismatchError: it is something else.
        CutError: the text ended.
    """
    if (yield from reader.fence()):
        reader.sink.repair("code_fence")
    char = yield from reader.cursor.peek()
    if char == "[":
        yield from json_calls.read_list(reader, _CALL)
        return
    if not forced:
        yield from json_calls.read_object(reader, _CALL)
        return
    if char == '"':
        yield from json_calls.read_arguments(reader, forced, "")
        return
    if char != "{":
        raise MismatchError if char else CutError
    yield from _arguments(reader, forced)


def _arguments(reader: Reader, forced: str) -> Pull[None]:
    """The arguments of the forced function, unless they turn out to be a whole call of an offered one."""
    reader.cursor.mark()
    reader.only_offered = reader.needs_arguments = True
    before = reader.sink.count
    try:
        yield from json_calls.read_object(reader, _CALL)
    except MismatchError:
        if reader.sink.count > before or (reader.named and reader.cut):
            raise
        reader.named = None
        reader.cursor.rewind()
    else:
        return
    finally:
        reader.only_offered = reader.needs_arguments = False
    reader.begin(forced)
    yield from reader.json(reader.arguments)
    reader.end()


def rest(reader: Reader) -> Pull[None]:
    """Passes over stray closing brackets after guided JSON; engines that do not enforce it leave some."""
    cursor = reader.cursor
    while True:
        cursor.mark()
        yield from cursor.spaces()
        if not (yield from cursor.lit(_STRAY)):
            cursor.rewind()
            return
        cursor.release()
        reader.sink.repair("stray_bracket")
