"""The ``x-ratelimit-…`` lines of an answer, as OpenAI's API sends them."""

from collections.abc import Sequence
from typing import Final

from gateway.balance.limits.account import A_MICROSECOND, Account, standing
from gateway.balance.limits.terms import Standing

_REQUESTS: Final = (
    b"x-ratelimit-limit-requests: %d\r\nx-ratelimit-remaining-requests: %d\r\nx-ratelimit-reset-requests: %b\r\n"
)
_TOKENS: Final = b"x-ratelimit-limit-tokens: %d\r\nx-ratelimit-remaining-tokens: %d\r\nx-ratelimit-reset-tokens: %b\r\n"
_BOTH: Final = _REQUESTS + _TOKENS


def ratelimit_lines(left: Standing) -> bytes:
    """The lines for the rates that are limited."""
    rpm, tpm = left.rpm, left.tpm
    if rpm is not None and tpm is not None:
        return _BOTH % (
            rpm,
            left.requests_left,
            duration(left.requests_reset),
            tpm,
            left.tokens_left,
            duration(left.tokens_reset),
        )
    if rpm is not None:
        return _REQUESTS % (rpm, left.requests_left, duration(left.requests_reset))
    if tpm is not None:
        return _TOKENS % (tpm, left.tokens_left, duration(left.tokens_reset))
    return b""


def lines_of(accounts: Sequence[Account], now: float) -> bytes:
    """The lines for what is left of these accounts; b"" where no rate is limited."""
    if len(accounts) == 1:
        (account,) = accounts
        if account.request_time and account.token_time:
            requests, tokens = max(account.requests_until - now, 0.0), max(account.tokens_until - now, 0.0)
            return _BOTH % (
                account.terms.rpm,
                max((account.request_depth - requests + A_MICROSECOND) / account.request_time, 0.0),
                duration(requests),
                account.terms.tpm,
                max((account.token_depth - tokens + A_MICROSECOND) / account.token_time, 0.0),
                duration(tokens),
            )
    left = standing(accounts, now)
    return b"" if left is None else ratelimit_lines(left)


def duration(seconds: float) -> bytes:
    """As OpenAI writes it: ``20ms``, ``8.64s``, ``6m0s``."""
    if seconds < 1:
        return b"%dms" % (seconds * 1000)
    if seconds < 59.995:
        return b"%.4gs" % seconds
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return b"%dm%ds" % (minutes, rest)
    return b"%dh%dm%ds" % (*divmod(minutes, 60), rest)
