"""Pace and admission of simulated engines."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.simulator import Pace
from tests.support.waiting import until
from tests.unit.engines.simulator.wire import ask, engine, get, half_read, metric

RUNNING = {
    "vllm": ("/metrics", "vllm:num_requests_running"),
    "trtllm": ("/prometheus/metrics", "trtllm_num_requests_running"),
    "triton": ("/metrics", "vllm:num_requests_running"),
}


@given(running=st.integers(1, 500), slowdown=st.floats(0, 1))
def test_a_bigger_batch_is_never_faster(running: int, slowdown: float) -> None:
    """Each further running request makes the gap between tokens longer, by the share that was asked for."""
    pace = Pace(inter_token=0.01, batch_slowdown=slowdown)

    assert pace.between(running + 1) >= pace.between(running) >= pace.between(1) == 0.01


def test_long_prompts_wait_longer() -> None:
    """The first token comes after a fixed time and a time for each prompt token."""
    assert Pace(first_token=0.5, prefill=0.001).before_first(1000) == pytest.approx(1.5)
    assert Pace().instant
    assert not Pace(prefill=0.001).instant


async def test_tokens_take_their_time() -> None:
    """A paced stream takes at least its first-token time and the gaps; so does an answer that is not streamed."""
    loop = asyncio.get_running_loop()
    async with engine("vllm", Pace(first_token=0.05, inter_token=0.01)) as running:
        for stream in (True, False):
            began = loop.time()
            answer = await ask(running, "Tell me a story.", max_tokens=11, stream=stream)
            assert answer.status == 200
            assert loop.time() - began >= 0.14


async def test_requests_wait_for_a_place_and_metrics_tell() -> None:
    """With one place the second request waits, and runs when the first client has left."""
    async with engine("vllm", Pace(inter_token=0.02, max_running=1)) as running:
        async with asyncio.TaskGroup() as group, half_read(running):
            second = group.create_task(ask(running, max_tokens=2))
            await until(lambda: running.load.waiting == 1)
            metrics = (await get(running, "/metrics")).body
            assert metric(metrics, "vllm:num_requests_running") == 1
            assert metric(metrics, "vllm:num_requests_waiting") == 1
            assert metric(metrics, "vllm:kv_cache_usage_perc") > 0
        assert second.result().status == 200
        assert running.load.running == running.load.waiting == 0


async def test_a_waiting_request_whose_client_left_gives_up_its_turn() -> None:
    """It leaves the queue, and the place goes to who is behind it."""
    async with engine("vllm", Pace(inter_token=0.02, max_running=1)) as running:
        async with asyncio.TaskGroup() as group, half_read(running):
            second = group.create_task(ask(running, max_tokens=2))
            await until(lambda: running.load.waiting == 1)
            third = group.create_task(ask(running, max_tokens=2))
            await until(lambda: running.load.waiting == 2)
            second.cancel()
            await until(lambda: running.load.waiting == 1)
        assert third.result().status == 200
        assert running.load.running == running.load.waiting == 0


async def test_the_pace_can_be_changed_under_way() -> None:
    """A slow engine that becomes instant ends its answers at once."""
    async with engine("vllm", Pace(inter_token=0.05)) as running, asyncio.TaskGroup() as group:
        asked = group.create_task(ask(running, "Tell me a story.", max_tokens=100, stream=True))
        await until(lambda: running.load.running == 1)
        running.engine.pace = Pace()
        await until(asked.done, 1.0)


async def test_places_are_given_in_arrival_order() -> None:
    """Those who wait are served first come, first served."""
    done: list[int] = []

    async with engine("vllm", Pace(inter_token=0.002, max_running=1)) as running:

        async def one(number: int) -> None:
            await ask(running, max_tokens=4)
            done.append(number)

        async with asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(one(number))
                await until(lambda: running.load.accepted > number)  # noqa: B023 - awaited within the turn

    assert done == sorted(done)


async def test_vllm_refuses_what_exceeds_its_queue() -> None:
    """503 at once, with vLLM's body, for streams too; the rejection is counted (recording `queue_full`)."""
    async with engine("vllm", Pace(inter_token=0.01, max_running=1, max_requests=1)) as running, half_read(running):
        for stream in (False, True):
            answer = await ask(running, stream=stream)
            error = json.loads(answer.body)["error"]
            assert (answer.status, error["type"], error["code"]) == (503, "Service Unavailable", 503)
        assert metric((await get(running, "/metrics")).body, "vllm:admission_rejections_total") == 2


@pytest.mark.parametrize("kind", ["trtllm", "triton"])
async def test_the_others_only_queue(kind: str) -> None:
    """No refusal of a full queue is known of trtllm-serve and Triton."""
    async with engine(kind, Pace(max_running=1, max_requests=1)) as running, asyncio.TaskGroup() as group:
        answers = [group.create_task(ask(running)) for _ in range(4)]
    assert [answer.result().status for answer in answers] == [200] * 4


@pytest.mark.parametrize("kind", ["vllm", "trtllm"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_request_whose_client_left_is_ended(kind: str, stream: bool) -> None:
    """vLLM ends it at once, trtllm-serve at its next look, which is within a second; the metric shows it."""
    path, name = RUNNING[kind]
    async with engine(kind, Pace(inter_token=0.05)) as running:
        async with half_read(running, stream=stream):
            await until(lambda: running.load.running == 1)
            assert metric((await get(running, path)).body, name) == 1
        await until(lambda: running.load.running == 0, 1.5)
        assert metric((await get(running, path)).body, name) == 0
        state = running.load.models["tiny"]
        assert (state.aborted, state.finished) == (1, {})


async def test_triton_generates_to_the_end_for_nobody() -> None:
    """A Triton request goes on after its client left (recording `client_disconnect_stream`)."""
    async with engine("triton", Pace(inter_token=0.002)) as running:
        async with half_read(running):
            assert running.load.running == 1
        assert running.load.running == 1
        await until(lambda: running.load.running == 0)
        assert running.load.models["tiny"].generated_tokens == 400


async def test_trtllm_statistics_are_given_once() -> None:
    """`/metrics` is JSON and drains: who reads second finds nothing new."""
    async with engine("trtllm") as running:
        await ask(running)
        first, second = [json.loads((await get(running, "/metrics")).body) for _ in range(2)]
    assert [entry["numActiveRequests"] for entry in first] == [0]
    assert second == []
