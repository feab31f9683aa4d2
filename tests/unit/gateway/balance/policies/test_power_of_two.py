from random import Random

from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.policies.power_of_two import PowerOfTwo
from tests.unit.gateway.balance.making import endpoints


@given(st.lists(st.integers(0, 6), min_size=2, max_size=40), st.integers())
def test_the_most_loaded_one_is_never_chosen(loads: list[int], seed: int) -> None:
    ready = endpoints(len(loads))
    for endpoint, load in zip(ready, loads, strict=True):
        endpoint.in_flight = load
    ready[loads.index(max(loads))].in_flight = max(loads) + 1
    pick = PowerOfTwo().picker()
    rng = Random(seed).random
    assert all(pick(ready, None, rng).in_flight <= max(loads) for _ in range(50))


@given(st.integers(1, 40), st.floats(0, 1, exclude_max=True), st.floats(0, 1, exclude_max=True))
def test_every_draw_names_a_ready_endpoint(count: int, one: float, two: float) -> None:
    draws = iter([one, two])
    assert PowerOfTwo().picker()(endpoints(count), None, lambda: next(draws)).in_flight == 0


def test_equals_share_alike() -> None:
    ready = endpoints(4)
    pick = PowerOfTwo().picker()
    rng = Random(7).random
    taken = [pick(ready, None, rng) for _ in range(4000)]
    assert all(900 < taken.count(endpoint) < 1100 for endpoint in ready)
