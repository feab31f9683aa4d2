"""A client that shows an answer as it is on the wire: header values, chunks, and whether it was cut."""

import asyncio
import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LIMIT = 20.0
"""Seconds until an answer counts as missing."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    chunks: list[str] = field(default_factory=list)
    complete: bool = True


def encoded(body: object) -> bytes:
    """A recorded body as bytes: JSON, a text as it stands, or base64."""
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, dict) and set(body) == {"base64"}:
        return base64.b64decode(body["base64"])
    return json.dumps(body).encode()


async def send(port: int, exchange: Mapping[str, Any], host: str = "127.0.0.1") -> Answer:
    """Sends a recorded request to an engine."""
    async with asyncio.timeout(LIMIT):
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(_request(exchange))
            await writer.drain()
            return await _answer(reader, exchange["method"])
        finally:
            writer.close()
            await writer.wait_closed()


def _request(exchange: Mapping[str, Any]) -> bytes:
    body = encoded(exchange["body"])
    headers = [tuple(pair) for pair in exchange["request_headers"]]
    names = {name.lower() for name, _ in headers}
    if "host" not in names:
        headers.insert(0, ("Host", "engine"))
    if "transfer-encoding" in names:
        middle = len(body) // 2
        parts = (body[:middle], body[middle:])
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    elif body or exchange["method"] == "POST":
        headers.append(("Content-Length", str(len(body))))
    lines = [f"{exchange['method']} {exchange['path']} HTTP/{exchange['http']}", *(f"{k}: {v}" for k, v in headers)]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def _answer(reader: asyncio.StreamReader, method: str) -> Answer:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    status = int(first.split(" ")[1])
    if headers.get("transfer-encoding") == "chunked":
        chunks, complete = await _chunks(reader)
        return Answer(status, headers, "".join(chunks).encode(), chunks, complete)
    length = 0 if method == "HEAD" else int(headers.get("content-length", 0))
    return Answer(status, headers, await reader.readexactly(length))


async def _chunks(reader: asyncio.StreamReader) -> tuple[list[str], bool]:
    chunks: list[str] = []
    while True:
        try:
            size = int((await reader.readuntil(b"\r\n")).strip(), 16)
            data = await reader.readexactly(size + 2)
        except (asyncio.IncompleteReadError, ConnectionError):
            return chunks, False
        if size == 0:
            return chunks, True
        chunks.append(data[:-2].decode())
