from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.policies.least_requests import EXACT, LeastRequests
from tests.unit.gateway.balance.making import endpoints


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=EXACT), st.integers(0, 20))
def test_nobody_has_less_load_than_the_chosen_one(loads: list[tuple[int, int]], before: int) -> None:
    """Load is what we have in flight there plus what the engine reports beyond it."""
    ready = endpoints(len(loads))
    pick = LeastRequests().picker()
    for _ in range(before):
        pick(ready, None, lambda: 0.0)
    for endpoint, (in_flight, extra) in zip(ready, loads, strict=True):
        endpoint.in_flight, endpoint.extra = in_flight, extra
    assert pick(ready, None, lambda: 0.0).load == min(endpoint.load for endpoint in ready)


@given(st.integers(1, 60), st.integers(0, 100))
def test_equals_take_turns(count: int, before: int) -> None:
    ready = endpoints(count)
    pick = LeastRequests().picker()
    for _ in range(before):
        pick(ready, None, lambda: 0.0)
    assert {pick(ready, None, lambda: 0.0) for _ in ready} == set(ready)


@given(st.lists(st.integers(0, 5), min_size=EXACT + 1, max_size=80), st.integers(0, 40))
def test_among_many_an_idle_one_is_found_within_a_round(loads: list[int], at: int) -> None:
    ready = endpoints(len(loads))
    for endpoint, load in zip(ready, loads, strict=True):
        endpoint.in_flight = load + 1
    idle = ready[at % len(ready)]
    idle.in_flight = 0
    pick = LeastRequests().picker()
    assert idle in [pick(ready, None, lambda: 0.0) for _ in ready]


def test_many_endpoints_are_filled_evenly() -> None:
    ready = endpoints(200)
    pick = LeastRequests().picker()
    for _ in range(2000):
        pick(ready, None, lambda: 0.0).in_flight += 1
    assert {endpoint.in_flight for endpoint in ready} == {10}
