"""The load against simulated engines on real sockets."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.simulator import Faults, Pace, build_app
from engines.simulator.server import listening
from loadtests.catalogue import AGENTS, BURSTS, CHAT_MIX, EMBEDDINGS, FLEET, LONG_PROMPTS, MODELS, SLOW_READERS
from loadtests.client import count_ends
from loadtests.load import Load, Loaded, Side, sides
from loadtests.sample import CUT, ERROR_EVENT, OK, REFUSED, UNFINISHED, Sample
from loadtests.scenario import Bursts, Clients, Scenario

FAST = Pace(first_token=0.001, inter_token=0.001)


async def loaded(scenario: Scenario, pace: Pace = FAST, faults: Faults | None = None) -> Loaded:
    """Runs a scenario against one engine of each of its models' kind."""
    model = next(model for model in MODELS if model.name == scenario.shapes[0].model)
    replicas = next(replicas for replicas in FLEET if replicas.name == model.replicas)
    engine = build_app(replicas.kind, replicas.models, pace, faults=faults or Faults())
    ended: list[Sample] = []
    async with listening(engine) as running:
        side = Side("direct", {model.name: (model.engine_model, [(running.host, running.port)])})
        result = await Load(scenario, side, ended.append).run()
    assert len(ended) == len(result.samples)
    return result


def few(scenario: Scenario, count: int = 6) -> Scenario:
    return replace(scenario, arrivals=Bursts(count, 10.0), seconds=0.1, grace=20.0)


@pytest.mark.parametrize("scenario", [CHAT_MIX, LONG_PROMPTS, AGENTS, EMBEDDINGS, BURSTS], ids=lambda one: one.name)
async def test_every_shape_is_answered_well(scenario: Scenario) -> None:
    """In particular none of them is a request that an engine refuses."""
    for shape in scenario.shapes:
        result = await loaded(replace(few(scenario, 2), shapes=(shape,)))

        assert [sample.outcome for sample in result.samples] == [OK, OK]
        assert all((sample.first is not None) == shape.streamed for sample in result.samples)
        assert all(sample.received > 100 for sample in result.samples)


async def test_events_are_counted_one_by_one_and_done_is_none() -> None:
    (shape, *_) = CHAT_MIX.shapes
    result = await loaded(replace(few(CHAT_MIX, 1), shapes=(shape,)))
    (sample,) = result.samples

    assert sample.events in {shape.body["max_tokens"] + extra for extra in (1, 2, 3)}  # role, finish and usage
    assert len(sample.gaps) == sample.events - 1
    assert sample.due <= sample.sent < (sample.first or 0.0) < (sample.last or 0.0)


async def test_gaps_are_those_of_the_engines_pace() -> None:
    (shape, *_) = CHAT_MIX.shapes
    result = await loaded(replace(few(CHAT_MIX, 1), shapes=(shape,)), Pace(first_token=0.1, inter_token=0.01))
    (sample,) = result.samples

    assert (sample.first or 0.0) - sample.due >= 0.1
    assert sum(sample.gaps) >= 0.01 * (shape.body["max_tokens"] - 1)


async def test_clients_of_a_closed_loop_ask_again_when_they_are_answered() -> None:
    result = await loaded(replace(EMBEDDINGS, arrivals=Clients(2), seconds=0.5))

    assert len(result.samples) > 2
    assert {sample.outcome for sample in result.samples} == {OK}


async def test_a_refused_request_is_counted_by_its_status() -> None:
    result = await loaded(few(BURSTS, 5), replace(FAST, first_token=0.2, max_running=1, max_requests=2))

    assert sorted(sample.outcome for sample in result.samples) == ["503", "503", "503", OK, OK]


@pytest.mark.parametrize(
    ("faults", "outcome"),
    [(Faults(die_after=3), CUT), (Faults(engine_error_after=3), ERROR_EVENT)],
    ids=["cut", "error"],
)
async def test_a_stream_that_breaks_is_no_good_answer(faults: Faults, outcome: str) -> None:
    result = await loaded(few(BURSTS, 1), faults=faults)

    assert [sample.outcome for sample in result.samples] == [outcome]


async def test_what_is_still_open_after_the_grace_is_unfinished() -> None:
    result = await loaded(replace(few(BURSTS, 2), grace=0.3), faults=Faults(never_answer=True))

    assert [sample.outcome for sample in result.samples] == [UNFINISHED, UNFINISHED]
    assert result.seconds < 5


async def test_an_address_where_nobody_listens_refuses() -> None:
    async with listening(build_app("vllm")) as running:
        address = (running.host, running.port)
    side = Side("direct", {"burst": ("any", [address])})
    result = await Load(few(BURSTS, 2), side, lambda _: None).run()

    assert [sample.outcome for sample in result.samples] == [REFUSED, REFUSED]


async def test_slow_readers_read_slowly_and_are_not_waited_for() -> None:
    assert SLOW_READERS.slow is not None
    slow = replace(SLOW_READERS.slow, count=2, bytes_per_second=2000)
    result = await loaded(replace(few(SLOW_READERS, 3), slow=slow), Pace(first_token=0.1, inter_token=0.01))

    assert [sample.outcome for sample in result.samples] == [OK, OK, OK]
    assert [sample.outcome for sample in result.slow] == [UNFINISHED, UNFINISHED]
    assert all(0 < sample.received < 50_000 for sample in result.slow)


async def test_a_connection_that_was_closed_while_idle_is_no_error() -> None:
    """Engines close idle connections; a request sent into that moment goes out again on a new connection."""
    (shape, *_) = EMBEDDINGS.shapes
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
    connections = 0

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        for turn in range(2):
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.partition(b"content-length: ")[2].split(b"\r\n")[0]))
            if turn or connections > 1:
                break
            writer.write(answer)
        if connections > 1:
            writer.write(answer)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(once, "127.0.0.1", 0) as server:
        side = Side("direct", {"vectors": ("any", [server.sockets[0].getsockname()[:2]])})
        scenario = replace(EMBEDDINGS, shapes=(shape,), arrivals=Bursts(1, 0.3), seconds=0.5)
        result = await Load(scenario, side, lambda _: None).run()

    assert [sample.outcome for sample in result.samples] == [OK, OK]
    assert connections == 2


@given(st.lists(st.sampled_from([b"data: x", b"\n", b"\n\n", b"data: y\n\n"])))
def test_events_are_counted_however_the_stream_is_cut(parts: list[bytes]) -> None:
    """Engines never send three line ends in a row, so neither does this."""
    whole = b"".join(parts)
    if b"\n\n\n" in whole:
        return
    carry, found = b"", 0
    for byte in range(len(whole)):
        ends, carry = count_ends(carry, whole[byte : byte + 1])
        found += ends

    assert found == whole.count(b"\n\n")


def test_direct_replicas_take_turns_and_the_gateway_is_asked_by_its_own_names() -> None:
    engines = {replicas.name: [("127.0.0.1", 1), ("127.0.0.1", 2)] for replicas in FLEET}
    direct, gateway = sides(MODELS, engines, ("127.0.0.1", 3))
    (shape, *_) = CHAT_MIX.shapes

    assert [direct.address(shape)[1] for _ in range(3)] == [1, 2, 1]
    assert gateway.address(shape) == ("127.0.0.1", 3)
    assert b'"model": "vendor/small-1b"' in direct.request(shape)
    assert b'"model": "chat"' in gateway.request(shape)
