"""What may stand in `state.redis`: read whole with the file, so that no part of it fails later."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.settings.redis_url import RedisAddress, read_redis_url
from gateway.settings.values import RefusedValueError

H = (("h", 6379),)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("redis://h", RedisAddress("one", False, H)),
        ("redis://h:7/3", RedisAddress("one", False, (("h", 7),), db=3)),
        ("redis://h?db=3", RedisAddress("one", False, H, db=3)),
        ("redis://h/3?db=3", RedisAddress("one", False, H, db=3)),
        ("redis://u:p%40s@h/", RedisAddress("one", False, H, username="u", password="p@s")),
        ("redis://[::1]:7/0", RedisAddress("one", False, (("::1", 7),))),
        ("redis://h?socket_keepalive=no", RedisAddress("one", False, H, options={"socket_keepalive": False})),
        ("rediss://h?ssl_min_version=TLSv1.3", RedisAddress("one", True, H, options={"ssl_min_version": 0x0304})),
        ("rediss://h?ssl_ca_certs=/a%20b", RedisAddress("one", True, H, options={"ssl_ca_certs": "/a b"})),
        ("unix:///run/r.sock", RedisAddress("socket", False, path="/run/r.sock")),
        ("unix://localhost/run/r.sock", RedisAddress("socket", False, path="/run/r.sock")),
        ("unix://:pw@/run/r.sock?db=2", RedisAddress("socket", False, path="/run/r.sock", db=2, password="pw")),
        ("redis+sentinel://h,i:5/m", RedisAddress("sentinel", False, (("h", 26379), ("i", 5)), name="m")),
        ("rediss+sentinel://h/m/2", RedisAddress("sentinel", True, (("h", 26379),), name="m", db=2)),
        ("redis+cluster://h,i/0", RedisAddress("cluster", False, (*H, ("i", 6379)))),
    ],
)
def test_a_url_is_read_whole(text: str, found: RedisAddress) -> None:
    assert read_redis_url(text) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("http://SECRET@h", "expected a URL that begins with redis, rediss, unix, redis+sentinel,"),
        (
            "redis://h?foo=SECRET",
            "the option foo cannot be used here; expected one of db, client_name",
        ),
        (
            "redis://h?ssl_ca_certs=SECRET",
            "the option ssl_ca_certs cannot be used here (it needs TLS: rediss://); expected",
        ),
        ("redis://h?decode_responses=true", "the option decode_responses cannot"),
        ("redis://h?socket_timeout=abc", "the option socket_timeout cannot"),
        (
            "redis://h?password=SECRET",
            "the option password cannot be used here (it stands before",
        ),
        ("rediss://h?ssl_ca_certs=", "expected a value for the option ssl_ca_certs"),
        ("rediss://h?ssl_min_version=x", "expected one of 1.2, 1.3 for the option ssl_min_version"),
        ("rediss://h?ssl_cert_reqs=CERT_NONE", "expected one of required, optional, none for"),
        ("rediss://h?ssl_check_hostname=x", "expected one of true, yes, on, 1, false, no, off, 0 for"),
        ("rediss://h?ssl_keyfile=/k", "expected the option ssl_certfile beside ssl_keyfile"),
        ("redis://h?db=1&db=1", "expected one value for the option db"),
        ("redis://h?client_name=a%20b", "expected letters, digits and signs without spaces for"),
        ("redis://h/SECRET", "expected one number of a database behind the host"),
        ("redis://h/1?db=2", "expected one number of a database behind the host"),
        ("redis://h/-1", "expected one number of a database behind the host"),
        ("redis+cluster://h/1", "expected no database but 0"),
        ("redis://:SEC/RET@h", "expected %2F, %3F, %23 and %40 for"),
        ("redis://:SEC#RET@h", "expected %2F, %3F, %23 and %40 for"),
        ("redis://", "expected a URL that begins with"),
        ("redis://:6379", "expected hosts with ports from 1 to 65535"),
        ("redis://h:0", "expected hosts with ports from 1 to 65535"),
        ("redis://h,i", "expected one host; several are for"),
        ("redis://h..i", "expected hosts with ports"),
        ("redis+sentinel://h", "expected the name that the sentinels watch"),
        ("unix://h/r.sock", "expected the path of a socket, as in unix:///run/redis.sock"),
        ("unix:///", "expected the path of a socket"),
    ],
)
def test_what_could_fail_later_is_refused_with_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(RefusedValueError) as caught:
        read_redis_url(text)
    assert str(caught.value).startswith(message)
    assert "SECRET" not in str(caught.value)


@given(
    st.sampled_from(["redis", "rediss", "unix", "redis+sentinel", "redis+cluster"]),
    st.text("ah:/?#@%=&,[]1.", max_size=20),
)
def test_any_text_is_read_or_refused(scheme: str, rest: str) -> None:
    with contextlib.suppress(RefusedValueError):
        assert read_redis_url(f"{scheme}://{rest}").shown


def test_neither_user_nor_password_nor_options_are_shown() -> None:
    found = read_redis_url("rediss://USER:WORD@h:7/0?ssl_ciphers=ABC")
    assert found.shown == "h:7"
    assert not {"USER", "WORD", "ABC"} & set(repr(found).replace("'", " ").split())
