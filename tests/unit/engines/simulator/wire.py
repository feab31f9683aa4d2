"""Requests to simulated engines over real sockets."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from engines.simulator import Faults, Pace, RunningEngine, SimulatedModel, build_app, listening
from tests.contract.client import Answer, send

MODEL = SimulatedModel("tiny")
CHAT = "/v1/chat/completions"


@asynccontextmanager
async def engine(
    kind: str,
    pace: Pace | None = None,
    models: Sequence[SimulatedModel | str] = (MODEL,),
    *,
    faults: Faults | None = None,
    api_keys: Sequence[str] = (),
) -> AsyncIterator[RunningEngine]:
    app = build_app(kind, models, pace or Pace(), faults=faults or Faults(), api_keys=api_keys)
    async with listening(app) as running:
        yield running


def request(path: str, body: object = None, **headers: str) -> Mapping[str, Any]:
    """A request as the contract's client sends it."""
    shown = [["Content-Type", "application/json"]] if body is not None else []
    shown += [[name.replace("_", "-"), value] for name, value in headers.items()]
    method = "GET" if body is None else "POST"
    return {"method": method, "path": path, "request_headers": shown, "http": "1.1", "body": body}


def chat(text: str = "Hello", **members: object) -> Mapping[str, Any]:
    return request(CHAT, {"model": "tiny", "messages": [{"role": "user", "content": text}], **members})


async def ask(running: RunningEngine, text: str = "Hello", **members: object) -> Answer:
    return await send(running.port, chat(text, **members))


async def get(running: RunningEngine, path: str) -> Answer:
    return await send(running.port, request(path))


@asynccontextmanager
async def half_read(running: RunningEngine, *, stream: bool = True, **members: object) -> AsyncIterator[None]:
    """A long answer of which the client reads a little; leaving the context closes the connection."""
    sent = chat("Tell me a story.", stream=stream, max_tokens=400, ignore_eos=True, **members)
    body = json.dumps(sent["body"]).encode()
    reader, writer = await asyncio.open_connection(running.host, running.port)
    head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    if stream:
        await reader.readuntil(b"data: ")
    try:
        yield
    finally:
        writer.close()
        await writer.wait_closed()


def metric(text: bytes, name: str) -> float:
    """The first sample of a family."""
    lines = text.decode().splitlines()
    found = next(line for line in lines if line.startswith((f"{name}{{", f"{name} ")))
    return float(found.rsplit(" ", 1)[1])
