"""Small questions to engines that are not part of anybody's request: health, version, models."""

import asyncio
import os
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import httpx2

from engines.probes import Answer
from gateway.balance.endpoint import Endpoint

TIMEOUT: Final = 2.0
"""Seconds for a whole answer."""

ANSWER_LIMIT: Final = 4 * 2**20
"""Bytes; a model list is never that long."""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Nothing usable came back. ``refused``: nobody was listening. ``reason`` is for an operator."""

    reason: str
    refused: bool = False


class Fetch:
    """Asks engines over connections of its own, a new one each time: what answers must also accept."""

    def __init__(self) -> None:
        self._client = httpx2.AsyncClient(
            timeout=TIMEOUT, trust_env=False, limits=httpx2.Limits(max_keepalive_connections=0)
        )

    async def close(self) -> None:
        """Gives up all connections."""
        await self._client.aclose()

    async def get(self, endpoint: Endpoint, path: str, key: str = "") -> Answer | NoAnswer:
        """The answer to a GET of ``path`` below the endpoint's base URL; ``key`` is sent as a bearer token."""
        return await self._ask("GET", endpoint, path, key, None)

    async def post(self, endpoint: Endpoint, path: str, key: str, body: bytes) -> Answer | NoAnswer:
        """The answer to a POST of a JSON body."""
        return await self._ask("POST", endpoint, path, key, body)

    async def _ask(self, method: str, endpoint: Endpoint, path: str, key: str, body: bytes | None) -> Answer | NoAnswer:
        headers = {"host": endpoint.authority, "accept": "*/*"}
        if key:
            headers["authorization"] = f"Bearer {key}"
        if body is not None:
            headers["content-type"] = "application/json"
        try:
            async with (
                asyncio.timeout(TIMEOUT),
                self._client.stream(method, endpoint.url + path, headers=headers, content=body) as response,
            ):
                return await _read(response)
        except httpx2.ConnectError as error:
            return _no_connection(error)
        except (TimeoutError, httpx2.TimeoutException):
            return NoAnswer(f"no answer within {TIMEOUT:g} s")
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError) as error:
            return NoAnswer(f"no HTTP answer ({type(error).__name__})")


def _no_connection(error: BaseException) -> NoAnswer:
    """Why there is no connection: the client library keeps the system's own words at the end of a chain."""
    causes = list(_causes(error))
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return NoAnswer("its host name cannot be resolved")
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return NoAnswer(f"its certificate is not accepted ({cause.verify_message})")
        if isinstance(cause, ssl.SSLError):
            return NoAnswer("no TLS at its address: is it http:// rather than https://?")
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return NoAnswer("nobody listens at its address", refused=True)
    numbers = [cause.errno for cause in causes if isinstance(cause, OSError) and cause.errno]
    return NoAnswer(f"its address cannot be reached ({os.strerror(numbers[-1])})" if numbers else "no connection")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it came from."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for one in error.exceptions:
                yield from _causes(one)
        error = error.__cause__ or error.__context__


async def _read(response: httpx2.Response) -> Answer | NoAnswer:
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size > ANSWER_LIMIT:
            return NoAnswer("an answer without end")
    return Answer(response.status_code, b"".join(parts))
