"""Scripted misbehaviour of simulated engines."""

import asyncio
import json

import pytest

from engines.simulator import Faults
from tests.contract.client import send
from tests.support.waiting import until
from tests.unit.engines.simulator.wire import ask, chat, engine, get

KINDS = ["vllm", "trtllm", "triton"]
HEALTH = {"vllm": "/health", "trtllm": "/health", "triton": "/health/ready"}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_status_comes_with_the_engines_own_body(kind: str) -> None:
    """The scripted status, in the shape of that engine's errors."""
    members = {"vllm": ["error"], "trtllm": ["object", "message", "type", "param", "code"], "triton": ["detail"]}
    async with engine(kind, faults=Faults(status=503)) as running:
        answer = await ask(running)
    assert answer.status == 503
    assert list(json.loads(answer.body)) == members[kind]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", [0, 3])
async def test_a_dying_engine_cuts_the_stream(kind: str, after: int) -> None:
    """So many events, then a closed connection without a last chunk."""
    async with engine(kind, faults=Faults(die_after=after)) as running:
        answer = await ask(running, stream=True)
    assert answer.status == 200
    assert (len(answer.chunks), answer.complete) == (after, False)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_dying_engine_gives_no_answer(kind: str) -> None:
    """An answer that is not streamed never begins."""
    async with engine(kind, faults=Faults(die_after=1)) as running:
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await ask(running)
        await until(lambda: running.load.running == 0)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_silent_engine_keeps_the_connection_and_the_request(kind: str) -> None:
    """After its events nothing comes, until the client hangs up."""
    async with engine(kind, faults=Faults(silent_after=2)) as running:
        asked = asyncio.create_task(ask(running, stream=True))
        await until(lambda: running.load.accepted == 1)
        await until(lambda: running.connections == 1)
        done, _ = await asyncio.wait([asked], timeout=0.2)
        assert not done
        asked.cancel()
        await until(lambda: running.connections == 0)


@pytest.mark.parametrize("stream", [True, False])
async def test_an_engine_may_never_answer(stream: bool) -> None:
    """The request is read and not even a header comes back."""
    async with engine("vllm", faults=Faults(never_answer=True)) as running:
        asked = asyncio.create_task(ask(running, stream=stream))
        await until(lambda: running.load.accepted == 1)
        done, _ = await asyncio.wait([asked], timeout=0.2)
        assert not done
        asked.cancel()
        await until(lambda: running.connections == 0)


async def test_vllm_ends_a_crashed_stream_with_an_error_and_done() -> None:
    """An error event and `[DONE]` all the same, and a clean last chunk (recording `wire_engine_crash`)."""
    async with engine("vllm", faults=Faults(engine_error_after=2)) as running:
        answer = await ask(running, stream=True)
        whole = await ask(running)
    assert json.loads(answer.chunks[-2].removeprefix("data: "))["error"]["code"] == 500
    assert (answer.chunks[-1], answer.complete, len(answer.chunks)) == ("data: [DONE]\n\n", True, 4)
    assert (whole.status, json.loads(whole.body)["error"]["type"]) == (500, "InternalServerError")


@pytest.mark.parametrize(("kind", "status"), [("trtllm", 400), ("triton", 500)])
async def test_the_others_cut_a_failed_chat_stream(kind: str, status: int) -> None:
    """No error event: the connection is cut. A whole answer becomes an error of the recorded status."""
    async with engine(kind, faults=Faults(engine_error_after=2)) as running:
        streamed, whole = await ask(running, stream=True), await ask(running)
    assert (len(streamed.chunks), streamed.complete) == (2, False)
    assert whole.status == status


async def test_faults_hit_every_nth_request_and_can_be_lifted() -> None:
    """`every` spares the others; setting new faults acts on the requests that follow."""
    async with engine("vllm", faults=Faults(every=3, status=500)) as running:
        assert [(await ask(running)).status for _ in range(6)] == [200, 200, 500, 200, 200, 500]
        running.faults = Faults()
        assert [(await ask(running)).status for _ in range(3)] == [200, 200, 200]


@pytest.mark.parametrize(("kind", "status"), [("vllm", 503), ("trtllm", 503), ("triton", 400)])
async def test_an_unhealthy_engine_says_so_and_still_serves(kind: str, status: int) -> None:
    """Only the health path changes."""
    async with engine(kind, faults=Faults(unhealthy=True)) as running:
        assert (await get(running, HEALTH[kind])).status == status
        assert (await send(running.port, chat())).status == 200
