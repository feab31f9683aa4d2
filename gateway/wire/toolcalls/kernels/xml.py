"""Calls that are tags: the function's name in one, then one tag or pair of tags for each argument."""

import re
from typing import Final

from gateway.wire.toolcalls.cursor import CutError, MismatchError, Pull
from gateway.wire.toolcalls.jsontext import quoted
from gateway.wire.toolcalls.kernels import json_calls
from gateway.wire.toolcalls.kernels.value import Value
from gateway.wire.toolcalls.marks import marks
from gateway.wire.toolcalls.reader import MAX_NAME, Reader
from gateway.wire.toolcalls.schema import ANY, STRING, Kinds, may_need_all
from gateway.wire.toolcalls.spec import Grammar, Head, Trim

_ATTRIBUTE: Final = re.compile(r"""([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_NEWLINES: Final = marks("\n", "\r\n")
_MAX_HEAD: Final = 1024
_IN_TAG: Final = re.compile(r"[^<\n]*")
_NAME_SO_FAR: Final = re.compile(r"\s*[\w.:/@\"'-]*\s*")
_KEY_SO_FAR: Final = re.compile(r"[^<\n]*")


def read(reader: Reader, grammar: Grammar) -> Pull[None]:
    """Reads an item whose opener was consumed.

    Raises:
        MismatchError: it is something else.
        CutError: the text ended inside it.
    """
    name = yield from function(reader, grammar)
    if name:
        yield from Item(reader, grammar, name).read()


def function(reader: Reader, grammar: Grammar) -> Pull[str]:
    """Reads the function's name; the empty string if JSON stood in its place and was read as calls."""
    tag = grammar.head
    if not tag.attribute:
        yield from reader.cursor.spaces()
        if (yield from reader.cursor.peek()) in ("{", "["):
            reader.sink.repair("json_in_xml")
            yield from json_calls.read(reader, grammar)
            return ""
    raw = yield from head(reader, tag, _NAME_SO_FAR)
    name = reader.name(attributes(raw).get(tag.attribute, "") if tag.attribute else raw)
    reader.named = (name, "")
    return name


def head(reader: Reader, tag: Head, shape: re.Pattern[str]) -> Pull[str]:
    """Reads the rest of a tag that carries a name, up to its end.

    Args:
        shape: what any beginning of the name looks like, where it stands by itself.

    Raises:
        MismatchError: it cannot be such a tag.
        CutError: the text ended inside it.
    """
    raw = ""

    def collect(text: str) -> None:
        nonlocal raw
        raw += text
        if len(raw) > _MAX_HEAD or not (_IN_TAG if tag.attribute else shape).fullmatch(raw):
            raise MismatchError

    end = yield from reader.cursor.until(marks(*tag.ends, *tag.stops), collect, tail=False)
    if not end:
        raise CutError
    if end in tag.stops:
        reader.cursor.unread(end)
    return raw if tag.attribute else raw.strip().strip("\"'")


def attributes(raw: str) -> dict[str, str]:
    """The attributes of a tag; `&quot;` and `&amp;` inside them stand for what they escape."""
    found = {}
    for match in _ATTRIBUTE.finditer(raw):
        value = match[2] or match[3] or match[4] or ""
        found[match[1]] = value.replace("&quot;", '"').replace("&amp;", "&")
    return found


class Item:
    """The arguments of one XML call, being read."""

    __slots__ = ("_begun", "_given", "_grammar", "_name", "_reader")

    def __init__(self, reader: Reader, grammar: Grammar, name: str) -> None:
        self._reader = reader
        self._grammar = grammar
        self._name = name
        self._given: set[str] = set()
        self._begun = False

    def read(self) -> Pull[None]:
        """Reads up to the end of the item."""
        reader, grammar = self._reader, self._grammar
        while True:
            yield from reader.cursor.spaces()
            word = yield from reader.cursor.lit(grammar.body)
            if word in grammar.param.opens:
                yield from self._param()
            elif word in grammar.json_opens and not self._begun:
                yield from self._json_body(word)
                return
            elif word in grammar.item_closes:
                self._end()
                return
            elif word in grammar.param_closes:
                continue
            elif word:
                reader.cursor.unread(word)
                reader.sink.repair("missing_item_closer")
                self._end()
                return
            elif (yield from self._otherwise()):
                return

    def _otherwise(self) -> Pull[bool]:
        """No tag stands here. Returns whether the item is over."""
        reader, cursor = self._reader, self._reader.cursor
        char = yield from cursor.peek()
        if char == "{" and not self._begun:
            yield from self._json_body("")
            return True
        if not cursor.dangling(self._grammar.body):
            raise MismatchError
        if reader.cut or not self._may_end(cursor.buf[cursor.pos :]):
            raise CutError
        cursor.take(len(cursor.buf))
        reader.sink.repair("missing_item_closer")
        self._end()
        return True

    def _may_end(self, tail: str) -> bool:
        """Whether a model that stopped by itself here, after the beginning of a tag perhaps, had made the call."""
        if tail and any(opener.startswith(tail) for opener in self._grammar.param.opens):
            return False
        complete = self._reader.offer.satisfied(self._name, self._given)
        return complete and (self._begun or not self._grammar.head.stops)

    def _json_body(self, opener: str) -> Pull[None]:
        """Arguments as one JSON object where tags were expected."""
        reader, grammar = self._reader, self._grammar
        if opener:
            yield from head(reader, Head(ends=grammar.param.ends, attribute="type"), _KEY_SO_FAR)
            yield from reader.cursor.spaces()
        else:
            reader.sink.repair("json_in_xml")
        reader.begin(self._name)
        yield from reader.json(reader.arguments)
        reader.end()
        yield from reader.cursor.spaces()
        yield from reader.cursor.lit(marks(*grammar.json_closes))
        yield from reader.cursor.spaces()
        yield from reader.cursor.lit(marks(*grammar.item_closes))

    def _end(self) -> None:
        if not self._begun:
            self._reader.begin(self._name)
        self._reader.arguments("}" if self._given else "{}")
        self._reader.end()

    def _param(self) -> Pull[None]:
        reader, grammar = self._reader, self._grammar
        raw = yield from head(reader, grammar.param, _KEY_SO_FAR)
        found = attributes(raw) if grammar.param.attribute else {}
        name = found.get(grammar.param.attribute, "") if grammar.param.attribute else raw
        if not name:
            raise MismatchError
        typed = found.get(grammar.type_attribute) if grammar.type_attribute else (yield from self._type())
        if grammar.value_opens:
            yield from reader.cursor.spaces()
            if not (yield from reader.cursor.lit(marks(*grammar.value_opens))):
                if reader.cursor.dangling(marks(*grammar.value_opens)):
                    raise CutError
                reader.sink.repair("missing_value_opener")
        if not self._begun:
            reader.begin(self._name)
            self._begun = True
        reader.arguments((", " if self._given else "{") + quoted(name) + ": ")
        self._given.add(name)
        yield from self._value(self._kinds(name, typed))

    def _type(self) -> Pull[str | None]:
        """The type that an element gives to the value after it; None if there is none."""
        element, cursor = self._grammar.type_element, self._reader.cursor
        if not element.opens:
            return None
        yield from cursor.spaces()
        if not (yield from cursor.lit(marks(*element.opens))):
            return None
        return (yield from head(self._reader, element, _KEY_SO_FAR))

    def _kinds(self, name: str, typed: str | None) -> Kinds:
        grammar, offer = self._grammar, self._reader.offer
        if typed == grammar.typed_as_string and typed:
            return STRING
        if grammar.type_attribute and typed is None:
            return offer.kinds(self._name, name) or STRING
        return ANY if typed else offer.kinds(self._name, name)

    def _value(self, kinds: Kinds) -> Pull[None]:
        cursor = self._reader.cursor
        grammar = self._grammar
        framed = grammar.trim is not Trim.NONE and bool((yield from cursor.lit(_NEWLINES)))
        trims = framed or grammar.trim is Trim.ONE
        first = yield from self._first_of_value(kinds)
        value = Value(self._reader.arguments, kinds, trims=trims, whole=may_need_all(first, kinds))
        while True:
            word = yield from cursor.until(grammar.value_ends, value.write, tail=False)
            if not word:
                value.cut()
                raise CutError
            if word in grammar.param_closes:
                over = (yield from cursor.ahead(grammar.after_value)) != ""
            else:
                over = yield from self._forgotten(word, value)
                if over:
                    cursor.unread(word)
                    self._reader.sink.repair("missing_value_closer")
            if over:
                value.end(forgotten=word not in grammar.param_closes)
                return
            value.write(word)

    def _first_of_value(self, kinds: Kinds) -> Pull[str]:
        """The character by which a value that may be a string, or not, is told; unread."""
        if not kinds or "string" not in kinds or kinds == STRING:
            return ""
        return (yield from self._reader.cursor.peek())

    def _forgotten(self, word: str, value: Value) -> Pull[bool]:
        """Whether `word`, inside a value, shows that the value's own closer was forgotten."""
        grammar, cursor = self._grammar, self._reader.cursor
        if word in grammar.param.opens:
            return value.at_line_start and (yield from self._opens_another())
        after = grammar.after_item if word in grammar.item_closes else grammar.after_section
        found = yield from cursor.ahead(after)
        return found != "" and not (found is None and self._reader.cut)

    def _opens_another(self) -> Pull[bool]:
        """Whether the tag that begins here names another declared argument; nothing is consumed."""
        cursor, tag = self._reader.cursor, self._grammar.param
        while True:
            text = cursor.buf[cursor.pos : cursor.pos + MAX_NAME]
            ends = [at for end in tag.ends if (at := text.find(end)) >= 0]
            if ends:
                raw = text[: min(ends)]
                name = attributes(raw).get(tag.attribute, "") if tag.attribute else raw.strip()
                schema = self._reader.offer.argument(self._name, name)
                return bool(name) and name not in self._given and schema is not None
            if len(text) == MAX_NAME or cursor.eof:
                return False
            yield
