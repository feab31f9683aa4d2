"""What a process sends to the script, and what comes back. Sans-I/O."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import floor
from typing import Final, TypeAlias

import msgspec

from gateway.balance.limits.account import Account
from gateway.balance.limits.terms import MINUTE, Dimension, Refusal, Standing
from gateway.balance.limits.windows import Today
from gateway.proxy.limiter import Answer, Group, Heard
from gateway.usage import UsageRow

DIMENSIONS: Final[Sequence[Dimension]] = ("requests", "tokens", "parallel", "day", "month")
"""As the script numbers them, from 1."""

_EPSILON: Final = 1e-6


class Deltas(msgspec.Struct):
    """What was used since the last batch, under the number of the batch that brought it first.

    The script takes it once. Until Redis has confirmed it, it is sent again as it is, and what comes later waits.
    """

    number: int
    settled: dict[tuple[str, int, int], int] = {}
    """Tokens beyond what was reserved, by account and the day and month of the reservation."""
    usage: list[UsageRow] = []


@dataclass(slots=True, eq=False)
class Asked:
    """A request that wants to pass."""

    group: Group
    tokens: int
    heard: Heard


@dataclass(slots=True)
class Batch:
    """One exchange."""

    me: str
    number: int
    lease: float
    when: Today
    asks: list[Asked]
    deltas: Deltas | None
    renewed: dict[str, Account]
    """Whose leases go on, or whose places have become free."""
    load: str = ""
    accounts: dict[str, tuple[int, Account]] = field(default_factory=dict)
    """With their numbers, from 1."""

    def encode(self, known: dict[str, Account]) -> bytes:
        """The script's argument. ``known``: all accounts by name."""
        for account in self.renewed.values():
            self._number(account)
        asks = [(one.tokens, *map(self._number, one.group.accounts)) for one in self.asks]
        deltas = [] if self.deltas is None else [self._told(self.deltas, known)]
        accounts = [self._account(account) for _, account in self.accounts.values()]
        return msgspec.msgpack.encode((self.me, self.number, self.lease, accounts, asks, deltas, self.load))

    def _number(self, account: Account) -> int:
        found = self.accounts.get(account.name)
        if found is None:
            found = self.accounts[account.name] = (len(self.accounts) + 1, account)
        return found[0]

    def _told(self, deltas: Deltas, known: dict[str, Account]) -> tuple[object, ...]:
        settled = [
            (self._number(known[name]), tokens, day, month)
            for (name, day, month), tokens in deltas.settled.items()
            if name in known
        ]
        return deltas.number, settled, deltas.usage

    def _account(self, account: Account) -> tuple[object, ...]:
        terms = account.terms
        rpm, tpm = terms.rpm or 0, terms.tpm or 0
        return (
            account.name,
            rpm,
            account.request_depth * rpm / MINUTE if rpm else 0,
            tpm,
            account.token_depth * tpm / MINUTE if tpm else 0,
            terms.parallel or 0,
            -1 if terms.day is None else terms.day,
            self.when.day,
            -1 if terms.month is None else terms.month,
            self.when.month,
            account.running,
        )

    def answers(self, found: Sequence["Said"], clock: float) -> list[Answer]:
        """What the script said to each request. ``clock``: Unix seconds."""
        names = list(self.accounts)
        return [
            Answer(_standing(left), self._refused(refusal, names, clock) if refusal else None)
            for left, refusal in found
        ]

    def _refused(self, found: Sequence[float], names: Sequence[str], clock: float) -> Refusal:
        account, dimension, limit, wait = found
        what = DIMENSIONS[int(dimension) - 1]
        ends = {"day": self.when.day_ends, "month": self.when.month_ends}
        return Refusal(names[int(account) - 1], what, limit, ends[what] - clock if what in ends else wait)


def _standing(left: Sequence[float]) -> Standing | None:
    rpm, requests_left, requests_reset, tpm, tokens_left, tokens_reset = left
    if rpm < 0 and tpm < 0:
        return None
    return Standing(
        None if rpm < 0 else rpm,
        max(0, floor(requests_left + _EPSILON)),
        requests_reset,
        None if tpm < 0 else tpm,
        max(0, floor(tokens_left + _EPSILON)),
        tokens_reset,
    )


Said: TypeAlias = tuple[list[float], list[float]]
"""What the script says to a request: its standing, and the refusal if it is one."""


class Reply(msgspec.Struct, array_like=True):
    """What comes back: an answer for each request, and what other processes know of endpoints."""

    answers: list[Said]
    loads: list[str]


decode_reply: Final = msgspec.msgpack.Decoder(Reply).decode
