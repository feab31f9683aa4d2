"""The ``x-ratelimit-…`` lines of an answer, as OpenAI's API sends them."""

from typing import Final

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
