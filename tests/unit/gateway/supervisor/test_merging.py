"""Several processes' meters shown as if one process had counted it all."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from gateway.metrics import Meter, MeterCounts, Meters, Snapshot

EVENTS = st.lists(
    st.tuples(
        st.sampled_from([("a", "x"), ("a", "y"), ("b", "x"), ("a", "")]),
        st.sampled_from(["ended", "retried", "first", "inter", "tokens", "begin", "shed"]),
        st.sampled_from(["ok", "error"]),
        st.integers(0, 400),
    ),
    max_size=40,
)


def count(meters: Meters, at: tuple[str, str], what: str, how: str, amount: int) -> None:
    meter = meters.meter(*at)
    match what:
        case "ended":
            meter.ended(how, amount / 4)  # a sum of quarters is exact, in whatever order it is made
        case "retried":
            meter.retried(how)
        case "first":
            meter.first_token.observe(amount / 4)
            meter.ended(how, amount / 4)
        case "inter":
            meter.inter_token.observe(amount / 4)
            meter.ended(how, amount / 4)
        case "tokens":
            meter.input_tokens += amount
            meter.output_tokens += 2 * amount
        case "begin":
            meter.in_flight += 1
        case "shed":
            meters.shed(how)


def text(meters: Meters) -> list[str]:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(meters)
    return sorted(generate_latest(registry).decode().splitlines())


def sent(snapshot: Snapshot) -> Snapshot:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(snapshot), type=Snapshot)


@settings(max_examples=100)
@given(EVENTS, st.lists(st.integers(0, 2), min_size=40, max_size=40))
def test_counting_in_three_processes_and_adding_up_is_counting_in_one(
    events: list[tuple[tuple[str, str], str, str, int]], shares: list[int]
) -> None:
    alone = Meters()
    several = [Meters() for _ in range(3)]
    for event, share in zip(events, shares, strict=False):
        count(alone, *event)
        count(several[share], *event)
    total = Meters()
    for meters in several:
        for model, engine in {event[0] for event in events}:
            meters.meter(model, engine)  # the same configuration
        total.add(sent(meters.snapshot()))

    assert text(several[0].showing(sent(total.snapshot()))) == text(alone)


def test_a_snapshot_has_all_that_a_meter_holds() -> None:
    """A new count that is forgotten here would be missing where several processes serve."""
    held = {"model", "engine", *Meter.NUMBERS, *Meter.COUNTS, *Meter.HISTOGRAMS}

    assert held == set(Meter.__slots__)
    assert held == set(MeterCounts.__struct_fields__)


def test_an_endpoint_is_up_if_any_process_may_give_it_requests() -> None:
    here, there = ("e", "http://h:1"), ("e", "http://h:2")
    total = Meters()
    for up in ({here: False, there: False}, {here: True, there: False}, {here: False, there: False}):
        one = Meters()
        one.see_endpoints(up)
        total.add(one.snapshot())

    assert total.snapshot().endpoints == [(*here, True), (*there, False)]


def test_what_is_shown_is_the_total_and_not_the_total_on_top_of_the_own_counts() -> None:
    own = Meters()
    own.config_hash = "abc"
    own.see_endpoints({("e", "http://h:1"): True})
    own.meter("m", "e").ended("ok", 1.0)
    down = sent(own.snapshot())
    down.endpoints = [("e", "http://h:1", False)]
    lines = text(own.showing(down))

    assert 'turnout_requests_total{engine="e",model="m",outcome="ok"} 1.0' in lines
    assert 'turnout_endpoint_up{endpoint="http://h:1",engine="e"} 0.0' in lines
    assert 'turnout_config_info{hash="abc"} 1.0' in lines
