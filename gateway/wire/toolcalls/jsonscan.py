"""An incremental JSON reader that passes text through unchanged and knows where the value ends.

It decodes nothing: valid text comes out byte for byte. What models get wrong is repaired on the way, and counted: raw
control characters inside strings, bad escapes, single quotes, trailing commas, Python's `True False None`.
"""

import re
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

_PLAIN: Final = {'"': re.compile(r'[^"\\\x00-\x1f]+'), "'": re.compile(r"[^\"'\\\x00-\x1f]+")}
_SPACE: Final = re.compile(r"[ \t\r\n]+")
_TOKEN: Final = re.compile(r"[-+.0-9A-Za-z_]+")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORDS: Final = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}
_CONTROL: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_MAX_TOKEN: Final = 4096
_MAX_DEPTH: Final = 500
_MAX_HELD_SPACE: Final = 64


class _At(Enum):
    VALUE = auto()
    FIRST_VALUE = auto()
    KEY = auto()
    FIRST_KEY = auto()
    COLON = auto()
    NEXT = auto()
    STRING = auto()
    ESCAPE = auto()
    UNICODE = auto()
    TOKEN = auto()


class JsonScanner:
    """Reads one JSON value.

    Args:
        emit: takes the text of the value, piece by piece.
        repaired: told the name of each repair.

    `done` is set at the end of the value, `bad` where the text stops being JSON; neither is ever unset.
    """

    __slots__ = (
        "_at",
        "_emit",
        "_hex",
        "_is_key",
        "_quote",
        "_repaired",
        "_stack",
        "_token",
        "_waiting",
        "bad",
        "done",
    )

    def __init__(self, emit: Callable[[str], None], repaired: Callable[[str], None]) -> None:
        self._emit = emit
        self._repaired = repaired
        self._at = _At.VALUE
        self._stack: list[str] = []
        self._quote = '"'
        self._is_key = False
        self._hex = ""
        self._token = ""
        self._waiting = ""
        self.done = False
        self.bad = False

    def feed(self, text: str, pos: int) -> int:
        """Reads from `pos` and returns where it stopped: the end of the text, of the value, or of what is JSON."""
        end = len(text)
        while pos < end and not self.done and not self.bad:
            match self._at:
                case _At.STRING:
                    pos = self._string(text, pos)
                case _At.ESCAPE:
                    pos = self._escape(text[pos], pos)
                case _At.UNICODE:
                    pos = self._unicode(text[pos], pos)
                case _At.TOKEN:
                    pos = self._word(text, pos)
                case _:
                    pos = self._between(text, pos)
        return pos

    def close(self) -> bool:
        """No more text comes: a number at the top level is complete now; what was held back goes out as it came.

        Returns:
            Whether the value is whole.
        """
        if self._at is _At.TOKEN and not self._stack and not self.bad:
            self._end_word()
        held = self._waiting + self._token + ("\\" if self._at is _At.ESCAPE else "")
        held += f"\\u{self._hex}" if self._at is _At.UNICODE else ""
        self._waiting = self._token = self._hex = ""
        if held:
            self._emit(held)
        return self.done

    def missing(self) -> str:
        """What would close the value if only brackets are missing; empty if something else is."""
        if self.done or self.bad or self._at is not _At.NEXT:
            return ""
        return "".join(reversed(self._stack))

    def _between(self, text: str, pos: int) -> int:
        if spaces := _SPACE.match(text, pos):
            if self._waiting and len(self._waiting) < _MAX_HELD_SPACE:
                self._waiting += spaces.group()
            elif self._waiting:
                self._release(spaces.group())
            elif self._stack:
                self._emit(spaces.group())
            return spaces.end()
        char = text[pos]
        if self._waiting and char not in "]}":
            self._release("")
        at = self._at
        if at is _At.NEXT:
            return self._next(char, pos)
        if at is _At.COLON:
            if char != ":":
                return self._fail(pos)
            self._emit(":")
            self._at = _At.VALUE
            return pos + 1
        if char in "]}":
            return self._early_close(char, pos)
        if at in (_At.KEY, _At.FIRST_KEY) and char not in "\"'":
            return self._fail(pos)
        return self._value(char, pos)

    def _release(self, more: str) -> None:
        """The comma that was held back (it might have been a trailing one) goes out."""
        self._emit(self._waiting + more)
        self._waiting = ""

    def _early_close(self, char: str, pos: int) -> int:
        """A closing bracket where a key or a value could stand: an empty container or a trailing comma."""
        if self._at in (_At.FIRST_KEY, _At.FIRST_VALUE):
            return self._pop(char, pos)
        if self._waiting and self._stack and char == self._stack[-1]:
            self._repaired("trailing_comma")
            after = self._waiting[1:]
            self._waiting = ""
            if after:
                self._emit(after)
            return self._pop(char, pos)
        return self._fail(pos)

    def _next(self, char: str, pos: int) -> int:
        if char == ",":
            self._waiting = ","
            self._at = _At.KEY if self._stack[-1] == "}" else _At.VALUE
            return pos + 1
        return self._pop(char, pos)

    def _pop(self, char: str, pos: int) -> int:
        if not self._stack or char != self._stack[-1]:
            return self._fail(pos)
        self._stack.pop()
        self._emit(char)
        self._after_value()
        return pos + 1

    def _value(self, char: str, pos: int) -> int:
        if char in "\"'":
            self._is_key = self._at in (_At.KEY, _At.FIRST_KEY)
            self._quote = char
            self._at = _At.STRING
            if char == "'":
                self._repaired("single_quotes")
            self._emit('"')
        elif char in "{[":
            if len(self._stack) >= _MAX_DEPTH:
                return self._fail(pos)
            self._stack.append("}" if char == "{" else "]")
            self._at = _At.FIRST_KEY if char == "{" else _At.FIRST_VALUE
            self._emit(char)
        elif _TOKEN.match(char):
            self._token = ""
            self._at = _At.TOKEN
            return pos
        else:
            return self._fail(pos)
        return pos + 1

    def _after_value(self) -> None:
        self._at = _At.NEXT
        if not self._stack:
            self.done = True

    def _fail(self, pos: int) -> int:
        self.bad = True
        return pos

    def _string(self, text: str, pos: int) -> int:
        if run := _PLAIN[self._quote].match(text, pos):
            self._emit(run.group())
            return run.end()
        char = text[pos]
        if char == self._quote:
            self._emit('"')
            if self._is_key:
                self._at = _At.COLON
            else:
                self._after_value()
        elif char == "\\":
            self._at = _At.ESCAPE
        elif char == '"':
            self._emit('\\"')
        else:
            self._repaired("raw_control_character")
            self._emit(_CONTROL.get(char, f"\\u{ord(char):04x}"))
        return pos + 1

    def _escape(self, char: str, pos: int) -> int:
        self._at = _At.STRING
        if char == "u":
            self._at = _At.UNICODE
            self._hex = ""
        elif char in '"\\/bfnrt':
            self._emit("\\" + char)
        else:
            self._repaired("bad_escape")
            if char == "'":
                self._emit("'")
            else:
                self._emit("\\\\")
                return pos
        return pos + 1

    def _unicode(self, char: str, pos: int) -> int:
        if char not in _HEX:
            self._repaired("bad_escape")
            self._emit("\\\\u" + self._hex)
            self._at = _At.STRING
            return pos
        self._hex += char
        if len(self._hex) == 4:
            self._emit("\\u" + self._hex)
            self._at = _At.STRING
        return pos + 1

    def _word(self, text: str, pos: int) -> int:
        if found := _TOKEN.match(text, pos):
            self._token += found.group()
            if len(self._token) > _MAX_TOKEN:
                return self._fail(pos)
            return found.end()
        self._end_word()
        return pos

    def _end_word(self) -> None:
        token = self._token
        if _NUMBER.fullmatch(token):
            self._emit(token)
        elif word := _WORDS.get(token):
            if word != token:
                self._repaired("python_literal")
            self._emit(word)
        else:
            self.bad = True
            return
        self._token = ""
        self._after_value()
