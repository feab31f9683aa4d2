"""The limits in force: which accounts a request is charged to, whether it may pass, and what it has used in the end.

In one process the answer is there at once. With Redis it comes later (`Shared`), to the request that waits for it.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final, Protocol, TypeAlias

import msgspec

from gateway.balance.limits.account import Account, admit, why_not
from gateway.balance.limits.terms import BUDGETS, MINUTE, Dimension, Refusal, Standing, Terms
from gateway.balance.limits.windows import Today, today
from gateway.errors import ApiError, TooManyRequests
from gateway.metrics import Meters
from gateway.proxy.ratelimit import lines_of, ratelimit_lines
from gateway.settings.keys import LimitSet
from gateway.settings.tree import Settings
from gateway.usage import Spent, UsageRow
from gateway.wire.estimate import total_tokens
from gateway.wire.openai import Call

EVERYBODY: Final = "all callers"
OVERALL: Final = "this gateway"
NOTHING: Final = LimitSet()
LOOK_EVERY: Final = 3600.0
"""Seconds between two looks at the clock on the wall, which may be put right at any time; and at the end of a day."""
PARALLEL_AGAIN: Final = 1.0
"""Seconds named in ``retry-after`` when too many requests run at once: nobody knows when one of them ends."""

_WHAT: Final[Mapping[Dimension, str]] = {
    "requests": "requests per minute",
    "tokens": "tokens per minute",
    "parallel": "requests at once",
    "day": "tokens per day",
    "month": "tokens per month",
}


class Answer(msgspec.Struct, gc=False):
    """What shared accounts say to a request: what is left, and why it may not pass if it may not."""

    left: Standing | None
    refusal: Refusal | None


Heard: TypeAlias = Callable[[Answer | None], None]
"""Gets an answer, or None when none will come."""


@dataclass(slots=True, eq=False)
class Group:
    """The accounts of one key's requests for one model. ``most``: the largest reservation that can pass in all."""

    limiter: "Limiter"
    row: UsageRow
    key: str
    model: str
    accounts: tuple[Account, ...]
    counts_tokens: bool
    most: float

    def turn_to(self, day: str) -> UsageRow:
        """The usage of another day."""
        self.row = self.limiter.usage.row(day, self.key, self.model)
        return self.row


class Waiter(Protocol):
    """A request that waits to hear whether it may pass."""

    def admitted(self, permit: "Permit") -> None:
        """It may."""

    def refused(self, error: ApiError) -> None:
        """It may not."""


class Shared(Protocol):
    """Accounts that several processes share."""

    def ask(self, group: Group, tokens: int, heard: Heard) -> bool:
        """Asks whether a request may pass; ``heard`` gets the answer soon. Who passes is counted as running already.

        False: the shared accounts are away.
        """

    def settle(self, group: Group, tokens: int, day: int, month: int) -> None:
        """One of the group's requests has ended, having used so many tokens more than it had reserved."""

    def used(self, day: str, group: Group, cost: Spent) -> None:
        """What one of the group's requests has cost."""

    @property
    def closed(self) -> bool:
        """Whether nothing that is limited may pass while they are away."""


class Permit(msgspec.Struct, eq=False):
    """A request that was let pass; it has to be ended once. ``lines`` are for the head of its answer."""

    group: Group
    tokens: int
    when: Today
    lines: bytes
    shared: Shared | None

    def end(self, cost: Spent, now: float) -> None:
        """Settles: gives back what was reserved and not used, or charges the rest. ``now``: the loop's time."""
        group, when = self.group, self.when
        used = cost.prompt + cost.answer
        more = used - self.tokens if group.counts_tokens else 0
        accounts = group.accounts
        for account in accounts:
            account.running -= 1
        if self.shared is not None:
            self.shared.settle(group, more, when.day, when.month)
        elif more:
            for account in accounts:
                account.correct(more, now, when.day, when.month)
        row = group.row
        if row.day != when.date:
            row = group.turn_to(when.date)
        row.requests += 1
        if used:
            row.prompt_tokens += cost.prompt
            row.answer_tokens += cost.answer
            row.estimated += cost.estimated
        if group.limiter.shared is not None:
            group.limiter.shared.used(when.date, group, cost)


class Limiter:
    """All accounts of a configuration. ``clock`` gives Unix seconds."""

    __slots__ = (
        "_accounts",
        "_clock",
        "_groups",
        "_look_again",
        "_meters",
        "_settings",
        "_share",
        "_today",
        "shared",
        "usage",
    )

    def __init__(
        self, settings: Settings, meters: Meters, clock: Callable[[], float], before: "Limiter | None" = None
    ) -> None:
        """Goes on with the accounts of the limiter ``before``, what they owe included."""
        self._settings = settings
        self._meters = meters
        self.usage = meters.usage
        self._clock = clock
        self._today = today(clock())
        self._look_again = -inf
        self._groups: dict[tuple[str, str], Group] = {}
        self._accounts: dict[str, Account] = {} if before is None else before._accounts  # noqa: SLF001 - its own kind
        self.shared: Shared | None = None if before is None else before.shared
        self._share = settings.server.workers if settings.state.redis is None else 1

    def admit(self, waiter: Waiter, key: str, model: str, call: Call, now: float) -> Permit | None:
        """Lets a request pass, or None: the waiter hears later. ``now``: the loop's time; ``key`` "" without keys.

        Raises:
            RateLimited: it may not pass now, or its budget is used up.
            LimitsUnavailable: nobody knows, and that is reason enough.
        """
        group = self._groups.get((key, model)) or self._make_group(key, model, now)
        if now >= self._look_again:
            self._look_at_calendar(now)
        tokens = int(min(total_tokens(call), group.most)) if group.counts_tokens else 0
        shared = self.shared
        if shared is not None and group.accounts:
            if shared.ask(group, tokens, lambda answer: self._heard(waiter, group, tokens, answer, now)):
                return None
            if shared.closed:
                raise self._unavailable()
        return self._decide(group, tokens, now)

    def _look_at_calendar(self, now: float) -> None:
        clock = self._clock()
        self._today = today(clock)
        self._look_again = now + min(self._today.day_ends - clock, LOOK_EVERY)

    def _decide(self, group: Group, tokens: int, now: float) -> Permit:
        accounts = group.accounts
        if not accounts:
            return Permit(group, 0, self._today, b"", None)
        passes = admit(accounts, tokens, now, self._today)
        lines = lines_of(accounts, now)
        if not passes:
            raise self._limited(why_not(accounts, tokens, now, self._today, self._clock()), lines)
        return Permit(group, tokens, self._today, lines, None)

    def _heard(self, waiter: Waiter, group: Group, tokens: int, answer: Answer | None, now: float) -> None:
        """The shared accounts have answered, or will not."""
        shared = self.shared
        try:
            if answer is None:
                if shared is not None and shared.closed:
                    raise self._unavailable()
                permit = self._decide(group, tokens, now)
            else:
                lines = b"" if answer.left is None else ratelimit_lines(answer.left)
                if answer.refusal is not None:
                    raise self._limited(answer.refusal, lines)
                permit = Permit(group, tokens, self._today, lines, shared)
        except ApiError as error:
            waiter.refused(error)
        else:
            waiter.admitted(permit)

    # ---- accounts

    def _make_group(self, key: str, model: str, now: float) -> Group:
        settings = self._settings
        named = next((one for one in settings.keys if one.name == key), None)
        sets = (
            (f"key '{key}'" if key else EVERYBODY, _terms(named.limits if named else NOTHING, settings.limits)),
            (f"model '{model}'", _terms(settings.models[model].limits)),
            (OVERALL, _terms(settings.limits.overall)),
        )
        accounts = tuple(self._account(name, terms, now) for name, terms in sets if terms.limited)
        most = min((account.terms.most_tokens for account in accounts), default=inf)
        counts = any(account.terms.tpm is not None or account.budgeted for account in accounts)
        row = self.usage.row(self._today.date, key, model)
        group = self._groups[key, model] = Group(self, row, key, model, accounts, counts, most)
        return group

    def _account(self, name: str, terms: Terms, now: float) -> Account:
        terms = terms.divided(self._share) if self._share > 1 else terms
        account = self._accounts.get(name)
        if account is None:
            account = self._accounts[name] = Account(name, terms)
        elif account.terms != terms:
            account.agree(terms, now)
        return account

    @property
    def accounts(self) -> Iterable[Account]:
        """All that requests have been charged to."""
        return self._accounts.values()

    def forget(self) -> None:
        """Starts afresh: what was counted while nobody shared it is not what counts from now on."""
        for account in self._accounts.values():
            account.forget()

    # ---- refusals

    def _limited(self, refusal: Refusal, lines: bytes) -> "RateLimited":
        self._meters.happened("limited", refusal.account, refusal.dimension)
        return RateLimited(refusal, lines)

    def _unavailable(self) -> "LimitsUnavailable":
        self._meters.happened("limited", OVERALL, "unavailable")
        return LimitsUnavailable(
            "The limits cannot be checked now. Please try again later.", retry_after=1.0, should_retry=True
        )


class RateLimited(TooManyRequests):
    """A caller has asked for more than it may."""

    def __init__(self, refusal: Refusal, lines: bytes) -> None:
        what, spent = _WHAT[refusal.dimension], refusal.dimension in BUDGETS
        wait = refusal.wait or PARALLEL_AGAIN
        if spent:
            message = f"The budget of {refusal.account} is used up: {refusal.limit:.0f} {what}."
        else:
            message = (
                f"Rate limit reached for {refusal.account} on {what}: limit {refusal.limit:g}. "
                f"Please try again in {wait:.3g}s."
            )
        super().__init__(
            message,
            code="insufficient_quota" if spent else None,
            retry_after=math.ceil(wait),
            should_retry=not spent,
        )
        self.lines = b"%sretry-after-ms: %d\r\n" % (lines, math.ceil(wait * 1000))


class LimitsUnavailable(ApiError):
    """The shared counts are away, and the configuration says that nothing may pass without them."""

    status = 503
    code = "limits_unavailable"


def _terms(own: LimitSet, otherwise: LimitSet = NOTHING) -> Terms:
    """The terms of a limit set, with those of another one where it says nothing."""

    def chosen(name: str) -> float | None:
        value: float | None = getattr(own, name)
        return value if value is not None else getattr(otherwise, name)

    parallel, day, month = chosen("parallel"), chosen("tokens_per_day"), chosen("tokens_per_month")
    return Terms(
        chosen("rpm"),
        chosen("tpm"),
        None if parallel is None else int(parallel),
        None if day is None else int(day),
        None if month is None else int(month),
        chosen("burst") or MINUTE,
    )


def is_limited(settings: Settings) -> bool:
    """Whether the configuration limits anybody."""
    sets = (settings.limits, settings.limits.overall)
    models = (model.limits for model in settings.models.values())
    return any(_terms(one).limited for one in (*sets, *models, *(key.limits for key in settings.keys)))
