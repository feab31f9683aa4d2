"""Which ids and values may be repeated in headers of ours, and what pages may read."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.cors import cors_lines
from gateway.wire.headers import clean_request_id, forwardable


@given(st.binary(max_size=200))
def test_a_clean_id_is_short_and_plain(value: bytes) -> None:
    clean = clean_request_id(value)

    assert clean in (None, value)
    assert (clean is not None) is (re.fullmatch(rb"[A-Za-z0-9._:/+=@-]{1,128}", value) is not None)


@pytest.mark.parametrize("value", [b"a\n", b"a\r\nx: y", b"", None, b"a" * 129, b"a b", "é".encode()])
def test_what_is_no_clean_id(value: bytes | None) -> None:
    assert clean_request_id(value) is None


@given(st.binary(max_size=40))
def test_a_value_that_goes_on_has_no_line_end_and_is_ascii(value: bytes) -> None:
    assert forwardable(value) is all(byte == 9 or 32 <= byte < 127 for byte in value)


@pytest.mark.parametrize(
    ("origin", "allowed", "told"),
    [
        (b"https://a.example", [b"https://a.example"], b"https://a.example"),
        (b"https://b.example", [b"https://a.example"], None),
        (b"https://b.example", [b"*"], b"*"),
        (b"https://a.example", [], None),
        (b"*", [b"https://a.example"], None),
        (b"null", [b"https://a.example"], None),
    ],
)
def test_origins(origin: bytes, allowed: list[bytes], told: bytes | None) -> None:
    lines = cors_lines(origin, allowed)

    if told is None:
        assert lines == b""
    else:
        assert lines.startswith(b"access-control-allow-origin: " + told + b"\r\n")
        assert lines.endswith(b"\r\n")
