"""The one machine that reads every format: text, reasoning, and the sections in which calls stand.

Rules of this file: grammar code only pulls characters through the cursor; a call is begun only when nothing can take it
back; what does not fit is read again as text, so nothing is lost.
"""

from typing import Final

from gateway.wire.toolcalls.cursor import CutError, MismatchError, Pull
from gateway.wire.toolcalls.kernels import guided, json_calls, name_json, nested, objects, pythonic, xml
from gateway.wire.toolcalls.kernels.starts import begins, direct
from gateway.wire.toolcalls.marks import Marks, marks
from gateway.wire.toolcalls.reader import Reader
from gateway.wire.toolcalls.setting import Setting
from gateway.wire.toolcalls.sink import Channel, Sink
from gateway.wire.toolcalls.spec import COMMON_TURN_ENDS, Grammar, Implicit, Kernel
from gateway.wire.toolcalls.tools import Offer

_NEWLINE: Final = marks("\n", "\r\n")


class Machine(Reader):
    """Reads one answer in one of the formats that are marked by openers (all but Harmony)."""

    def __init__(self, setting: Setting, offer: Offer, sink: Sink) -> None:
        super().__init__(offer, sink)
        self.plain = False
        self._setting = setting
        form = setting.format
        self._openers = form.openers if setting.calls else {}
        self._bare = form.bare if setting.calls else ()
        self._foreign = form.foreign if setting.calls and offer.known else ()
        grammars = form.grammars
        self._closers = tuple(word for grammar in grammars for word in (*grammar.closes, *grammar.item_closes))
        family = setting.reasoning
        self._fences = dict((*family.pairs, *family.leads)) if family else {}
        self._transparent = (*form.transparent, *(family.transparent if family else ()))
        self._answer_openers = tuple(word for word in self._transparent if not _closes(word))
        self._turn_ends = (*COMMON_TURN_ENDS, *form.turn_ends)
        anywhere = tuple(opener for opener, _ in family.pairs) if family and family.anywhere else ()
        self._leads: Final = marks(*self._fences, *self._fences.values(), *self._transparent)
        words = (*self._openers, *self._transparent, *self._turn_ends, *form.restarts, *anywhere)
        self._words: Final = marks(*words)
        self._words_and_closers: Final = marks(*words, *self._closers)
        self._owed = False
        self._empty = False

    @property
    def words(self) -> Marks:
        """What the machine looks for in content now."""
        return self._words_and_closers if self._owed else self._words

    def run(self) -> Pull[None]:
        """Reads the whole answer."""
        if self._setting.starts_in_reasoning and self._setting.reasoning:
            yield from self.cursor.spaces()
            yield from self.cursor.lit(marks(*self._fences))
            yield from self._reasoning(tuple(dict.fromkeys(self._fences.values())))
        yield from self._lead()
        while True:
            self.plain = True
            word = yield from self.cursor.until(self.words, self.sink.content.write)
            self.plain = False
            if not word:
                return
            if (yield from self._marker(word)):
                yield from self._lead()

    def _marker(self, word: str) -> Pull[bool]:
        """Deals with a marker in content. Returns whether the answer starts afresh after it."""
        content = self.sink.content
        if grammar := self._openers.get(word):
            yield from self.attempt(grammar, word, content)
        elif word in self._fences:
            yield from self._reasoning((self._fences[word],))
            return not content.spoken
        elif self._owed and word in self._closers:
            self._owed = False
            content.edge()
        elif word in self._transparent:
            yield from self._drop(word)
        elif word in self._setting.format.restarts:
            content.write(word)
            return True
        else:
            content.turn_end(word)
        return False

    def _drop(self, word: str) -> Pull[None]:
        """Markup around the answer: it goes, with the newline that belongs to it."""
        self.sink.content.edge()
        if not _closes(word):
            yield from self.cursor.lit(_NEWLINE)

    def _lead(self) -> Pull[None]:
        """The start of the answer, where reasoning, guided JSON and calls without markup may stand."""
        content = self.sink.content
        while True:
            if space := (yield from self.cursor.spaces()):
                content.write(space)
            if word := (yield from self.cursor.lit(self._leads)):
                if word in self._fences:
                    yield from self._reasoning((self._fences[word],))
                elif word in self._transparent:
                    yield from self._drop(word)
                else:
                    self.sink.repair("stray_reasoning_end")
                continue
            if self._setting.guided and (yield from self._guided()):
                return
            for grammar in self._bare:
                if (yield from self._bare_calls(grammar)):
                    return
            return

    def _guided(self) -> Pull[bool]:
        if (yield from self.cursor.peek()) not in ("{", "[", "`", '"'):
            return False
        if not (yield from self._tried(guided.read(self, self._setting.forced), "")):
            return False
        yield from guided.rest(self)
        self._owed = True
        return True

    def _bare_calls(self, grammar: Grammar) -> Pull[bool]:
        if not begins(grammar, (yield from self.cursor.peek())):
            return False
        self.only_offered = True
        self._owed = yield from self._tried(self._section(grammar, ""), "")
        self.only_offered = False
        return self._owed

    def _tried(self, reading: Pull[None], word: str) -> Pull[bool]:
        """Reads something that may turn out not to be there. Returns whether a call came out."""
        sink = self.sink
        self.cursor.mark(word)
        before, repairs = sink.count, dict(sink.repairs)
        self._owed = False
        try:
            yield from reading
        except MismatchError as error:
            self._owed = self._stop(error, before)
        if sink.count > before:
            return True
        sink.repairs.clear()
        sink.repairs.update(repairs)
        return False

    def attempt(self, grammar: Grammar, word: str, channel: Channel) -> Pull[bool]:
        """Tries to read calls after an opener; without any, the opener's first character is text of `channel`.

        Returns:
            Whether a call came out.
        """
        self.only_offered = grammar.only_offered or (bool(grammar.opens) and word not in grammar.opens)
        found = yield from self._tried(self._section(grammar, word), word)
        for foreign in self._foreign:
            if found or self._empty or not self.cursor.buf.startswith(word, self.cursor.pos):
                break
            if word in (*foreign.opens, *foreign.item_opens):
                self.only_offered = True
                self.cursor.take(self.cursor.pos + len(word))
                if found := (yield from self._tried(self._section(foreign, word), word)):
                    self.sink.repair("foreign_markup")
        self.only_offered = False
        if not found and not self._empty:
            channel.write(self.cursor.take(self.cursor.pos + 1))
        self._empty = False
        return found

    def _stop(self, error: MismatchError, before: int) -> bool:
        """Ends an attempt that failed somewhere. Returns whether closers may still come that belong to it."""
        cursor, sink = self.cursor, self.sink
        cut = isinstance(error, CutError)
        begun = cut and self.cut and self.named
        named, self.named = self.named, None
        if sink.open:
            if cut:
                cursor.take(len(cursor.buf))
                cursor.release()
            else:
                sink.repair("broken_call")
                sink.end(complete=False)
                cursor.rewind()
            return False
        if begun and named:
            sink.start(*named)
        if begun or (cut and self.cut and (sink.count > before or self.after_call)):
            cursor.take(len(cursor.buf))
            cursor.release()
            return False
        cursor.rewind()
        return sink.count > before

    def _section(self, grammar: Grammar, word: str) -> Pull[None]:
        """Reads the calls of a section up to its closer.

        An empty section of special tokens, which no prose contains, is markup and nothing else.
        """
        cursor, sink = self.cursor, self.sink
        before = sink.count
        first = True
        if word and word in grammar.item_opens:
            yield from self._item(grammar)
            if grammar.opens:
                sink.repair("missing_section_opener")
        while True:
            yield from cursor.spaces()
            found = yield from cursor.lit(grammar.inside)
            if found in grammar.closes:
                self._empty = first and word in grammar.opens and self._setting.format.special
                if sink.count == before and not self._empty:
                    raise MismatchError
                break
            first = False
            if found in grammar.item_opens:
                yield from self._item(grammar)
            elif not found:
                char = yield from cursor.peek()
                if cursor.dangling(grammar.inside):
                    if sink.count == before:
                        raise CutError
                    cursor.take(len(cursor.buf))
                    break
                if char in "}]" and sink.count > before and grammar.kernel is Kernel.JSON:
                    cursor.take(cursor.pos + 1)
                    sink.repair("stray_bracket")
                    continue
                if not direct(grammar, char):
                    raise MismatchError
                yield from self._item(grammar, char)
        cursor.release()
        sink.content.edge()

    def _item(self, grammar: Grammar, char: str = "") -> Pull[None]:
        """Reads one item; `char` is what it begins with if no opener was there."""
        self.named = None
        match grammar.kernel:
            case _ if char and char in "{[" and grammar.item_opens and grammar.kernel is not Kernel.KEYED:
                self.sink.repair("json_in_xml")
                yield from json_calls.read(self, grammar)
            case Kernel.JSON:
                yield from json_calls.read(self, grammar)
            case Kernel.KEYED:
                yield from json_calls.read_keyed(self, grammar)
            case Kernel.NAME_JSON:
                yield from name_json.read(self, grammar)
            case Kernel.XML:
                yield from xml.read(self, grammar)
            case Kernel.NESTED_XML:
                yield from nested.read(self, grammar)
            case Kernel.PYTHONIC:
                yield from pythonic.read(self, grammar)
            case Kernel.OBJECT:
                yield from objects.read(self, grammar)
        self.named = None
        self.cursor.mark()

    def _reasoning(self, closers: tuple[str, ...]) -> Pull[None]:
        """Reads reasoning up to one of its closers, or the end."""
        channel = self.sink.reasoning
        channel.edge()
        implicit = self._setting.format.implicit if self._setting.calls else Implicit.NEVER
        openers = self._openers if implicit is not Implicit.NEVER else {}
        if self._setting.format.special:
            closers = (*closers, *self._answer_openers)
        words = marks(*closers, *openers, *self._turn_ends)
        while True:
            word = yield from self.cursor.until(words, channel.write)
            if not word or word in closers:
                break
            if word in openers:
                if implicit is Implicit.AT_ONCE:
                    if (yield from self.attempt(openers[word], word, channel)):
                        self.sink.repair("implicit_reasoning_end")
                        return
                elif (yield from self._calls_at_end(word)):
                    return
            else:
                channel.turn_end(word)
        channel.edge()
        self.sink.content.edge()

    def _calls_at_end(self, word: str) -> Pull[bool]:
        """Calls inside open reasoning: they count if nothing else follows them; otherwise they are reasoning."""
        cursor, sink = self.cursor, self.sink
        sink.hold()
        cursor.log(word)
        ends = marks(*self._openers, *self._turn_ends)
        found: str | None = word
        while found:
            if found in self._openers and not (yield from self.attempt(self._openers[found], found, sink.reasoning)):
                break
            yield from cursor.spaces()
            found = yield from cursor.lit(ends)
        over = not found and not (yield from cursor.peek())
        text = cursor.logged()
        if over and sink.holds_calls:
            sink.keep()
            sink.repair("implicit_reasoning_end")
            return True
        sink.discard()
        self._owed = False
        sink.reasoning.write(text)
        return False


def _closes(word: str) -> bool:
    """Whether markup around the answer ends it."""
    return word.startswith(("</", "<|END", "<|close"))
