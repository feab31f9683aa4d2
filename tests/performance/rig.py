"""The data path in memory: real protocol objects, between transports that only count and a clock that stands still.

Nothing here waits, and nothing depends on the machine or on time, so that the same code does exactly the same work in
every run.
"""

import asyncio
import functools
import itertools
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
from contextvars import Context
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.server import ServerState

from gateway.app import Application, Gateway
from gateway.metrics import Meters
from gateway.proxy.building import build_plane
from gateway.proxy.connection import Connection
from gateway.proxy.guarded import GuardedProtocol
from gateway.proxy.plane import Plane
from gateway.proxy.protocol import GatewayProtocol
from gateway.proxy.upstream import ConnectionPool
from gateway.settings.source import Configuration
from gateway.settings.tree import Settings
from tests.support.json_type import Json

NOW: Final = 1000.0
Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


class StillLoop(asyncio.BaseEventLoop):
    """An event loop on which nothing runs: it tells the time, always the same, and takes timers that never come."""

    def __init__(self) -> None:
        super().__init__()
        self.close()

    def time(self) -> float:
        return NOW

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return asyncio.TimerHandle(NOW + delay, callback, args, self, context)


class SteppedLoop(StillLoop):
    """A still loop that runs what is called soon, and so tasks, when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self._soon: deque[asyncio.Handle] = deque()

    def call_soon(
        self,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._soon.append(handle)
        return handle

    def create_task(
        self,
        coro: Generator[Any, None, Result] | Coroutine[Any, Any, Result],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> asyncio.Task[Result]:
        return asyncio.Task(coro, loop=self, context=context)

    def catch_up(self) -> None:
        """Runs until nothing is left to be run."""
        asyncio._set_running_loop(self)
        try:
            while self._soon:
                self._soon.popleft()._run()
        finally:
            asyncio._set_running_loop(None)


class Counter(asyncio.Transport):
    """A transport whose peer takes everything."""

    def __init__(self) -> None:
        super().__init__()
        self.written = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += len(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        for data in list_of_data:
            self.written += len(data)

    def is_closing(self) -> bool:
        return False

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def pause_reading(self) -> None:
        raise AssertionError("nobody is slow here")

    def resume_reading(self) -> None:
        raise AssertionError("nobody is slow here")

    def close(self) -> None:
        raise AssertionError("no connection ends here")

    def abort(self) -> None:
        raise AssertionError("no connection breaks here")


async def no_application(scope: Scope, receive: Receive, send: Send) -> None:
    """Every request is for the data path."""
    raise AssertionError(scope)


class Rig:
    """A plane with client connections and engine connections that are already open."""

    def __init__(self, settings: Mapping[str, Json]) -> None:
        self.loop = self.make_loop()
        self.plane: Plane = build_plane(Settings.model_validate(settings), self.loop, Meters())
        self._config = Config(self.application(), log_config=None, ws="none", proxy_headers=False)
        self._state = ServerState()
        self._state.default_headers = [(b"date", b"Thu, 01 Jan 1970 00:00:00 GMT")]
        self._turn = itertools.cycle(self.plane.endpoints.values())
        self._engine_connections: list[Connection] = []

    def make_loop(self) -> StillLoop:
        """What tells the time."""
        return StillLoop()

    def application(self) -> ASGIApp:
        """Who gets what the client's protocol does not serve by itself."""
        return no_application

    def catch_up(self) -> None:
        """Lets tasks run, where there are any."""

    def client(self) -> GatewayProtocol:
        """A client that has just connected."""
        protocol = GatewayProtocol(self, self._config, self._state, {})
        protocol.connection_made(Counter())
        return protocol

    def connect(self) -> asyncio.Protocol:
        """A client that has just connected, whoever serves it."""
        return self.client()

    def connect_engines(self) -> None:
        """One idle connection to every endpoint."""
        for _ in self.plane.endpoints:
            self.connect_next_engine()

    def connect_next_engine(self) -> Connection:
        """One idle connection more, to each endpoint in turn."""
        connection = connected(next(self._turn).pool)
        self._engine_connections.append(connection)
        return connection

    def forget(self, connection: Connection) -> None:
        """The connection stays open, but nobody will look for it here."""
        self._engine_connections.remove(connection)

    def asked(self) -> Connection:
        """The engine connection that a request was sent on."""
        return next(one for one in self._engine_connections if one.listener is not None)


class AsgiRig(Rig):
    """The same with uvicorn's own protocol, the whole application, and a task per request."""

    loop: SteppedLoop

    def make_loop(self) -> StillLoop:
        return SteppedLoop()

    def application(self) -> ASGIApp:
        gateway = Gateway(Configuration(Settings()))
        gateway.plane = self.plane
        return Application(gateway)

    def catch_up(self) -> None:
        self.loop.catch_up()

    def connect(self) -> asyncio.Protocol:
        protocol = GuardedProtocol(self, self._config, self._state, {}, self.loop)
        protocol.connection_made(Counter())
        return protocol


def connected(pool: ConnectionPool) -> Connection:
    connection = Connection(pool)
    connection.connection_made(Counter())
    pool.keep(connection)
    return connection


@functools.cache
def text(size: int) -> str:
    """Plain words of that many characters."""
    sentence = "A request is forwarded to an engine, and its answer comes back in pieces. "
    return (sentence * (size // len(sentence) + 1))[:size]
