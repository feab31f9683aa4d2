"""The ASGI application of a simulated engine."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, TypeAlias

from engines.profile import EngineKind
from engines.simulator.load import Load
from engines.simulator.models import SimulatedModel
from engines.simulator.pace import NO_FAULTS, Faults, Pace
from engines.simulator.run import Cut, Run, Send, Silent, send_reply
from engines.simulator.wire import Frontend, Leaving, Reply, Request, Work

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
MakeFrontend: TypeAlias = Callable[[Sequence[SimulatedModel], Load, Sequence[str]], Frontend]
Observer: TypeAlias = Callable[[Request], None]

CLOSE = "simulator.close"
"""Key in the ASGI scope's `state` under which the server offers to close the connection as it stands."""


RESET = "simulator.reset"
"""The same with RST."""


class _ClientGone(Exception):
    """The client closed its connection."""


class SimulatedEngine:
    """An ASGI application that answers like an inference engine. It is a stand-in, not an engine.

    `faults` and `pace` may be replaced at any time; they act on what is sent afterwards.
    """

    def __init__(
        self,
        kind: EngineKind,
        make: MakeFrontend,
        models: Sequence[SimulatedModel],
        pace: Pace,
        faults: Faults = NO_FAULTS,
        api_keys: Sequence[str] = (),
        observer: Observer | None = None,
    ) -> None:
        self.kind = kind
        self.faults = faults
        self.stopping = False
        """Set by the server before it cancels what runs, which then ends without a word."""
        self.hushed = False
        """What runs says nothing more, and its connections stay open."""
        self.load = Load((model.name for model in models), pace)
        self._frontend = make(models, self.load, api_keys)
        self._observer = observer

    @property
    def pace(self) -> Pace:
        """How fast it answers."""
        return self.load.pace

    @pace.setter
    def pace(self, pace: Pace) -> None:
        self.load.pace = pace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        try:
            await self._serve(scope, receive, send)
        except asyncio.CancelledError:
            if not self.stopping:
                raise

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = await _read(scope, receive)
        if request is None:
            return

        async def say(message: Mapping[str, Any]) -> None:
            if self.hushed:
                raise Silent
            await send(message)

        if self._observer is not None:
            self._observer(request)
        answer = self._frontend.respond(request, unhealthy=self.faults.unhealthy)
        try:
            if isinstance(answer, Reply):
                await send_reply(say, answer, self._frontend.headers)
            else:
                await self._work(answer, receive, say)
        except Cut as cut:
            await _cut(scope, receive, RESET if cut.reset else CLOSE)
        except Silent:
            await _gone(receive)

    async def _work(self, work: Work, receive: Receive, send: Send) -> None:
        load = self.load
        load.accepted += 1
        faults = self.faults if self.faults.hits(load.accepted) else NO_FAULTS
        if faults.never_answer:
            raise Silent
        if faults.status is not None:
            await send_reply(send, self._frontend.fault(faults.status), self._frontend.headers)
            return
        if load.full and (refusal := self._frontend.refusal()) is not None:
            load.rejected += 1
            await send_reply(send, refusal, self._frontend.headers)
            return
        run = Run(work, load, faults, send, self._frontend.headers)
        if self._frontend.leaving is Leaving.RUN_ON or (self.pace.instant and self.pace.max_running is None):
            await run()
            return
        await self._while_client_stays(run, receive)

    async def _while_client_stays(self, run: Run, receive: Receive) -> None:
        started = asyncio.get_running_loop().time()

        async def watch() -> None:
            await _gone(receive)
            if self._frontend.leaving is Leaving.ABORT_ON_POLL:
                await asyncio.sleep(1.0 - (asyncio.get_running_loop().time() - started) % 1.0)
            raise _ClientGone

        ended: Cut | Silent | None = None
        try:
            async with asyncio.TaskGroup() as group:
                watcher = group.create_task(watch())
                try:
                    await run()
                except (Cut, Silent) as error:
                    ended = error
                watcher.cancel()
        except* _ClientGone:
            ended = None
        if ended is not None:
            raise ended


async def _read(scope: Scope, receive: Receive) -> Request | None:
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            break
    return Request(scope["method"], scope["path"], dict(scope["headers"]), b"".join(parts))


async def _gone(receive: Receive) -> None:
    """Returns when the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _cut(scope: Scope, receive: Receive, how: str) -> None:
    """Closes the connection in the middle of the answer, with no last chunk."""
    close = scope.get("state", {}).get(how)
    if close is None:
        raise ConnectionError("the simulated engine ends this answer here")
    close()
    await _gone(receive)


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
