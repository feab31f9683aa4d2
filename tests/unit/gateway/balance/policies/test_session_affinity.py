from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.policies.session_affinity import SessionAffinity
from tests.unit.gateway.balance.making import endpoints

KEYS = st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=60, unique=True)


@given(KEYS, st.integers(2, 10), st.integers(0, 9))
def test_only_the_keys_of_a_leaving_endpoint_move_and_they_come_back_with_it(
    keys: list[bytes], count: int, leaving: int
) -> None:
    everybody = endpoints(count)
    gone = everybody[leaving % count]
    rest = [endpoint for endpoint in everybody if endpoint is not gone]
    pick = SessionAffinity().picker()
    for key in keys:
        home = pick(everybody, key, lambda: 0.0)
        away = pick(rest, key, lambda: 0.0)
        assert away is home or home is gone
        assert pick(everybody, key, lambda: 0.0) is home


@given(KEYS, st.integers(1, 10))
def test_every_gateway_makes_the_same_choice(keys: list[bytes], count: int) -> None:
    """Whatever it has chosen before, and in whatever order it knows the endpoints."""
    here, there = endpoints(count), endpoints(count)[::-1]
    one, two = SessionAffinity().picker(), SessionAffinity().picker()
    two(there, b"another", lambda: 0.0)
    for key in keys:
        assert one(here, key, lambda: 0.0).url == two(there, key, lambda: 0.0).url


def test_keys_spread_evenly() -> None:
    ready = endpoints(4)
    pick = SessionAffinity().picker()
    taken = Counter(pick(ready, b"user-%d" % number, lambda: 0.0) for number in range(4000))
    assert all(850 < taken[endpoint] < 1150 for endpoint in ready)


def test_requests_without_a_key_go_to_the_least_loaded() -> None:
    ready = endpoints(3)
    ready[0].in_flight = ready[2].in_flight = 1
    assert SessionAffinity().picker()(ready, None, lambda: 0.0) is ready[1]
