"""One argument's text turned into JSON as it arrives."""

from collections.abc import Callable

from gateway.wire.toolcalls.jsontext import escaped
from gateway.wire.toolcalls.schema import Kinds, coerced


class Value:
    """One argument's value, turned into JSON as it arrives.

    Args:
        emit: takes the JSON text.
        kinds: the types it may have.
        trims: whether one newline at its end is markup.
        whole: it must be seen whole before its JSON can begin.
    """

    __slots__ = ("_emit", "_kinds", "_newline", "_parts", "_started", "_trims", "_whole", "at_line_start")

    def __init__(self, emit: Callable[[str], None], kinds: Kinds, *, trims: bool, whole: bool) -> None:
        self._emit = emit
        self._kinds = kinds
        self._trims = trims
        self._whole = whole
        self._newline = ""
        self._parts: list[str] = []
        self._started = False
        self.at_line_start = trims

    def write(self, text: str) -> None:
        """Adds text; a newline at its end is held back, it may be markup."""
        text = self._newline + text
        self._newline = ""
        self.at_line_start = text.endswith("\n")
        if text[-1:] in ("\r", "\n"):
            keep = 2 if text.endswith("\r\n") else 1
            text, self._newline = text[:-keep], text[-keep:]
        if text:
            self._add(text)

    def end(self, *, forgotten: bool = False) -> None:
        """The value is whole; `forgotten`: it lacks its closer, so a newline belongs to the next tag."""
        if not (self._trims or forgotten) or not self._newline.endswith("\n"):
            self._add(self._newline)
        if self._whole:
            self._emit(coerced("".join(self._parts), self._kinds))
        else:
            self._add("")
            self._emit('"')

    def cut(self) -> None:
        """The text ended inside the value: as much as there is."""
        text = "".join(self._parts).lstrip()
        if self._whole and text:
            plain = "{[-0123456789" if not self._kinds or "string" in self._kinds else "{[-0123456789tfn"
            self._emit(text if text[0] in plain else '"' + escaped(text))

    def _add(self, text: str) -> None:
        if self._whole:
            self._parts.append(text)
        else:
            self._emit(escaped(text) if self._started else '"' + escaped(text))
            self._started = True
