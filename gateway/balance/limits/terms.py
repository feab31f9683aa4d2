"""What an account may use, and what a refusal says."""

from dataclasses import dataclass, replace
from math import inf
from typing import Final, Literal, TypeAlias

import msgspec

MINUTE: Final = 60.0

Dimension: TypeAlias = Literal["requests", "tokens", "parallel", "day", "month"]
"""What can run out: requests and tokens per minute, requests at once, tokens of a day and of a month."""

BUDGETS: Final[frozenset[Dimension]] = frozenset({"day", "month"})


@dataclass(frozen=True, slots=True)
class Terms:
    """The limits of one account; None: none. Rates are per minute; ``burst`` is in seconds' worth of them."""

    rpm: float | None = None
    tpm: float | None = None
    parallel: int | None = None
    day: int | None = None
    month: int | None = None
    burst: float = MINUTE

    @property
    def limited(self) -> bool:
        """Whether there is anything to count."""
        return any(limit is not None for limit in (self.rpm, self.tpm, self.parallel, self.day, self.month))

    @property
    def request_time(self) -> float:
        """Seconds that a request is worth; 0 without a limit."""
        return MINUTE / self.rpm if self.rpm is not None else 0.0

    @property
    def request_depth(self) -> float:
        """Seconds that may be owed for requests: the burst, but one request at least."""
        return max(self.burst, self.request_time) if self.rpm is not None else inf

    @property
    def token_time(self) -> float:
        """Seconds that a token is worth; 0 without a limit."""
        return MINUTE / self.tpm if self.tpm is not None else 0.0

    @property
    def token_depth(self) -> float:
        """Seconds that may be owed for tokens."""
        return max(self.burst, self.token_time) if self.tpm is not None else inf

    @property
    def most_tokens(self) -> float:
        """The largest reservation that can ever pass."""
        return self.token_depth // self.token_time if self.tpm is not None else inf

    def divided(self, among: int) -> "Terms":
        """The share of one of several processes that do not know of one another. No share of `parallel` is below 1."""
        return replace(
            self,
            rpm=None if self.rpm is None else self.rpm / among,
            tpm=None if self.tpm is None else self.tpm / among,
            parallel=None if self.parallel is None else max(1, self.parallel // among),
            day=None if self.day is None else self.day // among,
            month=None if self.month is None else self.month // among,
        )


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request may not pass: which limit of which account, and the seconds until it could.

    For requests at once nobody knows when one of them ends: ``wait`` is 0 there.
    """

    account: str
    dimension: Dimension
    limit: float
    wait: float


class Standing(msgspec.Struct, gc=False, array_like=True):
    """What is left after a request was admitted: of each rate the account with the least of it. None: not limited.

    ``reset`` is the seconds until all of it is there again.
    """

    rpm: float | None = None
    requests_left: int = 0
    requests_reset: float = 0.0
    tpm: float | None = None
    tokens_left: int = 0
    tokens_reset: float = 0.0
