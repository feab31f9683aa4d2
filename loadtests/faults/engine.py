"""A simulated vLLM that can be told to misbehave: `python -m loadtests.faults.engine`.

It takes orders as lines of JSON on its standard input, and writes to a file what becomes of every request that says
`Request N`: `S N` when it is there, `R N` when it was refused at once, `E N` when it was answered to the end, each with
the moment. The file is written before anything else happens, so that it is true after a SIGKILL too.
"""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Final

import msgspec
import typer
import uvloop

from engines.simulator import Faults, Pace, Request, RunningEngine, SimulatedEngine, build_app, start
from engines.simulator.app import Receive, Scope
from engines.simulator.run import Send

MODEL: Final = "vendor/model"
_NUMBER: Final = re.compile(rb"Request (\d+)")


class Order(msgspec.Struct):
    """What it should do from now on; absent: as before."""

    faults: Faults | None = None
    pace: Pace | None = None

    def line(self) -> bytes:
        """As it is sent."""
        return msgspec.json.encode({key: asdict(value) for key, value in msgspec.structs.asdict(self).items() if value})


class Recorded:
    """The engine's application, with a record of what became of each request."""

    def __init__(self, pace: Pace, record: Path) -> None:
        self.engine: SimulatedEngine = build_app("vllm", [MODEL], pace, observer=self._arrived)
        self._record = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._number: ContextVar[bytes | None] = ContextVar("number")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        self._number.set(None)

        async def say(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 400:
                self._note(b"R")
                self._number.set(None)
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                self._note(b"E")

        await self.engine(scope, receive, say)

    def _arrived(self, request: Request) -> None:
        found = _NUMBER.search(request.body)
        self._number.set(found[1] if found else None)
        self._note(b"S")

    def _note(self, what: bytes) -> None:
        number = self._number.get()
        if number is not None:
            os.write(self._record, b"%s %s %f\n" % (what, number, perf_counter()))


async def _run(recorded: Recorded, host: str, port: int, keep_alive: float) -> None:
    running = await start(recorded.engine, host, port, keep_alive, application=recorded)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, running.hush)
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    sys.stdout.write(f"listening on {running.url}\n")
    sys.stdout.flush()
    while line := await orders.readline():
        _obey(running, msgspec.json.decode(line, type=Order))
    await running.stop()  # whoever gave the orders is gone


def _obey(running: RunningEngine, order: Order) -> None:
    if order.faults is not None:
        running.faults = order.faults
    if order.pace is not None:
        running.engine.pace = order.pace


def main(
    host: Annotated[str, typer.Option()],
    port: Annotated[int, typer.Option()],
    record: Annotated[Path, typer.Option()],
    pace: Annotated[str, typer.Option(help="An order.")],
    keep_alive: Annotated[float, typer.Option()] = 5.0,
) -> None:
    """Serve, and obey."""
    order = msgspec.json.decode(pace, type=Order)
    uvloop.run(_run(Recorded(order.pace or Pace(), record), host, port, keep_alive))


if __name__ == "__main__":
    typer.run(main)
