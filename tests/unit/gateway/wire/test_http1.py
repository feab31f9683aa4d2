"""Heads of requests: what is refused by itself, beside the comparison with other servers."""

import pytest

from gateway.errors import ApiError
from gateway.wire.http1 import parse_head


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
