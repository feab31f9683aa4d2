"""How long a server keeps an idle connection: a library would hide the moment at which it closes."""

import asyncio
import ssl
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

import httptools


class _Ended:
    """Told by the parser when the answer is complete."""

    def __init__(self) -> None:
        self.complete = False
        self.kept = False
        self.parser = httptools.HttpResponseParser(self)

    def on_message_complete(self) -> None:
        self.complete = True
        self.kept = bool(self.parser.should_keep_alive())  # the parser knows this only inside this callback


async def idle_seconds(
    url: str, address: str, path: str, headers: Mapping[str, str], tls: ssl.SSLContext | None, window: float
) -> float | None:
    """Seconds from the end of an answer to the end of its connection; None if that is more than ``window``.

    ``address``: where to connect, instead of looking the URL's name up.

    Raises:
        OSError: no connection, or it broke during the answer.
        ValueError: what came back is not HTTP.
    """
    parts = urlsplit(url)
    port = parts.port or (443 if tls else 80)
    reader, writer = await asyncio.open_connection(
        address or parts.hostname, port, ssl=tls, server_hostname=parts.hostname if tls else None
    )
    try:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"GET {parts.path}{path} HTTP/1.1\r\nhost: {parts.netloc}\r\n{lines}\r\n".encode())
        if not await _answered(reader):
            return 0.0
        began = time.monotonic()
        try:
            async with asyncio.timeout(window):
                while await reader.read(65_536):
                    pass
        except TimeoutError:
            return None
        return time.monotonic() - began
    finally:
        writer.close()


async def _answered(reader: asyncio.StreamReader) -> bool:
    """Reads one answer. False if only the end of the connection ends it, or the server says that it closes."""
    ended = _Ended()
    while not ended.complete:
        part = await reader.read(65_536)
        if not part:
            return False
        try:
            ended.parser.feed_data(part)
        except httptools.HttpParserError as error:
            raise ValueError("not HTTP") from error
    return ended.kept
