"""The `x-ratelimit-…` lines, as OpenAI sends them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.limits.account import Account
from gateway.balance.limits.terms import Terms
from gateway.balance.limits.windows import today
from gateway.proxy.ratelimit import duration, fill, lines_of, lines_to_fill


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, b"0ms"),
        (0.0204, b"20ms"),
        (1.0, b"1s"),
        (8.64, b"8.64s"),
        (59.9999, b"1m0s"),
        (360, b"6m0s"),
        (7265, b"2h1m5s"),
    ],
)
def test_durations_are_written_as_there(seconds: float, text: bytes) -> None:
    assert duration(seconds) == text


@given(st.sampled_from([None, 5, 600]), st.sampled_from([None, 1_000, 200_000]), st.floats(0, 100), st.floats(0, 100))
def test_the_quick_way_says_what_the_thorough_one_says(
    rpm: int | None, tpm: int | None, requests: float, tokens: float
) -> None:
    account = Account("a", Terms(rpm=rpm, tpm=tpm))
    account.requests_until, account.tokens_until = 50.0 + requests, 50.0 + tokens
    if account.take(0, 80.0, today(0)):
        assert fill(lines_to_fill(account.terms), account, 80.0) == lines_of([account], 80.0)
