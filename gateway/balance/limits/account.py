"""The counts of one account in one process, and the decision over several accounts.

Invariants:
- A request is charged to all of its accounts or to none.
- `running` is the number of requests that were admitted and have not ended; it never passes `parallel`.
- A request passes while anything is left of a budget, and what it reserves counts as used until it is settled: so a
  budget is passed by less than one request, and no request is refused for what it might use.
- What is owed for a rate never passes its depth by an admission (a settlement may let it, by what was not foreseen).
"""

from collections.abc import Sequence
from math import inf
from typing import Final

from gateway.balance.limits.terms import Dimension, Refusal, Standing, Terms
from gateway.balance.limits.windows import Today

A_MICROSECOND: Final = 1e-6
"""Times are sums of fractions; a refusal for less than this would be one for rounding."""


class Account:
    """What one key, one model, or everybody uses. `requests_until`, `tokens_until`: when nothing is owed any more.

    Where there is no limit, its unit costs no time and its depth is infinite: one rule for all, without cases.
    """

    __slots__ = (
        "budgeted",
        "day",
        "day_used",
        "month",
        "month_used",
        "name",
        "parallel",
        "request_depth",
        "request_most",
        "request_time",
        "requests_until",
        "running",
        "terms",
        "token_depth",
        "token_most",
        "token_time",
        "tokens_until",
    )

    def __init__(self, name: str, terms: Terms) -> None:
        self.name = name
        self.running = 0
        self.requests_until = self.tokens_until = -inf
        self.day = self.month = -1
        self.day_used = self.month_used = 0
        self._set(terms)

    def agree(self, terms: Terms, now: float) -> None:
        """Goes on under other terms. As many requests and tokens stay owed as before, at their new price."""
        requests, tokens = self.requests_until - now, self.tokens_until - now
        before_request, before_token = self.request_time, self.token_time
        self._set(terms)
        if requests > 0 and before_request:
            self.requests_until = now + requests / before_request * self.request_time
        if tokens > 0 and before_token:
            self.tokens_until = now + tokens / before_token * self.token_time

    def _set(self, terms: Terms) -> None:
        self.terms = terms
        self.request_time, self.request_depth = terms.request_time, terms.request_depth
        self.token_time, self.token_depth = terms.token_time, terms.token_depth
        self.request_most = self.request_depth + A_MICROSECOND
        self.token_most = self.token_depth + A_MICROSECOND
        self.parallel = inf if terms.parallel is None else terms.parallel
        self.budgeted = terms.day is not None or terms.month is not None

    def forget(self) -> None:
        """Starts afresh, but for what runs."""
        self.requests_until = self.tokens_until = -inf
        self.day_used = self.month_used = 0

    def refuses(self, tokens: int, now: float, today: Today) -> bool:
        """Whether a request of so many tokens may not pass now."""
        until = self._with_one_more(tokens, now)
        return (
            until[0] - now > self.request_most
            or until[1] - now > self.token_most
            or self.running >= self.parallel
            or (self.budgeted and self._over_budget(today))
        )

    def _with_one_more(self, tokens: int, now: float) -> tuple[float, float]:
        """What `requests_until` and `tokens_until` become by a request."""
        return (
            max(now, self.requests_until) + self.request_time,
            max(now, self.tokens_until) + tokens * self.token_time,
        )

    def take(self, tokens: int, now: float, today: Today) -> bool:
        """`refuses` and `charge` in one, for a request that has no other account, as most have.

        In figures it is the same; a call of a function or of `max` costs as much as all of the arithmetic.
        """
        until = self.requests_until
        requests_until = (until if until > now else now) + self.request_time  # noqa: FURB136 - see above
        until = self.tokens_until
        tokens_until = (until if until > now else now) + tokens * self.token_time  # noqa: FURB136
        if (
            requests_until - now > self.request_most
            or tokens_until - now > self.token_most
            or self.running >= self.parallel
            or (self.budgeted and self._over_budget(today))
        ):
            return False
        self.running += 1
        self.requests_until = requests_until
        self.tokens_until = tokens_until
        if self.budgeted:
            self._reserve(tokens, today)
        return True

    def _over_budget(self, today: Today) -> bool:
        day, month = self.terms.day, self.terms.month
        if day is not None and self.used_on(today) >= day:
            return True
        return month is not None and self.used_in_month(today) >= month

    def why(self, tokens: int, now: float, today: Today, clock: float) -> list[Refusal]:
        """Every limit that is in the way. ``clock``: Unix seconds."""
        terms, found = self.terms, list[Refusal]()

        def add(dimension: Dimension, limit: float, wait: float) -> None:
            found.append(Refusal(self.name, dimension, limit, wait))

        wait = max(self.requests_until - now, 0.0) + self.request_time - self.request_depth
        if terms.rpm is not None and wait > A_MICROSECOND:
            add("requests", terms.rpm, wait)
        wait = max(self.tokens_until - now, 0.0) + tokens * self.token_time - self.token_depth
        if terms.tpm is not None and wait > A_MICROSECOND:
            add("tokens", terms.tpm, wait)
        if self.running >= self.parallel:
            add("parallel", self.parallel, 0.0)
        if terms.day is not None and self.used_on(today) >= terms.day:
            add("day", terms.day, today.day_ends - clock)
        if terms.month is not None and self.used_in_month(today) >= terms.month:
            add("month", terms.month, today.month_ends - clock)
        return found

    def used_on(self, today: Today) -> int:
        """Tokens used and reserved of the day's budget."""
        return self.day_used if self.day == today.day else 0

    def used_in_month(self, today: Today) -> int:
        """Tokens used and reserved of the month's budget."""
        return self.month_used if self.month == today.month else 0

    def charge(self, tokens: int, now: float, today: Today) -> None:
        """Counts an admitted request in."""
        self.running += 1
        self.requests_until, self.tokens_until = self._with_one_more(tokens, now)
        if self.budgeted:
            self._reserve(tokens, today)

    def _reserve(self, tokens: int, today: Today) -> None:
        self.day_used = self.used_on(today) + tokens
        self.month_used = self.used_in_month(today) + tokens
        self.day, self.month = today.day, today.month

    def settle(self, tokens: int, now: float, when: Today) -> None:
        """Ends a request: adds what it used beyond its reservation of that day, or gives back the rest (negative)."""
        self.running -= 1
        if not tokens:
            return
        until = self.tokens_until
        if tokens > 0 and until < now:
            until = now
        self.tokens_until = until + tokens * self.token_time
        if self.day == when.day:
            self.day_used = max(0, self.day_used + tokens)
        if self.month == when.month:
            self.month_used = max(0, self.month_used + tokens)


def admit(accounts: Sequence[Account], tokens: int, now: float, today: Today) -> bool:
    """Charges a request to all accounts if it may pass, else to none. ``now``: any clock's seconds."""
    if len(accounts) == 1:
        return accounts[0].take(tokens, now, today)
    for account in accounts:
        if account.refuses(tokens, now, today):
            return False
    for account in accounts:
        account.charge(tokens, now, today)
    return True


def why_not(accounts: Sequence[Account], tokens: int, now: float, today: Today, clock: float) -> Refusal:
    """Why a request was refused: the limit that will be in the way for the longest.

    ``clock``: Unix seconds, for the ends of days.
    """
    reasons = [reason for one in accounts for reason in one.why(tokens, now, today, clock)]
    return max(reasons, key=lambda reason: reason.wait)


def standing(accounts: Sequence[Account], now: float) -> Standing | None:
    """What is left; None if no account has a rate."""
    by_requests = by_tokens = None
    requests_left = tokens_left = inf
    for account in accounts:
        terms = account.terms
        if terms.rpm is not None:
            left = (account.request_most - max(account.requests_until - now, 0.0)) / account.request_time
            if left < requests_left:
                requests_left, by_requests = left, account
        if terms.tpm is not None:
            left = (account.token_most - max(account.tokens_until - now, 0.0)) / account.token_time
            if left < tokens_left:
                tokens_left, by_tokens = left, account
    if by_requests is None and by_tokens is None:
        return None
    return Standing(
        None if by_requests is None else by_requests.terms.rpm,
        0 if by_requests is None else max(0, int(requests_left)),
        0.0 if by_requests is None else max(0.0, by_requests.requests_until - now),
        None if by_tokens is None else by_tokens.terms.tpm,
        0 if by_tokens is None else max(0, int(tokens_left)),
        0.0 if by_tokens is None else max(0.0, by_tokens.tokens_until - now),
    )
