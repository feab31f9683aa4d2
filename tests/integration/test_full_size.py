"""Thousands of streams and megabytes of text through a gateway process, with liveness probes beside them."""

import asyncio
import json
import resource
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.client import Client
from tests.support.openai_bytes import CHAT, DONE, STREAM, delta, deltas, event
from tests.support.process import Process
from tests.support.scripted import ScriptedEngine, Talk, stream
from tests.support.waiting import within

STREAMS = 2000
PATIENCE = 90.0
PROBE = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"

SLOWEST = 2.0
"""Seconds that a probe may take. The gateway needs a few milliseconds; other programs may have both cores."""

pytestmark = pytest.mark.timeout(200)


@pytest.fixture
def few_files() -> Iterator[None]:
    """A process that starts now is allowed the 1024 open files that many systems begin with; this one then has more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard == resource.RLIM_INFINITY or hard >= 3 * STREAMS, f"only {hard} open files are allowed here"
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(params=["protocol", "asgi"])
async def port(
    tmp_path: Path, engine: ScriptedEngine, few_files: None, request: pytest.FixtureRequest
) -> AsyncIterator[int]:
    """A gateway in front of the scripted engine."""
    settings = {
        "server": {"port": 0},
        "engines": {"e": {"kind": "vllm", "urls": [engine.url]}},
        "models": {"m": {"engine": "e", "reasoning": {"format": "deepseek_r1", "field": "reasoning"}}},
    }
    (tmp_path / "turnout.yaml").write_text(json.dumps(settings))
    process = Process(tmp_path, "serve", "--carrier", request.param)
    try:
        port = await process.listening()
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        yield port
        assert process.popen.poll() is None, process.stderr[-2000:]
    finally:
        process.kill()


def probe(port: int, ended: threading.Event) -> list[float]:
    """Asks every tenth of a second whether the gateway lives; how long each answer took.

    To be run in a thread: the test's own loop has its hands full.
    """
    took = []
    while not ended.is_set():
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
            client.sendall(PROBE)
            assert client.recv(100).startswith(b"HTTP/1.1 200 OK")
        took.append(time.monotonic() - began)
        ended.wait(0.1)
    return took


async def test_two_thousand_slow_streams_all_finish_and_probes_pass(port: int, engine: ScriptedEngine) -> None:
    """Case E61. The gateway starts with a limit of 1024 open files and needs four thousand."""
    go = asyncio.Event()
    first, *rest = deltas("a", "b")

    async def slow(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(first, rest[0])
        await go.wait()
        await talk.chunk(*rest[1:], DONE)
        await talk.end_chunks()

    async def one() -> bytes:
        async with await Client.open(port) as client:
            await client.post(CHAT, STREAM | {"model": "m"})
            answer = await client.answer()
            assert answer.status == 200
            return answer.events[-1]

    engine.answer(slow)
    ended = threading.Event()
    probing = asyncio.ensure_future(asyncio.to_thread(probe, port, ended))
    tasks = []
    for _ in range(STREAMS // 100):
        tasks += [asyncio.ensure_future(one()) for _ in range(100)]
        await within(engine.request(len(tasks)), PATIENCE, "requests at the engine")
    go.set()
    last = await within(asyncio.gather(*tasks), PATIENCE, "the ends of all streams")
    ended.set()

    assert last == [b"[DONE]"] * STREAMS
    assert max(await probing) < SLOWEST


async def test_probes_pass_while_megabytes_of_reasoning_are_read(port: int, engine: ScriptedEngine) -> None:
    """Case E60: a prompt of a megabyte, and a megabyte of reasoning to be told from the answer, word by word."""
    thoughts = [event(delta(" word" * 10)) for _ in range(20_000)]
    engine.answer(stream(event(delta("<think>")), *thoughts, event(delta("</think>Yes.")), *deltas()[1:], DONE))
    body = STREAM | {"model": "m", "messages": [{"role": "user", "content": "word " * 200_000}]}

    async def one() -> tuple[str, str]:
        async with await Client.open(port, limit=2**20) as client:
            await client.post(CHAT, body)
            answer = await client.answer()
        said = [json.loads(each)["choices"][0]["delta"] for each in answer.events[:-1]]
        assert answer.events[-1] == b"[DONE]"
        thought = "".join(one.get("reasoning") or "" for one in said)
        return thought, "".join(one.get("content") or "" for one in said)

    ended = threading.Event()
    probing = asyncio.ensure_future(asyncio.to_thread(probe, port, ended))
    found = [await within(one(), PATIENCE, "an answer") for _ in range(2)]
    ended.set()

    assert found == [(" word" * 200_000, "Yes.")] * 2
    assert max(await probing) < SLOWEST
