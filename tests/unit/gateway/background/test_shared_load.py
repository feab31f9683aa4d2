"""What gateways tell one another of endpoints, and what follows from it."""

from gateway.background.shared.load import HOLDS, hear, tell
from gateway.balance.endpoint import EndpointState
from gateway.balance.engine import Engine, Tier
from gateway.balance.lease import Target, lease
from gateway.balance.outcome import Broken
from tests.unit.gateway.balance import making

NOW = 1_000.0


def busy(count: int) -> Engine:
    """An engine whose first endpoint has so many requests in flight."""
    engine = making.engine(2)
    for _ in range(count):
        lease(engine.endpoints[0], Target(engine, "m"))
    return engine


def test_others_requests_count_as_load_until_they_should_have_said_more() -> None:
    mine = busy(1)
    hear({"e": mine}, [tell({"e": busy(3)}), tell({"e": busy(4)})], NOW)

    assert [endpoint.load for endpoint in mine.endpoints] == [8, 0]
    mine.refresh(NOW + HOLDS - 0.1)
    assert mine.endpoints[0].load == 8
    mine.refresh(NOW + HOLDS)
    assert mine.endpoints[0].load == 1


def test_what_has_ended_elsewhere_is_no_load_any_more() -> None:
    mine = busy(0)
    hear({"e": mine}, [tell({"e": busy(3)})], NOW)
    hear({"e": mine}, [tell({"e": busy(0)})], NOW + 1)

    assert mine.endpoints[0].load == 0


def test_an_endpoint_that_another_gateway_has_ejected_is_asked_last() -> None:
    theirs, mine = busy(0), busy(0)
    for turn in range(5):
        lease(theirs.endpoints[0], Target(theirs, "m")).end(Broken(500), NOW + turn * 0.01)
    assert theirs.endpoints[0].state is EndpointState.EJECTED
    hear({"e": mine}, [tell({"e": theirs})], NOW)

    assert mine.candidates(Tier.READY, ()) == mine.endpoints[1:]
    assert mine.endpoints[0] in mine.candidates(Tier.SPARE, ())
    mine.refresh(NOW + HOLDS)
    assert mine.candidates(Tier.READY, ()) == mine.endpoints


def test_what_cannot_be_read_changes_nothing() -> None:
    mine = busy(2)
    hear({"e": mine}, ["{", '[["e"]]', '[["other", "http://x", 5, true]]'], NOW)

    assert [endpoint.load for endpoint in mine.endpoints] == [2, 0]
    assert mine.candidates(Tier.READY, ()) == mine.endpoints
