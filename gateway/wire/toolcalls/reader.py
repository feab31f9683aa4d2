"""What the grammar code works with: the text, the place for what it finds, and the tools on offer."""

import re
from collections.abc import Callable
from typing import Final

from gateway.wire.toolcalls.cursor import Cursor, CutError, MismatchError, Pull
from gateway.wire.toolcalls.jsonscan import JsonScanner
from gateway.wire.toolcalls.jsontext import unquoted
from gateway.wire.toolcalls.marks import marks
from gateway.wire.toolcalls.sink import Sink
from gateway.wire.toolcalls.tools import Offer

MAX_NAME: Final = 256
_NO_LIMIT: Final = 1 << 62
_NAME: Final = re.compile(r"[^\W\d][\w.:/@-]*|\d[\w.:/@-]*")
_STRING_RUN: Final = {'"': re.compile(r'[^"\\]+'), "'": re.compile(r"[^'\\]+")}
_FENCE: Final = marks("```")
_FENCE_LABEL: Final = re.compile(r"[A-Za-z0-9_]*")


class Reader:
    """One answer being read.

    `only_offered` is set while the shape being read counts only for offered tools, `needs_arguments` while an object
    with nothing but a name is no call. `named` is a call whose name is known but whose arguments have not begun: if the
    answer is cut there, the call was still begun.
    """

    def __init__(self, offer: Offer, sink: Sink) -> None:
        self.cursor: Final = Cursor()
        self.sink: Final = sink
        self.offer: Final = offer
        self.only_offered = False
        self.needs_arguments = False
        self.named: tuple[str, str] | None = None
        self.reason: str | None = None

    def stop(self, reason: str) -> None:
        """No more text comes; `reason` is `length` or `stop`."""
        self.reason = reason
        self.cursor.eof = True
        self.cursor.drops_tail = self.cut and self.after_markup

    @property
    def after_call(self) -> bool:
        """Whether nothing but whitespace was said since the last call."""
        return self.sink.count > 0 and not self.sink.open and self.sink.content.at_edge

    @property
    def after_markup(self) -> bool:
        """Whether the beginning of a marker at the end of the text is surely one."""
        return self.after_call

    @property
    def cut(self) -> bool:
        """Whether the answer ended at the token limit; known at its end."""
        return self.reason == "length"

    def name(self, raw: str) -> str:
        """Checks a function name.

        Raises:
            MismatchError: it is none, or not an offered one where only those count.
        """
        name = raw.strip()
        if self.offer.known and self.offer.takes(name):
            return name
        if (self.only_offered and self.offer.known) or len(name) > MAX_NAME or not _NAME.fullmatch(name):
            raise MismatchError
        return name

    def begin(self, name: str, call_id: str = "") -> None:
        """Commits to a call: it is not taken back."""
        self.named = None
        self.sink.start(name, call_id)
        self.cursor.mark()

    def arguments(self, text: str) -> None:
        """More JSON of the call's arguments, and with it everything consumed so far is accounted for."""
        self.sink.arguments(text)
        self.cursor.mark()

    def end(self) -> None:
        """The call is whole; what follows can be read again as something else."""
        self.sink.end()
        self.cursor.mark()

    def call(self, name: str, arguments: str, call_id: str = "") -> None:
        """A whole call at once."""
        self.begin(name, call_id)
        self.arguments(arguments)
        self.end()

    def expect(self, char: str) -> Pull[None]:
        """Consumes one character.

        Raises:
            MismatchError: another one stands here.
            CutError: the text ended.
        """
        found = yield from self.cursor.peek()
        if not found:
            raise CutError
        if found != char:
            raise MismatchError
        self.cursor.take(self.cursor.pos + 1)

    def json(self, emit: Callable[[str], None]) -> Pull[None]:
        """Passes one JSON value through to `emit`.

        Raises:
            MismatchError: it is not JSON; what was consumed went to `emit`.
            CutError: the text ended first.
        """
        cursor = self.cursor
        scanner = JsonScanner(emit, self.sink.repair)
        while True:
            end = scanner.feed(cursor.buf, cursor.pos)
            if end > cursor.pos:
                cursor.take(end)
                if self.sink.open:
                    cursor.mark()
            if scanner.done:
                return
            if scanner.bad or cursor.eof:
                break
            yield
        if not scanner.close():
            raise MismatchError if scanner.bad else CutError

    def string(self, raw: list[str] | None = None) -> Pull[str]:
        """Consumes a JSON string (single quotes are tolerated) and returns the text it stands for.

        Args:
            raw: takes the inside as it is read, for those who need it when the text ends too early.

        Raises:
            MismatchError: no string stands here.
            CutError: the text ended inside it.
        """
        cursor = self.cursor
        quote = yield from cursor.peek()
        if quote not in _STRING_RUN:
            raise MismatchError if quote else CutError
        cursor.take(cursor.pos + 1)
        raw = [] if raw is None else raw
        while True:
            raw.append((yield from cursor.run(_STRING_RUN[quote], _NO_LIMIT)))
            char = yield from cursor.peek()
            if not char:
                raise CutError
            cursor.take(cursor.pos + 1)
            if char == quote:
                return unquoted("".join(raw))
            raw.append(char)
            if not (yield from cursor.peek()):
                raise CutError
            raw.append(cursor.take(cursor.pos + 1))

    def fence(self) -> Pull[bool]:
        """Consumes the opening line of a code fence, if there is one."""
        if not (yield from self.cursor.lit(_FENCE)):
            return False
        yield from self.cursor.run(_FENCE_LABEL, MAX_NAME)
        yield from self.cursor.spaces()
        return True

    def fence_end(self) -> Pull[None]:
        """Consumes the closing fence, if there is one."""
        yield from self.cursor.spaces()
        yield from self.cursor.lit(_FENCE)
