"""A client's connection as time passes: where it is, since when, and what must not take longer.

Its exchange's deadlines are looked at here too: a connection has one place in the wheel of deadlines, however many
requests come over it.
"""

from abc import abstractmethod
from enum import Enum, auto

from uvicorn.server import ServerState

from gateway.errors import ApiError, RequestTimeout
from gateway.proxy.answering import AnswerWriter
from gateway.proxy.downstream import Carrier
from gateway.proxy.exchange import Exchange
from gateway.proxy.guarded import BODY_RATE, BODY_TIME, HEAD_TIME, LOOK_EVERY
from gateway.proxy.plane import Plane


class State(Enum):
    """Where a connection is: it waits for a request or reads its head; reads its body; an exchange is at work, and what
    the client sends meanwhile waits; it closes."""

    HEAD = auto()
    BODY = auto()
    BUSY = auto()
    CLOSING = auto()


class AgeingConnection(AnswerWriter, Carrier):
    """The half of a client's connection that knows the time (`deadlines.Timed`)."""

    __slots__ = ("_buffer", "_linger", "_look", "_plane", "_seen", "_since", "_state", "bucket", "exchange")
    exchange: Exchange | None
    _plane: Plane

    def __init__(self, server_state: ServerState) -> None:
        super().__init__(server_state)
        self.exchange = None
        self.bucket = -1
        self._state = State.HEAD
        self._buffer = b""
        self._linger = False
        self._since = 0.0
        self._seen = 0
        self._look = 0.0

    @abstractmethod
    def _refuse(self, error: ApiError) -> None:
        """Answers what is not a request that can be served."""

    @abstractmethod
    def _close(self) -> None:
        """Closes after what was written."""

    def wake_at(self, deadline: float) -> None:
        """The exchange has a deadline (`Downstream`); most come later than the connection is looked at anyway."""
        if deadline < self._look:
            self._look = deadline
            self._plane.deadlines.put(self, deadline)

    def on_deadline(self, now: float) -> float | None:
        """Looks at the exchange's deadlines and at the connection's age (`Timed`)."""
        self._look = now + LOOK_EVERY
        if self.exchange is not None:
            due = self.exchange.on_deadline(now)
            if due is not None and due < self._look:
                self._look = due
        age, server = now - self._since, self._plane.settings.server
        if self._state is State.CLOSING and (self._linger or age >= server.write_timeout):
            self.transport.abort()
            return None
        self._look_at_age(now, age)
        return self._look

    def _look_at_age(self, now: float, age: float) -> None:
        match self._state:
            case State.HEAD if self._buffer:
                if age >= HEAD_TIME:
                    self._refuse(RequestTimeout("The request's head did not arrive in time."))
            case State.HEAD:
                if age >= self._plane.settings.server.keep_alive:
                    self._close()
            case State.BODY if age >= BODY_TIME:
                if self._seen < BODY_RATE:
                    self._refuse(RequestTimeout("The request's body did not arrive in time."))
                else:
                    self._since, self._seen = now, 0
