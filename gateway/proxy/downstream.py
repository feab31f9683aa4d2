"""The port between an exchange and the client that it serves.

An exchange never learns who carries it: uvicorn's protocol class, an ASGI server, or a test. Header blocks are ready
bytes (``name: value`` lines, each ended by CRLF); the carrier adds framing, and whatever it owes its own protocol.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from engines.profile import Operation
from gateway.balance.endpoint import Endpoint
from gateway.proxy.callers import Caller
from gateway.proxy.limits import Bounds


@dataclass(slots=True, eq=False)
class Inbound:
    """What a request's head says that an exchange must know. Never changed once it is made: requests may share it.

    ``request_id`` is the client's, already found clean, or None. ``forward`` holds header lines for the engine.
    ``echo`` holds header lines that every answer to this request carries (CORS). ``objection``: why the body is not
    read, as a message and a code. ``bounds`` are the client's own limits, ``sessions`` the headers that keep requests
    together, ``priority`` its rank in a queue, ``caller`` is who asks; None where nobody with a known key does.
    """

    operation: Operation
    request_id: bytes | None = None
    forward: bytes = b""
    echo: bytes = b""
    objection: tuple[str, str] | None = None
    bounds: Bounds | None = None
    sessions: Mapping[bytes, bytes] | None = None
    priority: float = 0.0
    caller: Caller | None = None


class Served(Protocol):
    """An exchange, to whoever tells it of the world outside."""

    def endpoint_lost(self, endpoint: Endpoint) -> None:
        """Health checks have found an endpoint dead."""


class Carrier:
    """Who carries an exchange, and waits in the wheel of deadlines for it: a connection has one place there, however
    many requests come over it."""

    __slots__ = ()
    exchange: Served | None


class Downstream(Protocol):
    """What an exchange may do to its client. Either `respond` once, or `start`, `write`…, and `finish` or `abort`."""

    def respond(self, status: int, headers: bytes, body: bytes) -> None:
        """A whole answer."""

    def start(self, status: int, headers: bytes) -> None:
        """The head of an answer of unknown length. A carrier may hold it until the first `write`."""

    def write(self, data: bytes) -> None:
        """A part of the body."""

    def wake_at(self, deadline: float) -> None:
        """Has the exchange's `on_deadline` called at ``deadline`` (loop time) or a little later, and maybe before."""

    def finish(self) -> None:
        """The answer is complete."""

    def abort(self) -> None:
        """The answer stays incomplete: what has been written is sent, then the connection is closed without the end of
        the body, so that the client cannot take the answer for whole."""
