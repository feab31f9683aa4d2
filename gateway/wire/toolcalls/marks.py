"""Sets of literal markers, and where they begin in text that is still arriving."""

import re
from functools import lru_cache
from typing import Final


class Marks:
    """A set of literal markers, searched together; the longest wins where several begin at one place.

    Args:
        words: the markers. Empty ones are ignored.
    """

    __slots__ = ("_first", "_pattern", "longest", "prefixes", "words")

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words: Final = tuple(sorted({word for word in words if word}, key=lambda word: (-len(word), word)))
        self.longest: Final = len(self.words[0]) if self.words else 0
        self.prefixes: Final = frozenset(word[:end] for word in self.words for end in range(1, len(word)))
        never = r"(?!)"
        self._pattern: Final = re.compile("|".join(map(re.escape, self.words)) or never)
        firsts = "".join(sorted({word[0] for word in self.words}))
        self._first: Final = re.compile(f"[{re.escape(firsts)}]" if firsts else never)

    def may_begin_in(self, text: str) -> bool:
        """Whether any character of `text` could be the first of a marker."""
        return self._first.search(text) is not None

    def at(self, text: str, pos: int) -> str:
        """The longest marker that stands at `pos`, or the empty string."""
        found = self._pattern.match(text, pos)
        return found.group() if found else ""

    def unfinished(self, text: str, pos: int) -> bool:
        """Whether the text from `pos` to its end is the beginning of a marker, or empty."""
        return len(text) - pos < self.longest and (pos >= len(text) or text[pos:] in self.prefixes)

    def find(self, text: str, pos: int) -> tuple[int, str]:
        """The leftmost marker from `pos` on as (where, marker); (-1, "") if there is none."""
        found = self._pattern.search(text, pos)
        return (found.start(), found.group()) if found else (-1, "")

    def hold(self, text: str, pos: int) -> int:
        """Where the longest tail of `text` that may become a marker begins; the length of `text` if none does."""
        start = max(pos, len(text) - self.longest + 1)
        while found := self._first.search(text, start):
            start = found.start()
            if text[start:] in self.prefixes:
                return start
            start += 1
        return len(text)


@lru_cache(maxsize=512)
def marks(*words: str) -> Marks:
    """The set of these markers; equal arguments share one compiled set."""
    return Marks(words)
