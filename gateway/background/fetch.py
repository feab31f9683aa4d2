"""Small questions to engines that are not part of anybody's request: health, version, models.

They go over the same kind of connection as requests do (`proxy.connection`): what can be asked here can be served.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from socket import SOCK_STREAM
from types import MappingProxyType
from typing import Final, TypeAlias
from urllib.parse import quote

from engines.probes import Answer
from gateway.balance.endpoint import Endpoint
from gateway.proxy.connection import Connection
from gateway.proxy.trust import trusted
from gateway.unreachable import no_connection
from gateway.wire.inflate import InflateError, Inflater

TIMEOUT: Final = 2.0
"""Seconds for a whole answer."""

ANSWER_LIMIT: Final = 4 * 2**20
"""Bytes; a model list is never that long."""

_PLAIN: Final = "/?&=%:@!$'()*+,;[]"
"""What stands in a path as it is, besides letters and digits."""


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
        self._asking: set[_Question] = set()

    async def close(self) -> None:
        """Gives up all connections."""
        for question in list(self._asking):
            question.give_up("the gateway asks no more")

    async def get(self, endpoint: Endpoint, path: str, credentials: Credentials = NOBODY) -> Answer | NoAnswer:
        """The answer to a GET of ``path`` below the endpoint's base URL."""
        return await self._ask(endpoint, _head("GET", endpoint, path, credentials), b"", TIMEOUT)

    async def post(
        self, endpoint: Endpoint, path: str, credentials: Credentials, body: bytes, seconds: float = TIMEOUT
    ) -> Answer | NoAnswer:
        """The answer to a POST of a JSON body."""
        about = {**credentials, "content-type": "application/json", "content-length": str(len(body))}
        return await self._ask(endpoint, _head("POST", endpoint, path, about), body, seconds)

    async def _ask(self, endpoint: Endpoint, head: str, body: bytes, seconds: float) -> Answer | NoAnswer:
        question = _Question(asyncio.get_running_loop())
        self._asking.add(question)
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                connection = await self._connected(endpoint, question)
                connection.send(question, head.encode("ascii"), body)
                return await question.answer
        except TimeoutError as error:
            if limit.expired():
                return NoAnswer(f"no answer within {seconds:g} s")
            return NoAnswer(no_connection(error).reason)
        except (OSError, UnicodeError) as error:
            found = no_connection(error)
            return NoAnswer(found.reason, refused=found.refused)
        finally:
            question.end()
            self._asking.discard(question)

    async def _connected(self, endpoint: Endpoint, question: "_Question") -> Connection:
        """A connection to whichever of the host's addresses takes one."""
        loop = asyncio.get_running_loop()
        tls = trusted() if endpoint.tls else None
        name = endpoint.host if tls is not None else None
        errors: list[OSError] = []
        for address in await _addresses(loop, endpoint):
            try:
                _, connection = await loop.create_connection(
                    lambda: Connection(question), address, endpoint.port, ssl=tls, server_hostname=name
                )
            except OSError as error:
                errors.append(error)
            else:
                return connection
        raise ConnectionError("none of its addresses takes a connection") from ExceptionGroup("of each", errors)


async def _addresses(loop: asyncio.AbstractEventLoop, endpoint: Endpoint) -> Sequence[str]:
    """In the order in which the system would try them. Raises OSError for a name that cannot be resolved."""
    try:
        ip_address(endpoint.host)
    except ValueError:
        found = await loop.getaddrinfo(endpoint.host, endpoint.port, type=SOCK_STREAM)
        return list(dict.fromkeys(str(address[0]) for *_, address in found))
    return (endpoint.host,)


class _Question:
    """Listens to one connection for one answer, and is its home."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.answer: asyncio.Future[Answer | NoAnswer] = loop.create_future()
        self._connection: Connection | None = None
        self._inflater: Inflater | None = None
        self._body = bytearray()

    def give_up(self, reason: str) -> None:
        """There is no answer, for this reason."""
        if not self.answer.done():
            self.answer.set_result(NoAnswer(reason))

    def end(self) -> None:
        """Nobody waits any more."""
        if self._connection is not None:
            self._connection.abandon()

    # Home

    def opened(self, connection: Connection) -> None:
        """It is there."""
        self._connection = connection

    def keep(self, connection: Connection) -> None:
        """It would wait for the next call; there is none."""

    def closed(self, connection: Connection) -> None:
        """It is no more."""
        if self._connection is connection:
            self._connection = None

    # Listener

    def on_connected(self, connection: Connection) -> None:
        """Only pools tell."""

    def on_refused(self, error: OSError) -> None:
        """Only pools tell."""

    def on_answer(self, connection: Connection, data: bytes, *, complete: bool) -> None:
        """A part of the body."""
        try:
            self._body += self._plain(connection, data)
        except InflateError:
            self.give_up("no HTTP answer (it is not compressed as it says)")
            return
        if len(self._body) > ANSWER_LIMIT:
            self.give_up("an answer without end")
        elif complete and not self.answer.done():
            self.answer.set_result(Answer(connection.status, bytes(self._body)))

    def on_lost(self, connection: Connection, error: Exception | None) -> None:
        """It ended or broke too early."""
        del connection  # the only one
        why = "the connection ended" if error is None else type(error).__name__
        self.give_up(f"no HTTP answer ({why})")

    def _plain(self, connection: Connection, data: bytes) -> bytes:
        if not connection.encoding or not data:
            return data
        if self._inflater is None:
            self._inflater = Inflater(connection.encoding)
        return self._inflater.feed(data)


def _head(method: str, endpoint: Endpoint, path: str, about: Mapping[str, str]) -> str:
    """A request's head."""
    lines = {"host": endpoint.authority, "accept": "*/*", "accept-encoding": "identity", "user-agent": "turnout"}
    text = "".join(f"{name}: {value}\r\n" for name, value in {**lines, **about}.items())
    target = quote(endpoint.base_path + path, safe=_PLAIN)
    return f"{method} {target} HTTP/1.1\r\n{text}connection: close\r\n\r\n"
