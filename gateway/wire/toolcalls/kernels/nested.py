"""Calls whose arguments are elements named after them, nested for objects and lists (MiniMax M3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gateway.wire.toolcalls.cursor import CutError, MismatchError, Pull
from gateway.wire.toolcalls.jsontext import escaped, quoted
from gateway.wire.toolcalls.kernels.value import Value
from gateway.wire.toolcalls.kernels.xml import function
from gateway.wire.toolcalls.marks import marks
from gateway.wire.toolcalls.reader import MAX_NAME, Reader
from gateway.wire.toolcalls.schema import ANY, STRING, coerced, element, kinds_of, member
from gateway.wire.toolcalls.spec import Grammar

_MAX_DEPTH: Final = 32
_NEWLINE: Final = marks("\n", "\r\n")
_TAG_END: Final = marks(">")


@dataclass(slots=True)
class _Node:
    """An element: its text, or its children."""

    name: str
    text: list[str] = field(default_factory=list)
    children: list["_Node"] = field(default_factory=list)


def read(reader: Reader, grammar: Grammar) -> Pull[None]:
    """Reads an item whose opener was consumed; `param.opens` holds the mark before every tag.

    Raises:
        MismatchError: it is something else.
        CutError: the text ended inside it.
    """
    cursor = reader.cursor
    name = yield from function(reader, grammar)
    if not name:
        return
    given = 0
    while True:
        yield from cursor.spaces()
        word = yield from cursor.lit(grammar.body)
        if word in grammar.param.opens:
            yield from _argument(reader, grammar, name, given)
            given += 1
            continue
        if not word:
            if not cursor.dangling(grammar.body):
                raise MismatchError
            if reader.cut or cursor.pos < len(cursor.buf):
                raise CutError
            reader.sink.repair("missing_item_closer")
        elif word not in grammar.item_closes:
            cursor.unread(word)
            reader.sink.repair("missing_item_closer")
        if not given:
            reader.begin(name)
        reader.arguments("}" if given else "{}")
        reader.end()
        return


def _argument(reader: Reader, grammar: Grammar, tool: str, given: int) -> Pull[None]:
    name = yield from _tag(reader)
    if not given:
        reader.begin(tool)
    reader.arguments((", " if given else "{") + quoted(name) + ": ")
    if reader.offer.kinds(tool, name) == STRING:
        yield from _streamed(reader, grammar, name)
        return
    node = _Node(name)
    schema = reader.offer.argument(tool, name)
    try:
        yield from _fill(reader, grammar, node, 0)
    except CutError:
        text = "".join(node.text)
        reader.arguments('"' + escaped(text) if text.strip() and not node.children else "")
        raise
    reader.arguments(_json(node, schema, reader.offer.schema(tool)))


def _streamed(reader: Reader, grammar: Grammar, name: str) -> Pull[None]:
    cursor = reader.cursor
    framed = bool((yield from cursor.lit(_NEWLINE)))
    value = Value(reader.arguments, STRING, trims=framed, whole=False)
    ends = marks(_closer(grammar, name), *grammar.item_closes)
    while True:
        word = yield from cursor.until(ends, value.write, tail=False)
        if not word:
            value.cut()
            raise CutError
        if word not in grammar.item_closes:
            value.end()
            return
        if (yield from _forgotten(reader, grammar)):
            cursor.unread(word)
            value.end(forgotten=True)
            return
        value.write(word)


def _forgotten(reader: Reader, grammar: Grammar) -> Pull[bool]:
    """Whether an item's closer, just read inside a value, is one: then the value's own was forgotten."""
    found = yield from reader.cursor.ahead(grammar.after_item)
    if found == "" or (found is None and reader.cut):
        return False
    reader.sink.repair("missing_value_closer")
    return True


def _closer(grammar: Grammar, name: str) -> str:
    return f"{grammar.param.opens[0][:-1]}</{name}>"


def _tag(reader: Reader) -> Pull[str]:
    name = ""

    def collect(text: str) -> None:
        nonlocal name
        name += text
        if len(name) > MAX_NAME or "<" in name or name.startswith("/") or "\n" in name:
            raise MismatchError

    if not (yield from reader.cursor.until(_TAG_END, collect)):
        raise CutError
    if not name.strip():
        raise MismatchError
    return name.strip()


def _fill(reader: Reader, grammar: Grammar, node: _Node, depth: int) -> Pull[None]:
    """Reads the inside of an element up to its closer."""
    if depth > _MAX_DEPTH:
        raise MismatchError
    opener, closer = grammar.param.opens[0], _closer(grammar, node.name)
    ends = marks(opener, closer, *grammar.item_closes)
    while True:
        word = yield from reader.cursor.until(ends, node.text.append, tail=False)
        if not word:
            raise CutError
        if word == closer:
            return
        if word == opener and (yield from reader.cursor.peek()) != "/":
            child = _Node((yield from _tag(reader)))
            node.children.append(child)
            yield from _fill(reader, grammar, child, depth + 1)
        elif word != opener and (yield from _forgotten(reader, grammar)):
            reader.cursor.unread(word)
            return
        else:
            node.text.append(word)


def _json(node: _Node, schema: object, root: Mapping[str, object]) -> str:
    kinds = ANY if schema is None else kinds_of(schema, root)
    if not node.children:
        text = "".join(node.text)
        if text.startswith("\n") and text.endswith("\n"):
            text = text[1:-1]
        if not text.strip() and "string" not in kinds and kinds & {"array", "object"}:
            return "[]" if "array" in kinds else "{}"
        return coerced(text, kinds)
    if "array" in kinds or (not kinds and all(child.name == "item" for child in node.children)):
        inner = element(schema, root)
        return "[" + ", ".join(_json(child, inner, root) for child in node.children) + "]"
    return _object(node, schema, root)


def _object(node: _Node, schema: object, root: Mapping[str, object]) -> str:
    found: dict[str, list[str]] = {}
    for child in node.children:
        found.setdefault(child.name, []).append(_json(child, member(schema, child.name, root), root))
    members = (f"{quoted(name)}: {values[0] if len(values) == 1 else '[' + ', '.join(values) + ']'}"
               for name, values in found.items())  # fmt: skip
    return "{" + ", ".join(members) + "}"
