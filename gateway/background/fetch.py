"""Small questions to engines that are not part of anybody's request: health, version, models."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

import httpx2

from engines.probes import Answer
from gateway.balance.endpoint import Endpoint
from gateway.unreachable import no_connection

TIMEOUT: Final = 2.0
"""Seconds for a whole answer."""

ANSWER_LIMIT: Final = 4 * 2**20
"""Bytes; a model list is never that long."""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Nothing usable came back. ``refused``: nobody was listening. ``reason`` is for an operator."""

    reason: str
    refused: bool = False


Credentials: TypeAlias = Mapping[str, str]
"""The header that lets the gateway in at an engine: its name and value."""

NOBODY: Final[Credentials] = MappingProxyType({})
"""For engines that ask for no key."""


class Fetch:
    """Asks engines over connections of its own, a new one each time: what answers must also accept."""

    def __init__(self) -> None:
        self._client = httpx2.AsyncClient(
            timeout=TIMEOUT, trust_env=False, limits=httpx2.Limits(max_keepalive_connections=0)
        )

    async def close(self) -> None:
        """Gives up all connections."""
        await self._client.aclose()

    async def get(self, endpoint: Endpoint, path: str, credentials: Credentials = NOBODY) -> Answer | NoAnswer:
        """The answer to a GET of ``path`` below the endpoint's base URL."""
        return await self._ask("GET", endpoint, path, credentials, None)

    async def post(
        self, endpoint: Endpoint, path: str, credentials: Credentials, body: bytes, seconds: float = TIMEOUT
    ) -> Answer | NoAnswer:
        """The answer to a POST of a JSON body."""
        return await self._ask("POST", endpoint, path, credentials, body, seconds)

    async def _ask(
        self,
        method: str,
        endpoint: Endpoint,
        path: str,
        credentials: Credentials,
        body: bytes | None,
        seconds: float = TIMEOUT,
    ) -> Answer | NoAnswer:
        headers = {"host": endpoint.authority, "accept": "*/*", **credentials}
        if body is not None:
            headers["content-type"] = "application/json"
        try:
            async with (
                asyncio.timeout(seconds),
                self._client.stream(
                    method, endpoint.url + path, headers=headers, content=body, timeout=seconds
                ) as response,
            ):
                return await _read(response)
        except httpx2.ConnectError as error:
            found = no_connection(error)
            return NoAnswer(found.reason, refused=found.refused)
        except (TimeoutError, httpx2.TimeoutException):
            return NoAnswer(f"no answer within {seconds:g} s")
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError) as error:
            return NoAnswer(f"no HTTP answer ({type(error).__name__})")


async def _read(response: httpx2.Response) -> Answer | NoAnswer:
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size > ANSWER_LIMIT:
            return NoAnswer("an answer without end")
    return Answer(response.status_code, b"".join(parts))
