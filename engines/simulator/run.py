"""Carries one piece of work out: waits as the pace says, sends what was rendered, plays scripted faults."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from engines.simulator.load import Load, ModelLoad
from engines.simulator.pace import Faults
from engines.simulator.wire import Frames, Reply, Work

Send: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[None]]

_SLICE = 0.05
"""Longest sleep, in seconds, of an answer that is not streamed, so that a growing batch still slows it down."""
_BREATH = 16
"""Events of an instant stream between two turns of the event loop."""


class Cut(Exception):
    """The connection has to be closed now, in the middle of the answer or before it; `reset`: with RST."""

    def __init__(self, *, reset: bool = False) -> None:
        super().__init__()
        self.reset = reset


class Silent(Exception):
    """Nothing more will be sent; the connection stays open."""


class _EngineFailed(Exception):
    """The engine behind the frontend failed."""


Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]


async def send_reply(send: Send, reply: Reply, more: Headers = ()) -> None:
    """Sends a finished reply."""
    headers = [(b"content-length", str(len(reply.body)).encode())]
    if reply.content_type is not None and reply.body:
        headers.append((b"content-type", reply.content_type))
    own = {name for name, _ in reply.headers}
    headers.extend((*reply.headers, *(pair for pair in more if pair[0] not in own)))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


class Run:
    """One work under way."""

    def __init__(self, work: Work, load: Load, faults: Faults, send: Send, headers: Headers) -> None:
        self._work, self._load, self._faults, self._send = work, load, faults, send
        self._headers = headers
        self._loop = asyncio.get_running_loop()
        self._events = 0
        self._due = 0.0
        self._arrived = self._loop.time()

    async def __call__(self) -> None:
        """Runs to the end. Raises `Cut` or `Silent` when the script asks for it."""
        work = self._work
        if work.body is None:
            await self._start()
            await self._emit(work.opening)
        async with self._load.admitted(work.model, work.prompt_tokens) as state:
            state.queue.observe(self._loop.time() - self._arrived)
            try:
                if work.body is None:
                    await self._stream(state)
                else:
                    await self._whole(state, work.body)
            except _EngineFailed:
                state.failed += 1
                await self._failed()
                return
            except asyncio.CancelledError:
                state.aborted += 1
                raise
            self._count(state)

    async def _start(self) -> None:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), *self._headers]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _stream(self, state: ModelLoad) -> None:
        work = self._work
        await self._sleep(self._load.pace.before_first(work.prompt_tokens))
        state.first_token.observe(self._loop.time() - self._arrived)
        self._due = self._loop.time()
        for index, frames in enumerate(work.steps):
            if work.fails_at is not None and index >= work.fails_at:
                raise _EngineFailed
            if index:
                await self._next_token(index)
            state.kv_tokens += 1
            await self._emit(frames)
        if work.fails_at is not None:
            raise _EngineFailed
        await self._emit(work.closing)
        await self._send({"type": "http.response.body", "body": b""})

    async def _next_token(self, index: int) -> None:
        gap = self._load.pace.between(self._load.running)
        if gap:
            self._due += gap
            await self._sleep(self._due - self._loop.time())
        elif index % _BREATH == 0:
            await asyncio.sleep(0)

    async def _whole(self, state: ModelLoad, body: bytes) -> None:
        work = self._work
        await self._sleep(self._load.pace.before_first(work.prompt_tokens))
        state.first_token.observe(self._loop.time() - self._arrived)
        left = float(max(0, len(work.steps) - 1))
        while left > 0 and (gap := self._load.pace.between(self._load.running)):
            taken = min(left, max(1.0, _SLICE / gap))
            await self._sleep(taken * gap)
            state.kv_tokens += int(taken)
            left -= taken
        if work.fails_at is not None or self._faults.engine_error_after is not None:
            raise _EngineFailed
        if self._faults.die_after is not None:
            raise Cut(reset=self._faults.reset)
        if self._faults.silent_after is not None:
            raise Silent
        await send_reply(self._send, Reply(200, body), self._headers)

    async def _emit(self, frames: Frames) -> None:
        faults = self._faults
        for frame in frames:
            if faults.engine_error_after == self._events:
                raise _EngineFailed
            if faults.die_after == self._events:
                raise Cut(reset=faults.reset)
            if faults.silent_after == self._events:
                raise Silent
            self._events += 1
            await self._send({"type": "http.response.body", "body": frame, "more_body": True})

    async def _failed(self) -> None:
        failure = self._work.failure
        if self._work.body is not None:
            await send_reply(self._send, failure.reply, self._headers)
            return
        for frame in failure.frames:
            await self._send({"type": "http.response.body", "body": frame, "more_body": True})
        if failure.cut:
            raise Cut
        await self._send({"type": "http.response.body", "body": b""})

    async def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            await asyncio.sleep(seconds)

    def _count(self, state: ModelLoad) -> None:
        work = self._work
        state.finished[work.finish] = state.finished.get(work.finish, 0) + 1
        state.prompt_tokens += work.prompt_tokens
        state.generated_tokens += work.tokens
        took = self._loop.time() - self._arrived
        state.whole.observe(took)
        if work.tokens > 1:
            state.inter_token.observe(took / work.tokens, work.tokens - 1)
