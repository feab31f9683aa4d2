"""Compressed bytes become plain ones wherever they are cut."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.inflate import InflateError, Inflater
from tests.support.scripted import gzipped
from tests.unit.gateway.wire.strategies import cuts


@given(st.data(), st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=4))
def test_a_flush_per_event_is_no_end(data: st.DataObject, parts: list[bytes]) -> None:
    inflater = Inflater(b"gzip")
    packed = b"".join(gzipped(*parts))

    assert b"".join(inflater.feed(part) for part in data.draw(cuts(packed))) == b"".join(parts)


@given(st.data(), st.lists(st.binary(max_size=40), min_size=1, max_size=4))
def test_a_member_per_event(data: st.DataObject, parts: list[bytes]) -> None:
    inflater = Inflater(b"x-gzip")
    packed = b"".join(map(gzip.compress, parts))

    assert b"".join(inflater.feed(part) for part in data.draw(cuts(packed))) == b"".join(parts)


def test_deflate() -> None:
    assert Inflater(b"deflate").feed(zlib.compress(b"hello")) == b"hello"


def test_each_flushed_event_is_there_at_once() -> None:
    inflater = Inflater(b"gzip")

    assert [inflater.feed(part) for part in gzipped(b"one", b"two")] == [b"one", b"two"]


@pytest.mark.parametrize("coding", [b"br", b"zstd", b"", b"gzip, gzip"])
def test_other_codings_are_refused(coding: bytes) -> None:
    with pytest.raises(InflateError):
        Inflater(coding)


@pytest.mark.parametrize("junk", [b"hello", b"\x1f\x8b\x09" + b"x" * 20, gzip.compress(b"a")[:-8] + b"12345678"])
def test_junk_is_refused(junk: bytes) -> None:
    inflater = Inflater(b"gzip")
    with pytest.raises(InflateError):
        inflater.feed(junk)
