"""The connections to one endpoint.

Between calls a connection waits in its pool's stack, newest on top, and is closed before the engine would close it: all
three kinds do so 5 s after an answer (engines/*.md), and a request sent into that moment is lost.
"""

import asyncio
import ssl
from typing import Final

from gateway.proxy.connection import Connection, Listener

EARLIER: Final = 1.0
"""Seconds by which a waiting connection is given up before the engine's own limit."""


class ConnectionPool:
    """The connections of one endpoint, made when needed and kept while fresh."""

    __slots__ = (
        "_address",
        "_closed",
        "_connect_timeout",
        "_connecting",
        "_idle",
        "_keep",
        "_loop",
        "_open",
        "_sweeper",
        "_tls",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address: tuple[str, int],
        *,
        tls: ssl.SSLContext | None = None,
        connect_timeout: float = 2.0,
        keep_alive: float = 5.0,
    ) -> None:
        self._loop = loop
        self._address = address
        self._tls = tls
        self.adjust(connect_timeout, keep_alive)
        # A dict is a stack with removal from the middle: idle connections that the engine closes leave it in O(1).
        self._idle: dict[Connection, None] = {}
        self._open: set[Connection] = set()
        self._connecting: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    def adjust(self, connect_timeout: float, keep_alive: float) -> None:
        """Goes on with other limits, in seconds."""
        self._connect_timeout = connect_timeout
        self._keep = max(0.0, keep_alive - EARLIER)

    @property
    def idle(self) -> int:
        """Connections that wait for a call."""
        return len(self._idle)

    @property
    def open(self) -> int:
        """All connections, waiting or busy."""
        return len(self._open)

    def take(self, now: float) -> Connection | None:
        """The connection used last, if one is fresh enough at ``now`` (loop time)."""
        idle = self._idle
        if not idle:
            return None
        oldest_allowed = now - self._keep
        while idle:
            connection, _ = idle.popitem()
            if connection.idle_since < oldest_allowed:
                connection.transport.abort()
            elif not connection.transport.is_closing():
                connection.reused = True
                return connection
        return None

    def connect(self, listener: Listener) -> None:
        """Makes a connection for ``listener``, which hears of it; one that has lost interest gives it to `keep`."""
        task = self._loop.create_task(self._connect(listener))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, listener: Listener) -> None:
        host, port = self._address
        try:
            async with asyncio.timeout(self._connect_timeout):
                _, connection = await self._loop.create_connection(
                    lambda: Connection(self), host, port, ssl=self._tls, server_hostname=host if self._tls else None
                )
        except OSError as error:  # refused, no such host, TLS; TimeoutError is one too
            listener.on_refused(error)
        else:
            listener.on_connected(connection)

    def keep(self, connection: Connection) -> None:
        """Takes a connection back after a whole answer."""
        if self._closed:
            connection.transport.abort()
            return
        connection.idle_since = self._loop.time()
        self._idle[connection] = None
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(self._keep, self._sweep)

    def _sweep(self) -> None:
        oldest_allowed = self._loop.time() - self._keep
        for connection in list(self._idle):  # oldest first
            if connection.idle_since > oldest_allowed:
                break
            del self._idle[connection]
            connection.transport.abort()
        self._sweeper = self._loop.call_later(self._keep / 2, self._sweep) if self._idle else None

    def opened(self, connection: Connection) -> None:
        """Called by the connection."""
        self._open.add(connection)

    def closed(self, connection: Connection) -> None:
        """Called by the connection."""
        self._open.discard(connection)
        self._idle.pop(connection, None)

    def close(self) -> None:
        """Closes what waits and stops connecting; busy connections finish their call and close then."""
        self.retire()
        for task in self._connecting:
            task.cancel()

    def retire(self) -> None:
        """Closes what waits. Calls under way, those included that are still connecting, are finished."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for connection in list(self._idle):
            connection.transport.abort()
