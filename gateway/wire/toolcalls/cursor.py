"""A reading position in text that is still arriving.

The grammar code is written as generators over a `Cursor`. A primitive that lacks characters yields; whoever feeds the
cursor resumes it. The code above never sees where one piece of text ended and the next began, so what it finds cannot
depend on that.
"""

import re
from collections.abc import Callable, Generator
from typing import Final, TypeAlias, TypeVar

from gateway.wire.toolcalls.marks import Marks

T = TypeVar("T")
Pull: TypeAlias = Generator[None, None, T]

_SPACES: Final = re.compile(r"[ \t\r\n\f\v]*")
_SPACES_AHEAD: Final = 64
"""How much whitespace a look-ahead is ready to cross: it must be bounded, or held-back text could grow without end."""


class MismatchError(Exception):
    """The text is not what the grammar says; nothing was lost, the caller reads it again as something else."""


class CutError(MismatchError):
    """The text ended where the grammar wanted more."""


class Cursor:
    """Append-only text with a reading position.

    `mark` begins to remember what is consumed and `rewind` reads it again. Only the part that was not consumed yet
    is ever copied when text arrives, so the work stays linear in the length of the text.
    """

    __slots__ = ("_log", "_trail", "buf", "drops_tail", "eof", "pos")

    def __init__(self) -> None:
        self.buf = ""
        self.pos = 0
        self.eof = False
        self.drops_tail = False
        self._trail: list[str] | None = None
        self._log: list[str] | None = None

    def append(self, text: str) -> None:
        """Adds text at the end."""
        self.buf = self.buf[self.pos :] + text if self.pos < len(self.buf) else text
        self.pos = 0

    def take(self, end: int) -> str:
        """Consumes up to `end` and returns it."""
        piece = self.buf[self.pos : end]
        self.pos = end
        if self._trail is not None:
            self._trail.append(piece)
        if self._log is not None:
            self._log.append(piece)
        return piece

    def unread(self, text: str) -> None:
        """Gives back the text that the last `take` consumed."""
        start = self.pos - len(text)
        if start >= 0 and self.buf.startswith(text, start):
            self.pos = start
        else:
            self.buf = text + self.buf[self.pos :]
            self.pos = 0
        if self._trail:
            self._trail.pop()
        if self._log is not None:
            self._log.pop()

    def mark(self, before: str = "") -> None:
        """Remembers what is consumed from here on (and `before`, consumed just now) so that `rewind` gives it back."""
        self._trail = [before] if before else []

    def release(self) -> None:
        """Forgets the mark: what was consumed is final."""
        self._trail = None

    def rewind(self) -> None:
        """Gives back everything consumed since the mark."""
        if trail := self._trail:
            back = "".join(trail)
            self.buf = back + self.buf[self.pos :]
            self.pos = 0
            if self._log is not None:
                self._forget(len(back))
        self._trail = None

    def log(self, before: str = "") -> None:
        """Begins a second record of consumed text, apart from marks."""
        self._log = [before]

    def logged(self) -> str:
        """Ends the second record and returns it."""
        text = "".join(self._log or ())
        self._log = None
        return text

    def _forget(self, count: int) -> None:
        text = "".join(self._log or ())
        self._log = [text[: len(text) - count]]

    def peek(self) -> Pull[str]:
        """The next character, not consumed; empty at the end."""
        while self.pos >= len(self.buf):
            if self.eof:
                return ""
            yield
        return self.buf[self.pos]

    def spaces(self) -> Pull[str]:
        """Consumes whitespace and returns it."""
        run: list[str] = []
        while True:
            found = _SPACES.match(self.buf, self.pos)
            end = found.end() if found else self.pos
            if end > self.pos:
                run.append(self.take(end))
            if end < len(self.buf) or self.eof:
                return "".join(run)
            yield

    def run(self, pattern: re.Pattern[str], limit: int) -> Pull[str]:
        """Consumes characters as long as `pattern` (which must match any prefix of what it matches) goes on.

        Raises:
            MismatchError: after more than `limit` characters.
        """
        run: list[str] = []
        size = 0
        while True:
            found = pattern.match(self.buf, self.pos)
            end = found.end() if found else self.pos
            if end > self.pos:
                size += end - self.pos
                run.append(self.take(end))
                if size > limit:
                    raise MismatchError
            if end < len(self.buf) or self.eof:
                return "".join(run)
            yield

    def lit(self, words: Marks) -> Pull[str]:
        """Consumes the longest of `words` that stands here and returns it; empty if none does."""
        while not self.eof and words.unfinished(self.buf, self.pos):
            yield
        found = words.at(self.buf, self.pos)
        if found:
            self.take(self.pos + len(found))
        return found

    def until(self, words: Marks, emit: Callable[[str], None], *, tail: bool = True) -> Pull[str]:
        """Hands text to `emit` up to the next of `words`, consumes that and returns it; empty at the end.

        Held back is only the longest tail that may become one of the words; at the end of the text it is handed over
        like the rest, unless `tail` is false or `drops_tail` set: then it is taken for the word, cut short, and goes.
        """
        while True:
            at, word = words.find(self.buf, self.pos)
            hold = len(self.buf) if self.eof and tail and not self.drops_tail else words.hold(self.buf, self.pos)
            if word and at < hold:
                if at > self.pos:
                    emit(self.take(at))
                self.take(at + len(word))
                return word
            if hold > self.pos:
                emit(self.take(hold))
            if self.eof:
                self.take(len(self.buf))
                return ""
            yield

    def dangling(self, words: Marks) -> bool:
        """Whether the text ended inside one of `words`, or right here."""
        return self.eof and (self.pos >= len(self.buf) or self.buf[self.pos :] in words.prefixes)

    def ahead(self, words: Marks) -> Pull[str | None]:
        """Which of `words` comes after optional whitespace, without consuming anything.

        Returns:
            The word; None if the text ended before that was clear; the empty string if it is something else.
        """
        while True:
            found = _SPACES.match(self.buf, self.pos)
            at = found.end() if found else self.pos
            word = words.at(self.buf, at)
            if word and not (words.unfinished(self.buf, at) and not self.eof):
                return word
            if not words.unfinished(self.buf, at) or at - self.pos > _SPACES_AHEAD:
                return ""
            if self.eof:
                return None
            yield
