"""Remembered orders say the same as all orders, one after the other."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from engines.profile import EngineKind
from gateway.balance.drains import DrainOrder, StandingOrders
from gateway.balance.endpoint import Endpoint, EndpointState, StateChange
from gateway.balance.engine import Engine

URLS = [f"http://h:{port}" for port in (1, 2, 3)]
ORDERS = st.builds(DrainOrder, st.sampled_from(["a", "b"]), st.sampled_from([None, *URLS]), st.booleans())


def states_after(orders: Iterable[DrainOrder], late: bool = False) -> dict[tuple[str, str], bool]:
    """Which endpoints drain. ``late``: the last one joins when all has been said."""
    engines = {name: Engine(name, EngineKind.VLLM, map(Endpoint, URLS[:2] if late else URLS)) for name in "ab"}
    for order in orders:
        engine = engines[order.engine]
        (engine.drain if order.drained else engine.undrain)(1.0, order.url)
    for engine in engines.values():
        engine.update(map(Endpoint, URLS), 2.0)
    return {
        (name, endpoint.url): endpoint.state is EndpointState.DRAINING
        for name, engine in engines.items()
        for endpoint in engine.endpoints
    }


@given(st.lists(ORDERS, max_size=12))
def test_what_stands_leads_to_what_all_orders_led_to(orders: list[DrainOrder]) -> None:
    assert states_after(StandingOrders(orders)) == states_after(orders)


@given(st.lists(ORDERS, max_size=12))
def test_what_stands_is_never_more_than_one_order_per_endpoint_and_engine(orders: list[DrainOrder]) -> None:
    standing = list(StandingOrders(orders))

    assert len({(order.engine, order.url) for order in standing}) == len(standing)


@given(st.lists(ORDERS, max_size=12), st.booleans())
def test_all_that_stands_is_settled_in_one_step(orders: list[DrainOrder], again: bool) -> None:
    """With the result of all orders one after the other; no endpoint that ends as it was is drained in between."""
    facts: list[StateChange] = []
    standing = StandingOrders(orders)
    expected = states_after(orders)
    for name in "ab":
        engine = Engine(name, EngineKind.VLLM, map(Endpoint, URLS), notice=facts.append)
        for step in range(1 + again):
            engine.settle(standing.of(name), float(step))
        for endpoint in engine.endpoints:
            drains = expected[name, endpoint.url]
            assert (endpoint.state is EndpointState.DRAINING) is drains
            assert len([fact for fact in facts if fact.endpoint is endpoint]) == int(drains)


@given(st.lists(ORDERS, max_size=12))
def test_what_is_settled_holds_for_those_that_join_a_drained_engine_later(orders: list[DrainOrder]) -> None:
    """An endpoint that was taken back does not drain when its name is looked up after the orders."""
    engine = Engine("a", EngineKind.VLLM, [])
    engine.settle(StandingOrders([DrainOrder("a", None, True), *orders]).of("a"), 1.0)
    engine.update(map(Endpoint, URLS), 2.0)
    expected = states_after([DrainOrder("a", None, True), *orders])
    joined = {endpoint.url: endpoint.state is EndpointState.DRAINING for endpoint in engine.endpoints}
    if engine.drain_reason:
        assert joined == {url: expected["a", url] for url in URLS}


def test_an_undrained_engine_leaves_nothing_to_remember() -> None:
    orders = [DrainOrder("a", None, True), DrainOrder("a", URLS[0], False), DrainOrder("a", None, False)]

    assert list(StandingOrders(orders)) == []


def test_an_endpoint_that_joins_a_drained_engine_drains() -> None:
    assert states_after([DrainOrder("a", None, True)], late=True)["a", URLS[2]]
    assert not states_after([DrainOrder("a", URLS[0], True)], late=True)["a", URLS[2]]
