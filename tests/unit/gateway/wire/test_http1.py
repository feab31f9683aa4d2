"""Heads of requests: what is refused by itself, beside the comparison with other servers."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.errors import ApiError
from gateway.wire.http1 import HeadMemo, parse_head


@pytest.mark.parametrize(
    ("version", "hosts", "taken"),
    [
        (b"1.1", [b"host: x"], True),
        (b"1.1", [b"HOST:x:8080"], True),
        (b"1.1", [b"host:"], True),
        (b"1.1", [], False),
        (b"1.1", [b"host: x", b"host: x"], False),
        (b"1.1", [b"host: x", b"Host: y"], False),
        (b"1.0", [], True),
        (b"1.0", [b"host: x"], True),
        (b"1.0", [b"host: x", b"host: y"], False),
    ],
)
def test_a_request_has_one_host_and_only_http_1_0_may_have_none(
    version: bytes, hosts: list[bytes], taken: bool
) -> None:
    block = b"\r\n".join([b"POST /v1/completions HTTP/" + version, *hosts, b"content-length: 2"])
    if taken:
        head = parse_head(block)
        assert [name for name, _ in head.headers] == [b"host"] * len(hosts)
    else:
        with pytest.raises(ApiError) as caught:
            parse_head(block)
        assert (caught.value.status, caught.value.code) == (400, "invalid_http")
        assert "host" in caught.value.message


LINES = st.lists(st.sampled_from([b"x-a: 1", b"x-b: 100%", b"x-c: %d", b"content-type: application/json"]), max_size=3)
LENGTHS = st.one_of(
    st.integers(0, 120).map(lambda number: b"%d" % number),
    st.sampled_from([b"-1", b"-12", b"+3", b"007", b"0003", b"", b" ", b"1e2", b"9" * 18, b"9" * 19, b"1_0"]),
)


@given(before=LINES, after=LINES, first=LENGTHS, second=LENGTHS, extra=st.integers(-40, 3), data=st.data())
@example(before=[], after=[], first=b"10", second=b"-1", extra=0, data=None)
def test_a_head_like_the_last_one_is_read_as_if_it_were_the_first(
    before: list[bytes], after: list[bytes], first: bytes, second: bytes, extra: int, data: st.DataObject | None
) -> None:
    """Whatever a memo takes for granted of the next bytes, the full reading of them says the same."""

    def head(length: bytes) -> bytes:
        return b"\r\n".join([b"POST /v1/chat HTTP/1.1", b"host: x", *before, b"content-length: " + length, *after])

    try:
        memo = HeadMemo.of(head(first), parse_head(head(first)))
    except ApiError:
        return
    assert memo is not None
    size = (int(second) if second.isdigit() and len(second) < 4 else 2) + extra
    message = head(second) + b"\r\n\r\n" + b"b" * max(0, size)
    if data is not None and data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(message)))
        message = message[:at] + data.draw(st.sampled_from([b"", b"\r\n", b"x", b"%"])) + message[at + 1 :]
    for _ in range(2):  # what the first look has taught must not mislead the second one
        body, like = memo.body(message), memo.like(message)
        if like is not None:
            start, length = like
            assert message[start - 4 : start] == b"\r\n\r\n"
            assert parse_head(message[: start - 4]).length == length
        assert body == (message[like[0] :] if like is not None and sum(like) == len(message) else None)


@pytest.mark.parametrize("length", [b"-1", b"-12", b"+1", b"1e1", b" 1"])
@pytest.mark.parametrize("digits", [1, 2, 3, 4])
def test_a_length_that_is_no_number_is_never_foretold(length: bytes, digits: int) -> None:
    """A head is foretold with as many digits as the last one had; bytes that are too few must not make it negative."""
    head = b"POST /v1/chat HTTP/1.1\r\nhost: x\r\ncontent-length: %s"
    good = head % (b"9" * digits)
    memo = HeadMemo.of(good, parse_head(good))
    assert memo is not None
    assert memo.body(good + b"\r\n\r\n" + b"b" * int(b"9" * digits)) is not None

    for size in range(12):
        message = head % length + b"\r\n\r\n" + b"b" * size
        assert memo.body(message) is None
        assert memo.like(message) is None
