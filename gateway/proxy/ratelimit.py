"""The ``x-ratelimit-…`` lines of an answer, as OpenAI's API sends them."""

from collections.abc import Sequence
from math import floor
from typing import Final

from gateway.balance.limits.account import Account, standing
from gateway.balance.limits.terms import Standing, Terms

_REQUESTS: Final = (
    b"x-ratelimit-limit-requests: %d\r\nx-ratelimit-remaining-requests: %d\r\nx-ratelimit-reset-requests: %b\r\n"
)
_TOKENS: Final = b"x-ratelimit-limit-tokens: %d\r\nx-ratelimit-remaining-tokens: %d\r\nx-ratelimit-reset-tokens: %b\r\n"

_LIMIT: Final = b"x-ratelimit-limit-%b: %d\r\nx-ratelimit-remaining-%b: %%d\r\nx-ratelimit-reset-%b: %%b\r\n"
_MILLISECONDS: Final = tuple(b"%dms" % count for count in range(1000))
"""Durations below a second, as most are while a limit is not near: to write one anew costs four times as much."""


def ratelimit_lines(left: Standing) -> bytes:
    """The lines for the rates that are limited."""
    lines = b""
    if left.rpm is not None:
        lines = _REQUESTS % (left.rpm, left.requests_left, duration(left.requests_reset))
    if left.tpm is not None:
        lines += _TOKENS % (left.tpm, left.tokens_left, duration(left.tokens_reset))
    return lines


def lines_of(accounts: Sequence[Account], now: float) -> bytes:
    """The lines for what is left of these accounts; b"" where no rate is limited."""
    left = standing(accounts, now)
    return b"" if left is None else ratelimit_lines(left)


def lines_to_fill(terms: Terms) -> bytes:
    """What stays the same in an account's lines, with places for what does not (`fill`)."""
    lines = b""
    if terms.rpm is not None:
        lines = _LIMIT % (b"requests", terms.rpm, b"requests", b"requests")
    if terms.tpm is not None:
        lines += _LIMIT % (b"tokens", terms.tpm, b"tokens", b"tokens")
    return lines


def fill(lines: bytes, account: Account, now: float) -> bytes:
    """`lines_of` the only account of a request that has just been charged to it. ``lines`` are its `lines_to_fill`."""
    request_time, token_time = account.request_time, account.token_time
    if request_time and token_time:
        requests, tokens = account.requests_until - now, account.tokens_until - now
        return lines % (
            floor((account.request_most - requests) / request_time),
            _MILLISECONDS[floor(requests * 1000.0)] if requests < 1.0 else duration(requests),
            floor((account.token_most - tokens) / token_time),
            _MILLISECONDS[floor(tokens * 1000.0)] if tokens < 1.0 else duration(tokens),
        )
    if request_time:
        requests = account.requests_until - now
        return lines % (floor((account.request_most - requests) / request_time), duration(requests))
    if token_time:
        tokens = account.tokens_until - now
        return lines % (floor((account.token_most - tokens) / token_time), duration(tokens))
    return b""


def duration(seconds: float) -> bytes:
    """As OpenAI writes it: ``20ms``, ``8.64s``, ``6m0s``."""
    if 0 <= seconds < 1:
        return _MILLISECONDS[floor(seconds * 1000)]
    if seconds < 59.995:
        return b"%.4gs" % seconds
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return b"%dm%ds" % (minutes, rest)
    return b"%dh%dm%ds" % (*divmod(minutes, 60), rest)
