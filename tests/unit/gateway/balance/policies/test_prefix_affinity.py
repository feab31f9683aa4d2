from collections import Counter
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.balance.policies.prefix_affinity import PrefixAffinity, PrefixMap
from tests.unit.gateway.balance.making import endpoints

SYSTEM = b"You are a helpful assistant that answers in one sentence. " * 40


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3000), st.booleans()), min_size=1, max_size=80
    ),
    st.integers(1, 6),
    st.sampled_from([1.0, 1.25, 2.0]),
    st.lists(st.integers(0, 5), min_size=6, max_size=6),
)
def test_no_endpoint_takes_more_than_its_share_times_the_factor(
    steps: list[tuple[int, int, int, bool]], count: int, factor: float, extras: list[int]
) -> None:
    """Right after each choice, whoever was chosen has at most ceil(factor x mean load), however alike the prompts."""
    ready = endpoints(count)
    for endpoint, extra in zip(ready, extras, strict=False):
        endpoint.extra = extra
    prefixes = PrefixMap(factor, entries=30)
    running = []
    for system, tail, length, ends in steps:
        chosen = prefixes.pick(ready, bytes([system]) * 1000 + bytes([tail]) * length, lambda: 0.0)
        chosen.in_flight += 1
        running.append(chosen)
        assert chosen.load <= ceil(factor * sum(endpoint.load for endpoint in ready) / count)
        assert len(prefixes) <= 30
        if ends:
            running.pop(0).in_flight -= 1


def test_a_hot_prefix_never_takes_everything_to_one_endpoint() -> None:
    ready = endpoints(2)
    prefixes = PrefixMap(1.25, 1000)
    for number in range(400):
        prefixes.pick(ready, SYSTEM + b"%d" % number, lambda: 0.0).in_flight += 1
    assert max(endpoint.in_flight for endpoint in ready) <= 250


def test_a_conversation_stays_where_its_beginning_is_cached() -> None:
    ready = endpoints(4)
    prefixes = PrefixMap(1.25, 1000)
    prompt = SYSTEM
    homes = set()
    for turn in range(10):
        prompt += b"question %d and a rather long answer to it. " % turn * 8
        homes.add(prefixes.pick(ready, prompt, lambda: 0.0))
    assert len(homes) == 1


def test_who_was_sent_elsewhere_by_the_bound_stays_there_and_takes_nobody_along() -> None:
    ready = endpoints(2)
    prefixes = PrefixMap(1.25, 1000)
    home = prefixes.pick(ready, SYSTEM, lambda: 0.0)
    home.in_flight = 10
    moved = SYSTEM + b"the history of this very conversation, at some length. " * 40
    away = prefixes.pick(ready, moved, lambda: 0.0)
    assert away is not home
    home.in_flight = 0
    assert prefixes.pick(ready, moved + b"next question", lambda: 0.0) is away
    assert prefixes.pick(ready, SYSTEM + b"another conversation", lambda: 0.0) is home


def test_different_prompts_of_equal_length_spread() -> None:
    """A hundred prompts of 128 token ids each: their length is not what they are told apart by."""
    ready = endpoints(4)
    prefixes = PrefixMap(1.25, 1000)
    prompts = [str([number * 1000 + token for token in range(128)]).encode()[:600] for number in range(100, 200)]
    assert len({len(prompt) for prompt in prompts}) == 1
    taken = Counter(prefixes.pick(ready, prompt, lambda: 0.0) for prompt in prompts)
    assert all(10 <= taken[endpoint] <= 45 for endpoint in ready)


@given(st.lists(st.binary(min_size=1, max_size=400), min_size=1, max_size=20, unique=True))
def test_gateways_agree_on_prompts_they_have_not_seen(prompts: list[bytes]) -> None:
    here, there = endpoints(5), endpoints(5)
    for prompt in prompts:
        one = PrefixMap(1.25, 10).pick(here, prompt, lambda: 0.0)
        assert one.url == PrefixMap(1.25, 10).pick(there, prompt, lambda: 0.0).url


def test_an_endpoint_that_has_left_is_not_chosen() -> None:
    ready = endpoints(3)
    prefixes = PrefixMap(1.25, 1000)
    home = prefixes.pick(ready, SYSTEM, lambda: 0.0)
    rest = [endpoint for endpoint in ready if endpoint is not home]
    assert prefixes.pick(rest, SYSTEM, lambda: 0.0) in rest


def test_requests_without_a_key_go_to_the_least_loaded() -> None:
    ready = endpoints(3)
    ready[0].in_flight = ready[1].in_flight = 1
    assert PrefixAffinity().picker()(ready, None, lambda: 0.0) is ready[2]


@pytest.mark.parametrize(("factor", "entries"), [(0.9, 10), (1.25, 0)])
def test_settings_that_cannot_work_are_refused(factor: float, entries: int) -> None:
    with pytest.raises(ValueError, match="prefix_affinity needs"):
        PrefixAffinity(factor, entries)
