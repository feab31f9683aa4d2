"""Durations, sizes and counts as people write them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.settings.units import (
    COUNT_HELP,
    DURATION_HELP,
    SHARE_HELP,
    SIZE_HELP,
    parse_count,
    parse_duration,
    parse_share,
    parse_size,
)

SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

amounts = st.integers(min_value=0, max_value=10**9)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("10s", 10),
        ("15m", 900),
        ("1h", 3600),
        ("2d", 172_800),
        ("1h30m", 5400),
        ("1.5s", 1.5),
        ("7", 7),
    ],
)
def test_a_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@given(amount=amounts, unit=st.sampled_from(sorted(SECONDS)), blank=st.sampled_from(["", " "]))
def test_every_unit_of_time_scales_its_number(amount: int, unit: str, blank: str) -> None:
    assert parse_duration(f"{amount}{blank}{unit}") == pytest.approx(amount * SECONDS[unit])


@given(parts=st.lists(st.tuples(amounts, st.sampled_from(sorted(SECONDS))), min_size=1, max_size=4))
def test_a_duration_of_several_parts_is_their_sum(parts: list[tuple[int, str]]) -> None:
    text = "".join(f"{amount}{unit}" for amount, unit in parts)
    assert parse_duration(text) == pytest.approx(sum(amount * SECONDS[unit] for amount, unit in parts))


@given(seconds=st.floats(min_value=0, allow_nan=False, allow_infinity=False))
def test_a_bare_number_means_seconds(seconds: float) -> None:
    assert parse_duration(seconds) == seconds


@given(amount=amounts, unit=st.sampled_from(sorted(BYTES)), upper=st.booleans())
def test_every_unit_of_size_scales_its_number_in_either_case(amount: int, unit: str, upper: bool) -> None:
    text = f"{amount}{unit}"
    assert parse_size(text.upper() if upper else text.lower()) == amount * BYTES[unit]


@given(amount=amounts)
def test_a_bare_number_means_bytes(amount: int) -> None:
    assert parse_size(amount) == parse_size(str(amount)) == amount


@pytest.mark.parametrize(
    ("text", "count"), [("600", 600), ("200k", 200_000), ("1M", 1_000_000), ("1.5M", 1_500_000), ("0.001k", 1)]
)
def test_a_count_is_read_exactly(text: str, count: int) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize(
    "wrong",
    ["", "s", "10x", "-1s", "1s2", "1,5s", "\N{FULLWIDTH DIGIT ONE}0s", math.nan, math.inf, -1, True, None, [1]],
)
def test_what_is_no_duration_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="a duration such as 500ms"):
        parse_duration(wrong)


@pytest.mark.parametrize("wrong", ["", "MiB", "64 potatoes", "64m", "-1", "0.5B", "1.2345", 1.5, -1, False, None, {}])
def test_what_is_no_whole_number_of_bytes_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="a size such as 64MiB"):
        parse_size(wrong)


@pytest.mark.parametrize("wrong", ["k", "10ki", "1.0001k", -3, 2.5, True, None])
def test_what_is_no_count_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="a count such as 600"):
        parse_count(wrong)


@given(text=st.text(max_size=12))
def test_any_text_is_either_read_or_refused_without_being_quoted(text: str) -> None:
    """The rejected text never appears in the error: it could be a secret in the wrong place."""
    for parse in (parse_duration, parse_size, parse_count):
        try:
            outcome = f"{parse(text) >= 0}"
        except ValueError as error:
            outcome = str(error)
        assert outcome == "True" or outcome in (DURATION_HELP, SIZE_HELP, COUNT_HELP)


@pytest.mark.parametrize(("text", "share"), [("20%", 0.2), ("0.2", 0.2), (0.2, 0.2), (1, 1), ("100 %", 1), ("0%", 0)])
def test_a_share_is_a_part_of_the_whole(text: object, share: float) -> None:
    assert parse_share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["101%", "1.5", "-1%", "", "%", "a lot", True, None, [20]])
def test_what_is_no_share_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=SHARE_HELP):
        parse_share(text)
