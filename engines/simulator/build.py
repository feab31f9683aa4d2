"""Puts a simulated engine together and runs it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from engines.profile import EngineKind
from engines.simulator.app import MakeFrontend, Observer, SimulatedEngine
from engines.simulator.models import SimulatedModel, parse_model
from engines.simulator.pace import NO_FAULTS, Faults, Pace
from engines.simulator.server import RunningEngine, start
from engines.simulator.triton.frontend import TritonFrontend
from engines.simulator.trtllm.frontend import TrtllmFrontend
from engines.simulator.vllm.frontend import VllmFrontend

FRONTENDS: Mapping[EngineKind, MakeFrontend] = {
    EngineKind.VLLM: VllmFrontend,
    EngineKind.TRTLLM: TrtllmFrontend,
    EngineKind.TRITON: TritonFrontend,
}
_PORTS: Mapping[EngineKind, int] = {EngineKind.VLLM: 8000, EngineKind.TRTLLM: 8000, EngineKind.TRITON: 9000}

INSTANT = Pace()


def default_models(kind: EngineKind | str) -> tuple[SimulatedModel, ...]:
    """The model of an engine that was given no name."""
    return (SimulatedModel(f"tiny-{EngineKind(kind).value}"),)


def default_port(kind: EngineKind | str) -> int:
    """The port that the real server listens on by default."""
    return _PORTS[EngineKind(kind)]


def build_app(
    kind: EngineKind | str,
    models: Sequence[SimulatedModel | str] = (),
    pace: Pace = INSTANT,
    *,
    faults: Faults = NO_FAULTS,
    api_keys: Sequence[str] = (),
    observer: Observer | None = None,
) -> SimulatedEngine:
    """The ASGI application of one simulated engine.

    Models are values or texts such as `NAME` and `NAME:embedding` (see `parse_model`). `observer` is called with
    every complete request. Raises ValueError for an unknown kind or a model text that cannot be read.
    """
    chosen = tuple(parse_model(model) if isinstance(model, str) else model for model in models)
    engine_kind = EngineKind(kind)
    return SimulatedEngine(
        engine_kind, FRONTENDS[engine_kind], chosen or default_models(engine_kind), pace, faults, api_keys, observer
    )


@contextlib.asynccontextmanager
async def simulated(
    kind: EngineKind | str,
    models: Sequence[SimulatedModel | str] = (),
    pace: Pace = INSTANT,
    *,
    faults: Faults = NO_FAULTS,
    api_keys: Sequence[str] = (),
    observer: Observer | None = None,
) -> AsyncIterator[str]:
    """Runs an engine on a free loopback port in this event loop; yields its base URL."""
    engine = build_app(kind, models, pace, faults=faults, api_keys=api_keys, observer=observer)
    running = await start(engine)
    try:
        yield running.url
    finally:
        await running.stop()


async def serve(
    kind: EngineKind | str,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    models: Sequence[SimulatedModel | str] = (),
    pace: Pace = INSTANT,
    faults: Faults = NO_FAULTS,
    api_keys: Sequence[str] = (),
    stop: asyncio.Event | None = None,
    started: Callable[[RunningEngine], None] | None = None,
) -> None:
    """Serves until `stop` is set or the caller is cancelled, then ends cleanly.

    `started` is called once the engine listens; its argument knows the URL and the bound port. Raises OSError when
    the address cannot be bound, ValueError as `build_app` does.
    """
    engine = build_app(kind, models, pace, faults=faults, api_keys=api_keys)
    await serve_app(engine, host, port, stop=stop, started=started)


async def serve_app(
    engine: SimulatedEngine,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    stop: asyncio.Event | None = None,
    started: Callable[[RunningEngine], None] | None = None,
) -> None:
    """As `serve`, for an engine that `build_app` made."""
    running = await start(engine, host, port)
    try:
        if started is not None:
            started(running)
        await (stop or asyncio.Event()).wait()
    finally:
        await running.stop()
