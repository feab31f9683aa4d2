"""The limits in force: which accounts a request is charged to, whether it may pass, and what it has used in the end.

In one process the answer is there at once. With Redis it comes later (`Shared`), to the request that waits for it.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final, Protocol, TypeAlias

import msgspec

from gateway.balance.limits.account import Account, admit, why_not
from gateway.balance.limits.terms import BUDGETS, MINUTE, Dimension, Refusal, Standing, Terms
from gateway.balance.limits.windows import Today, today
from gateway.errors import ApiError, TooManyRequests
from gateway.metrics import Meters
from gateway.proxy.callers import Caller
from gateway.proxy.ratelimit import fill, lines_of, lines_to_fill, ratelimit_lines
from gateway.settings.keys import LimitSet
from gateway.settings.tree import Settings
from gateway.usage import UsageRow
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
    """The accounts of one key's requests for one model on one day. ``most``: the largest reservation that can pass."""

    limiter: "Limiter"
    when: Today
    row: UsageRow
    caller: Caller | None
    model: str
    accounts: tuple[Account, ...]
    counts_tokens: bool
    most: float
    only: Account | None = field(init=False)
    """The account, if there is one and no more."""
    lines: bytes = field(init=False)
    """What to `fill` for it."""
    free: "Permit | None" = field(init=False)
    """What every request gets, if there is no account."""

    def __post_init__(self) -> None:
        self.only = self.accounts[0] if len(self.accounts) == 1 else None
        self.lines = b"" if self.only is None else lines_to_fill(self.only.terms)
        self.free = None if self.accounts else Permit(self, 0, b"", None)


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

    def used(self, group: Group, prompt: int, answer: int, estimated: int) -> None:
        """What one of the group's requests has cost; see `Permit.end`."""

    @property
    def closed(self) -> bool:
        """Whether nothing that is limited may pass while they are away."""


class Permit(msgspec.Struct, eq=False):
    """Requests that were let pass: one, which has to be ended once; or where nothing is limited, all of a day.

    ``lines`` are for the head of an answer.
    """

    group: Group
    tokens: int
    lines: bytes
    shared: Shared | None

    def end(self, prompt: int, answer: int, estimated: int, now: float) -> None:
        """Settles: gives back what was reserved and not used, or charges the rest.

        ``estimated``: 1 if the engine did not count the tokens, else 0. ``now``: the loop's time.
        """
        group = self.group
        row = group.row
        row.requests += 1
        row.prompt_tokens += prompt
        row.answer_tokens += answer
        if estimated:
            row.estimated += estimated
        if group.accounts:
            more = prompt + answer - self.tokens if group.counts_tokens else 0
            if self.shared is None and group.only is not None:
                group.only.settle(more, now, group.when)
            else:
                self._settle(group, more, now)
        if group.limiter.shared is not None:
            group.limiter.shared.used(group, prompt, answer, estimated)

    def _settle(self, group: Group, more: int, now: float) -> None:
        if self.shared is None:
            for account in group.accounts:
                account.settle(more, now, group.when)
        else:
            for account in group.accounts:
                account.running -= 1
            self.shared.settle(group, more, group.when.day, group.when.month)


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
        self._groups: dict[tuple[Caller | None, str], Group] = {}
        self._accounts: dict[str, Account] = {} if before is None else before._accounts  # noqa: SLF001 - its own kind
        self.shared: Shared | None = None if before is None else before.shared
        self._share = settings.server.workers if settings.state.redis is None else 1

    def admit(self, waiter: Waiter, caller: Caller | None, model: str, call: Call, now: float) -> Permit | None:
        """Lets a request pass, or None: the waiter hears later. ``now``: the loop's time.

        Raises:
            RateLimited: it may not pass now, or its budget is used up.
            LimitsUnavailable: nobody knows, and that is reason enough.
        """
        if now >= self._look_again:
            self._look_at_calendar(now)
        group = self._groups.get((caller, model)) or self._make_group(caller, model, now)
        if group.free is not None:
            return group.free
        tokens = 0
        if group.counts_tokens:
            tokens = total_tokens(call)
            if tokens > group.most:
                tokens = int(group.most)
        shared, account = self.shared, group.only
        if shared is None:
            if account is not None and account.take(tokens, now, group.when):  # as most: no more is needed than this
                return Permit(group, tokens, fill(group.lines, account, now), None)
        elif self._asks(shared, waiter, group, tokens, now):
            return None
        elif shared.closed:
            raise self._unavailable()
        return self._decide(group, tokens, now)

    def _asks(self, shared: Shared, waiter: Waiter, group: Group, tokens: int, now: float) -> bool:
        return shared.ask(group, tokens, lambda answer: self._heard(waiter, group, tokens, answer, now))

    def _look_at_calendar(self, now: float) -> None:
        clock = self._clock()
        found = today(clock)
        self._look_again = now + min(found.day_ends - clock, LOOK_EVERY)
        if found != self._today:
            self._today = found
            self._groups.clear()

    def _decide(self, group: Group, tokens: int, now: float) -> Permit:
        accounts, when = group.accounts, group.when
        passes = admit(accounts, tokens, now, when)
        lines = lines_of(accounts, now)
        if not passes:
            raise self._limited(why_not(accounts, tokens, now, when, self._clock()), lines)
        return Permit(group, tokens, lines, None)

    def _heard(self, waiter: Waiter, asked: Group, tokens: int, answer: Answer | None, now: float) -> None:
        """The shared accounts have answered, or will not."""
        shared = self.shared
        try:
            group = self._groups.get((asked.caller, asked.model), asked)  # the day may have changed
            if answer is None:
                if shared is not None and shared.closed:
                    raise self._unavailable()
                permit = self._decide(group, tokens, now)
            else:
                lines = b"" if answer.left is None else ratelimit_lines(answer.left)
                if answer.refusal is not None:
                    raise self._limited(answer.refusal, lines)
                permit = Permit(group, tokens, lines, shared)
        except ApiError as error:
            waiter.refused(error)
        else:
            waiter.admitted(permit)

    # ---- accounts

    def _make_group(self, caller: Caller | None, model: str, now: float) -> Group:
        settings = self._settings
        key = "" if caller is None else caller.name
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
        group = self._groups[caller, model] = Group(self, self._today, row, caller, model, accounts, counts, most)
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
