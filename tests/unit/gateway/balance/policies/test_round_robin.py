from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.policies.round_robin import RoundRobin
from tests.unit.gateway.balance.making import endpoints


@given(st.integers(1, 30), st.integers(0, 100))
def test_any_n_choices_in_a_row_name_each_of_n_endpoints_once(count: int, before: int) -> None:
    ready = endpoints(count)
    pick = RoundRobin().picker()
    for _ in range(before):
        pick(ready, None, lambda: 0.0)
    assert {pick(ready, None, lambda: 0.0) for _ in ready} == set(ready)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=40))
def test_it_chooses_a_ready_endpoint_however_many_there_are_now(sizes: list[int]) -> None:
    everybody = endpoints(6)
    pick = RoundRobin().picker()
    for size in sizes:
        assert pick(everybody[:size], None, lambda: 0.0) in everybody[:size]
