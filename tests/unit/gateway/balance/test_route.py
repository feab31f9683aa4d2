from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.balance import evidence
from gateway.balance.endpoint import Endpoint
from gateway.balance.lease import Lease
from gateway.balance.outcome import SERVED
from gateway.balance.policies.least_requests import LeastRequests
from gateway.balance.policies.session_affinity import SessionAffinity
from gateway.balance.route import Route, Unavailable
from tests.unit.gateway.balance.making import engine, lease, route


def serve(chat: Route, count: int, now: float = 0.0) -> list[Endpoint]:
    """Who takes so many requests, one after the other."""
    found = []
    for _ in range(count):
        given = lease(chat, now)
        found.append(given.endpoint)
        given.end(SERVED, now)
    return found


def refusal(chat: Route, now: float = 0.0, tried: tuple[Endpoint, ...] = ()) -> Unavailable:
    found = chat.acquire(None, now, lambda: 0.5, tried)
    assert isinstance(found, Unavailable)
    return found


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 60))
def test_targets_get_requests_by_their_weights(weights: list[int], count: int) -> None:
    """At any time a target is less than one turn per target away from its share."""
    engines = [engine(2, name=str(place)) for place in range(len(weights))]
    chat = route(*engines, weights=tuple(map(float, weights)))
    taken = Counter(lease(chat).target.engine.name for _ in range(count))
    for place, weight in enumerate(weights):
        assert abs(taken[str(place)] - count * weight / sum(weights)) < len(weights)


def test_a_small_share_is_spread_and_not_bunched() -> None:
    main, canary = engine(1, name="main"), engine(1, name="canary")
    chat = route(main, canary, weights=(9.0, 1.0))
    names = [lease(chat).target.engine.name for _ in range(40)]
    at = [place for place, name in enumerate(names) if name == "canary"]
    assert [later - earlier for earlier, later in pairwise(at)] == [10, 10, 10]


def test_a_target_without_an_endpoint_leaves_its_share_to_the_others() -> None:
    one, two = engine(1, name="one"), engine(1, name="two")
    chat = route(one, two, weights=(99.0, 1.0))
    one.drain(0.0)
    assert set(serve(chat, 10)) == set(two.endpoints)
    one.undrain(1.0)
    assert Counter(serve(chat, 100, 1.0))[one.endpoints[0]] >= 98


def test_an_endpoint_at_its_limit_is_skipped_until_it_has_room() -> None:
    qwen = engine(2, limit=1)
    chat = route(qwen)
    first, second = lease(chat), lease(chat)
    assert {first.endpoint, second.endpoint} == set(qwen.endpoints)
    assert refusal(chat).reason == "all_busy"
    first.end(SERVED, 1.0)
    assert lease(chat, 1.0).endpoint is first.endpoint


def test_what_was_tried_is_not_given_again() -> None:
    qwen = engine(3)
    chat = route(qwen)
    tried: tuple[Endpoint, ...] = ()
    for _ in qwen.endpoints:
        tried += (lease(chat, tried=tried).endpoint,)
    assert set(tried) == set(qwen.endpoints)
    assert refusal(chat, tried=tried).reason == "all_tried"


def test_a_retry_may_go_to_another_engine() -> None:
    one, two = engine(1, name="one"), engine(1, name="two")
    chat = route(one, two)
    assert lease(chat, tried=tuple(one.endpoints)).endpoint is two.endpoints[0]


def test_a_route_whose_endpoints_are_all_down_says_so_and_when_to_come_again() -> None:
    qwen = engine(2)
    chat = route(qwen)
    for endpoint in qwen.endpoints:
        for now in (0.0, 1.0, 2.0):
            evidence.check_failed(qwen, endpoint, "503", now)
    found = refusal(chat, 3.0)
    assert found == Unavailable("no_endpoint", retry_after=4.0)
    assert refusal(route(engine(0))).reason == "no_endpoint"


def test_routes_that_share_an_engine_see_each_others_load() -> None:
    qwen = engine(2)
    one, two = route(qwen, policy=LeastRequests()), route(qwen, policy=LeastRequests())
    busy = lease(one).endpoint
    assert all(given.endpoint is not busy for given in [lease(two)])


@given(st.lists(st.binary(min_size=1, max_size=8), min_size=1, max_size=50, unique=True))
def test_a_session_stays_with_its_engine_and_endpoint(keys: list[bytes]) -> None:
    chat = route(engine(2, name="one"), engine(2, name="two"), policy=SessionAffinity())
    for key in keys:
        assert len({lease(chat, key=key).endpoint for _ in range(3)}) == 1


def test_sessions_spread_over_engines_by_weight() -> None:
    one, two = engine(1, name="one"), engine(1, name="two")
    chat = route(one, two, policy=SessionAffinity(), weights=(3.0, 1.0))
    for number in range(2000):
        lease(chat, key=b"%d" % number)
    assert 0.70 < one.endpoints[0].in_flight / 2000 < 0.80


def test_a_lease_names_its_target() -> None:
    qwen = engine(1)
    chat = route(qwen)
    found = chat.acquire(None, 0.0, lambda: 0.0)
    assert isinstance(found, Lease)
    assert found.target is chat.targets[0]
