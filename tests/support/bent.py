"""A simulated engine whose answers a test changes: for faults that no recording of the engine has."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from engines.profile import EngineKind
from engines.simulator.app import Observer, Receive, Scope, SimulatedEngine
from engines.simulator.build import FRONTENDS
from engines.simulator.models import SimulatedModel
from engines.simulator.pace import Pace
from engines.simulator.run import Send

Change: TypeAlias = Callable[[str, bytes], bytes]
"""From the path of a request and a piece of its answer's body to what is sent instead. Chunks stay chunks."""


class Bent(SimulatedEngine):
    """Answers like the engine, but for what ``change`` makes of it."""

    def __init__(
        self, kind: EngineKind, models: Sequence[SimulatedModel], change: Change, observer: Observer | None = None
    ) -> None:
        super().__init__(kind, FRONTENDS[kind], models, Pace(), observer=observer)
        self._change = change

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        start: dict[str, Any] = {}

        async def bend(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            body = self._change(scope["path"], message.get("body", b""))
            if start:
                headers = [(name, value) for name, value in start["headers"] if name != b"content-length"]
                if not message.get("more_body", False):
                    headers.append((b"content-length", b"%d" % len(body)))
                await send({**start, "headers": headers})
                start.clear()
            await send({**message, "body": body})

        await super().__call__(scope, receive, bend)
