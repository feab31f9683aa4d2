"""Clients lower limits, and can never raise one."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.outcome import Phase
from gateway.errors import InvalidRequest
from gateway.proxy.limits import READ_TIMEOUT, TIMEOUT, Bounds, Limits, read_bound

seconds = st.floats(0.001, 1e6)


@given(
    own=st.tuples(seconds, seconds, seconds),
    bounds=st.builds(Bounds, seconds, seconds),
    whole=st.booleans(),
    streamed=st.booleans(),
    beats=st.booleans(),
)
def test_no_limit_is_raised_and_who_lowered_it_is_known(
    own: tuple[float, float, float], bounds: Bounds, whole: bool, streamed: bool, beats: bool
) -> None:
    limits = Limits(*own, whole=whole)
    lowered = limits.lowered(bounds, streamed=streamed, beats=beats)
    for phase in (Phase.IDLE, Phase.TOTAL):
        assert lowered.of(phase) <= limits.of(phase)
        assert (phase in lowered.by_client) is (lowered.of(phase) < limits.of(phase))
    held = limits.first_token if whole or streamed else inf
    now_held = lowered.first_token if lowered.whole or streamed else inf
    assert now_held <= held
    assert (Phase.FIRST_TOKEN in lowered.by_client) is (now_held < held)


def test_signs_of_life_make_a_hint_about_silence_void() -> None:
    limits = Limits(60, 60, 900)

    assert limits.lowered(Bounds(silence=1), streamed=True, beats=True) == limits


def test_a_limit_that_cannot_be_read_is_said_to_be_so() -> None:
    bounds = read_bound(None, TIMEOUT, b"soon")
    assert bounds is not None
    with pytest.raises(InvalidRequest, match="x-turnout-timeout"):
        Limits(1, 1, 1).lowered(bounds, streamed=False, beats=False)


@given(st.binary(max_size=20))
def test_any_bytes_are_a_bound_or_none(value: bytes) -> None:
    bounds = read_bound(None, TIMEOUT, value)
    assert bounds is not None
    assert bounds.malformed or bounds.total > 0
    hint = read_bound(None, READ_TIMEOUT, value)
    assert hint is None or hint.silence > 0


def test_both_headers_count_together() -> None:
    bounds = read_bound(read_bound(None, READ_TIMEOUT, b"600"), TIMEOUT, b"1m30s")

    assert bounds == Bounds(total=90, silence=600)
