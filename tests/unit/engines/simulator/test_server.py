"""Running simulated engines."""

import asyncio
import json
import socket

import pytest

from engines.simulator import Pace, Request, RunningEngine, build_app, serve, simulated, start
from tests.contract.client import send
from tests.support.waiting import until, within
from tests.unit.engines.simulator.wire import ask, chat, engine, get, half_read, request

KINDS = ["vllm", "trtllm", "triton"]


@pytest.mark.parametrize("kind", KINDS)
async def test_the_same_request_gives_the_same_answer(kind: str) -> None:
    """Ids and times aside, answers repeat, whole and streamed."""
    async with engine(kind) as running:
        whole = [json.loads((await ask(running, "Tell me a story.")).body)["choices"] for _ in range(2)]
        streams = [(await ask(running, "Tell me a story.", stream=True)).chunks for _ in range(2)]
    assert whole[0] == whole[1]
    assert len(streams[0]) == len(streams[1]) > 5


@pytest.mark.parametrize("kind", KINDS)
async def test_the_answer_names_the_model(kind: str) -> None:
    """Any number of models on one server; the listing has them all."""
    async with engine(kind, models=["one", "two"]) as running:
        body = {"model": "two", "messages": [{"role": "user", "content": "Hello"}]}
        answer = await send(running.port, request("/v1/chat/completions", body))
        listed = json.loads((await get(running, "/v1/models")).body)
    assert json.loads(answer.body)["model"] == "two"
    assert [row["id"] for row in listed["data"]] == ["one", "two"]


@pytest.mark.parametrize(("kind", "status"), [("vllm", 400), ("trtllm", 400), ("triton", 500)])
async def test_a_prompt_over_the_context_is_refused_in_each_engines_way(kind: str, status: int) -> None:
    """vLLM and trtllm-serve with 400, Triton with the engine's error in a 500."""
    async with engine(kind) as running:
        assert (await ask(running, "word " * 5000)).status == status


@pytest.mark.parametrize("kind", KINDS)
async def test_a_running_engine_knows_its_address_and_stops_at_once(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Port 0 takes a free one; stopping closes the listener and every connection, quietly, also in a stream."""
    running = await start(build_app(kind, ["tiny"], Pace(inter_token=0.05)))
    async with half_read(running):
        await within(running.stop(), 1.0, "stopping")
        with pytest.raises(OSError, match="Connect call failed"):
            await asyncio.open_connection(running.host, running.port)
    assert running.load.running == 0
    assert caplog.records == []


async def test_a_taken_port_is_an_error() -> None:
    """OSError, before anything runs."""
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        await start(build_app("vllm"), port=taken.getsockname()[1])


async def test_serving_ends_when_it_is_told_to() -> None:
    """`serve` tells when it listens and returns after `stop`."""
    stop, urls = asyncio.Event(), list[str]()

    def started(running: RunningEngine) -> None:
        urls.append(running.url)

    async with asyncio.TaskGroup() as group:
        group.create_task(serve("vllm", stop=stop, started=started))
        await until(lambda: bool(urls))
        stop.set()
    assert urls[0].startswith("http://127.0.0.1:")


async def test_simulated_yields_the_base_url() -> None:
    """The short form for tests of other parts."""
    async with simulated("trtllm", ["llama"]) as url:
        port = int(url.rsplit(":", 1)[1])
        assert (await send(port, request("/health"))).status == 200


async def test_an_observer_sees_requests_as_they_arrived() -> None:
    """Method, path, headers and the body byte for byte."""
    seen: list[Request] = []
    running = await start(build_app("vllm", ["tiny"], observer=seen.append))
    try:
        await send(running.port, {**chat(), "body": '{"model": "tiny",\n "messages": []}'})
    finally:
        await running.stop()
    assert (seen[0].method, seen[0].path) == ("POST", "/v1/chat/completions")
    assert seen[0].body == b'{"model": "tiny",\n "messages": []}'
    assert seen[0].header(b"content-type") == "application/json"


async def test_an_idle_connection_is_closed_after_five_seconds() -> None:
    """As the three real servers do (`wire_keepalive_idle`, `keep_alive`)."""
    loop = asyncio.get_running_loop()
    async with engine("vllm") as running:
        reader, writer = await asyncio.open_connection(running.host, running.port)
        writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        idle_since = loop.time()
        assert await within(reader.read(), 8.0, "closing") == b""
        writer.close()
    assert 4.5 < loop.time() - idle_since < 7.5


@pytest.mark.parametrize("key", ["secret", "nonsense:header:value"])
def test_triton_keys_need_their_api_and_header(key: str) -> None:
    """A restricted API is written API:HEADER:VALUE."""
    with pytest.raises(ValueError, match="API:HEADER:VALUE"):
        build_app("triton", api_keys=[key])


def test_an_unknown_kind_is_refused() -> None:
    """ValueError, as for any enumeration."""
    with pytest.raises(ValueError, match="sglang"):
        build_app("sglang")
