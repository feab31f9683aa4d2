"""The gateway between a scripted engine and a client that sees every byte."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest
import uvloop

from tests.support.client import Client
from tests.support.json_type import Json
from tests.support.scripted import ScriptedEngine
from tests.support.serving import CARRIERS, Serving


class Gateway(Protocol):
    """Starts a gateway from settings; ``whole``: with its control plane and health checks; ``file``: follows one."""

    def __call__(
        self, settings: Mapping[str, Json], *, whole: bool = False, file: Path | None = None
    ) -> Awaitable[Serving]: ...


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """These tests run on the loop that the gateway is served with."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(autouse=True)
async def nothing_unheard() -> AsyncIterator[None]:
    """Fails a test in which a callback raised: the loop would only log it."""
    heard: list[dict[str, Json]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
    yield
    assert heard == []


@pytest.fixture(params=list(CARRIERS))
def carrier(request: pytest.FixtureRequest) -> str:
    """What carries the exchanges."""
    return str(request.param)


@pytest.fixture
async def gateway(carrier: str, nothing_unheard: None) -> AsyncIterator[Gateway]:
    """Starts gateways from settings."""
    started: list[Serving] = []

    async def start(settings: Mapping[str, Json], *, whole: bool = False, file: Path | None = None) -> Serving:
        serving = Serving(settings, carrier, whole=whole, file=file)
        await serving.start()
        started.append(serving)
        return serving

    yield start
    for serving in started:
        await serving.stop()


@pytest.fixture
async def engines(nothing_unheard: None) -> AsyncIterator[Callable[[], Awaitable[ScriptedEngine]]]:
    """Starts scripted engines."""
    started: list[ScriptedEngine] = []

    async def start() -> ScriptedEngine:
        started.append(await ScriptedEngine().start())
        return started[-1]

    yield start
    for engine in started:
        await engine.stop()


@pytest.fixture
async def engine(engines: Callable[[], Awaitable[ScriptedEngine]]) -> ScriptedEngine:
    """One scripted engine."""
    return await engines()


@pytest.fixture
async def other(engines: Callable[[], Awaitable[ScriptedEngine]]) -> ScriptedEngine:
    """A second scripted engine."""
    return await engines()


@pytest.fixture
def full_listener() -> Iterator[int]:
    """A port that takes no connection: nobody accepts, and the queue is full."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        port: int = listening.getsockname()[1]
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(("127.0.0.1", port))
        yield port


@pytest.fixture
async def serving(gateway: Gateway, engine: ScriptedEngine) -> Serving:
    """A gateway in front of the one engine, a vLLM: model ``m`` is ``org/m`` there, ``same`` has one name."""
    return await gateway(one_engine(engine))


@pytest.fixture
async def client(serving: Serving) -> AsyncIterator[Client]:
    """A connection to it."""
    async with await serving.connect() as connected:
        yield connected


def one_engine(
    engine: ScriptedEngine, kind: str = "vllm", *, server: Mapping[str, Json] | None = None, **settings: Json
) -> dict[str, Json]:
    """Settings with one engine ``e`` of that kind."""
    return {
        "server": dict(server or {}),
        "engines": {"e": {"kind": kind, "urls": [engine.url], **settings}},
        "models": {
            "m": {"engine": "e", "model": "org/m", "aliases": ["gpt-4o"]},
            "same": {"engine": "e"},
            "vectors": {"engine": "e", "model": "org/vectors", "task": "embedding"},
        },
    }
