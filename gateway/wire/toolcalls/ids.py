"""Tool-call ids that follow from a seed: `call_` and 24 letters or digits, as OpenAI's look."""

from hashlib import blake2s
from typing import Final

_SIZE: Final = 12


class CallIds:
    """Makes ids for the calls of one answer.

    The same seed and the same text before a call give the same id, however the text was cut. Two answers of one
    conversation may hold the same call after the same words: whoever serves conversations gives each answer a seed of
    its own, for instance the answer's id.
    """

    __slots__ = ("_digest", "_made")

    def __init__(self, seed: str = "") -> None:
        self._digest = blake2s(seed.encode("utf-8", "replace"), digest_size=_SIZE)
        self._made = 0

    def note(self, text: str) -> None:
        """Takes account of text that was given out."""
        self._digest.update(text.encode("utf-8", "replace"))

    def __call__(self) -> str:
        """The next id."""
        digest = self._digest.copy()
        digest.update(b"\0%d" % self._made)
        self._made += 1
        return f"call_{digest.hexdigest()}"
