"""What each key has used of each model on each day, as plain numbers."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

KEPT_DAYS: Final = 62
"""Days that are remembered; two months, so that the last one is there as a whole."""


class Spent(msgspec.Struct, gc=False):
    """Tokens of prompts and answers. ``estimated``: the engine did not say, or did not come to saying it."""

    prompt: int = 0
    answer: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        """All of them."""
        return self.prompt + self.answer

    def add(self, other: "Spent") -> None:
        """Takes in what another part of the same request has cost."""
        self.prompt += other.prompt
        self.answer += other.answer
        self.estimated = self.estimated or other.estimated


class UsageRow(msgspec.Struct, array_like=True):
    """The use of one model by one key on one day (UTC). ``key`` is "" where no keys are asked for.

    ``estimated`` is how many of the requests were counted by estimate, because the engine gave no count.
    """

    day: str
    key: str
    model: str
    requests: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    estimated: int = 0

    def add(self, other: "UsageRow") -> None:
        """Takes in more of the same."""
        self.requests += other.requests
        self.prompt_tokens += other.prompt_tokens
        self.answer_tokens += other.answer_tokens
        self.estimated += other.estimated


class UsageBook:
    """All rows, by day, key and model."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Iterable[UsageRow] = ()) -> None:
        self._rows: dict[tuple[str, str, str], UsageRow] = {}
        for row in rows:
            self.add(row)

    def __iter__(self) -> Iterator[UsageRow]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def count(self, day: str, key: str, model: str, prompt: int, answer: int, estimated: int) -> None:
        """One request more; ``estimated``: 1 if the engine did not count its tokens, else 0."""
        row = self.row(day, key, model)
        row.requests += 1
        row.prompt_tokens += prompt
        row.answer_tokens += answer
        row.estimated += estimated

    def row(self, day: str, key: str, model: str) -> UsageRow:
        """A row to count in."""
        return self._rows.get((day, key, model)) or self._open(day, key, model)

    def add(self, row: UsageRow) -> None:
        """Takes in what was counted elsewhere."""
        self.row(row.day, row.key, row.model).add(row)

    def take(self) -> list[UsageRow]:
        """All rows; the book is empty afterwards."""
        rows, self._rows = list(self._rows.values()), {}
        return rows

    def sorted(self, since: str = "", until: str = "~") -> list[UsageRow]:
        """The rows of these days, both included, in the order of days, keys and models."""
        found = [self._rows[at] for at in sorted(self._rows) if since <= at[0] <= until]
        return [row for row in found if row.requests]

    def _open(self, day: str, key: str, model: str) -> UsageRow:
        row = self._rows[day, key, model] = UsageRow(day, key, model)
        days = sorted({at[0] for at in self._rows})
        for at in [at for at in self._rows if at[0] in days[:-KEPT_DAYS]]:
            del self._rows[at]
        return row
