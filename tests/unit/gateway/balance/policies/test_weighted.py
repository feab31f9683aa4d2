from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.policies.weighted import Credits, Weighted
from tests.unit.gateway.balance.making import endpoints


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 100))
def test_a_full_round_names_each_as_often_as_its_weight(weights: list[int], before: int) -> None:
    ready = endpoints(len(weights))
    for endpoint, weight in zip(ready, weights, strict=True):
        endpoint.weight = float(weight)
    pick = Weighted().picker()
    for _ in range(before):
        pick(ready, None, lambda: 0.0)
    taken = Counter(pick(ready, None, lambda: 0.0) for _ in range(sum(weights)))
    assert [taken[endpoint] for endpoint in ready] == weights


def test_turns_of_a_heavy_endpoint_are_spread() -> None:
    ready = endpoints(3)
    ready[0].weight = 2.0
    pick = Weighted().picker()
    names = [ready.index(pick(ready, None, lambda: 0.0)) for _ in range(8)]
    assert names == [0, 1, 2, 0] * 2


def test_weight_zero_is_chosen_only_when_alone() -> None:
    ready = endpoints(2)
    ready[0].weight = 0.0
    pick = Weighted().picker()
    assert {pick(ready, None, lambda: 0.0) for _ in range(20)} == {ready[1]}
    assert pick(ready[:1], None, lambda: 0.0) is ready[0]


def test_endpoints_that_come_and_go_do_not_pile_up() -> None:
    owed = Credits()
    for order in range(1000):
        ready = endpoints(2)
        for place, endpoint in enumerate(ready):
            endpoint.order = 2 * order + place
        assert owed.pick(ready, None, lambda: 0.0) in ready
    assert len(owed) <= 2 * 2 + 64
