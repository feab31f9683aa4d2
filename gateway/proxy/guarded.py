"""uvicorn's own protocol with what it lacks in front of strangers: deadlines for requests that do not become whole, and
errors in the one shape. It serves what `protocol` hands over, and everything where calls are carried by ASGI; so a
request costs less here than in uvicorn: there is no timer for idle connections, and `cycle` is leaner.
"""

import asyncio
from typing import Any, Final
from urllib.parse import unquote

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from engines.profile import Operation
from gateway.errors import ApiError, InvalidRequest, RequestTimeout
from gateway.proxy import replies
from gateway.proxy.cycle import Cycle
from gateway.proxy.plane import PlaneSource
from gateway.wire.http1 import status_line

HEAD_TIME: Final = 30.0
"""Seconds in which a request's head must be whole."""

BODY_TIME: Final = 60.0
"""Seconds in which at least `BODY_RATE` bytes of a body must arrive, again and again."""

BODY_RATE: Final = 4096
HELD_BODY: Final = 256 * 1024
"""Bytes of a body that wait for the application before reading pauses: what one read brings at most."""

LOOK_EVERY: Final = 5.0
"""Seconds between two looks at a connection's age."""

NOT_HTTP: Final = "The request is not valid HTTP/1.1. This port speaks plain HTTP/1.1: no TLS (https://) and no HTTP/2."


_NO_URL: Final = (b"", "", b"", b"")


def _read_url(url: bytes) -> tuple[bytes, str, bytes, bytes]:
    """A request's target and what a scope says of it: path, raw path, query."""
    parsed = httptools.parse_url(url)
    path = parsed.path.decode("ascii")
    return url, unquote(path) if "%" in path else path, parsed.path, parsed.query or b""


class GuardedProtocol(HttpToolsProtocol):
    """One client connection."""

    def __init__(
        self,
        source: PlaneSource,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._source = source
        self._waits_since: float | None = None
        self._seen = 0
        self._leaving = False
        self._unread_since: float | None = None
        self._idle_since: float | None = None
        self._serving: Cycle | None = None
        self._known_url = _NO_URL
        self.bucket = -1

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begins to watch."""
        super().connection_made(transport)
        self._deadlines = self._source.plane.deadlines
        self._deadlines.put(self, self.loop.time() + LOOK_EVERY)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends the watch."""
        self._deadlines.drop(self)
        super().connection_lost(exc)
        serving, self._serving = self._serving, None
        if serving is not None and not serving.response_complete:
            serving.disconnected = True  # uvicorn tells the newest of pipelined requests, and this is the oldest
            serving.message_event.set()
            if serving.left is not None:
                serving.left()

    def shutdown(self) -> None:
        """As uvicorn has it, but the first request of a new connection is waited for, until the second call."""
        told_before, self._leaving = self._leaving, True
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None or told_before:
            super().shutdown()

    def on_headers_complete(self) -> None:
        """A request has come (a callback of the parser)."""
        parser, scope = self.parser, self.scope
        version = parser.get_http_version()
        scope["method"] = parser.get_method().decode("ascii")
        if version != "1.1":
            scope["http_version"] = version
        if self.url != self._known_url[0]:
            self._known_url = _read_url(self.url)
        _, scope["path"], scope["raw_path"], scope["query_string"] = self._known_url
        before: RequestResponseCycle | None = self.cycle
        keep_alive = version != "1.0" and not self._leaving and parser.should_keep_alive()
        self.cycle = cycle = Cycle(self, keep_alive=keep_alive)
        if before is None or before.response_complete:
            self._serving = cycle
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))

    def on_message_complete(self) -> None:
        """A request is whole (a callback of the parser)."""
        cycle = self.cycle
        if not cycle.response_complete:
            cycle.more_body = False
            cycle.message_event.set()

    def on_response_complete(self) -> None:
        """An answer is out: the next request may be served."""
        self.server_state.total_requests += 1
        self._serving = None
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            assert isinstance(cycle, Cycle)  # noqa: S101 - only `on_headers_complete` puts any there
            self._serving = cycle
            self._start_asgi_task(cycle, app)
        else:
            self._idle_since = self.loop.time()

    def _unset_keepalive_if_required(self) -> None:
        """Something has come; uvicorn has a timer here."""
        self._idle_since = None

    def pause_writing(self) -> None:
        """The client does not keep up."""
        super().pause_writing()
        self._unread_since = self.loop.time()

    def resume_writing(self) -> None:
        """It has caught up."""
        super().resume_writing()
        self._unread_since = None

    def on_body(self, body: bytes) -> None:
        """A part of a body has come (a callback of the parser)."""
        self._seen += len(body)
        cycle = self.cycle
        if not cycle.response_complete:
            assert isinstance(cycle, Cycle)  # noqa: S101 - all are
            cycle.take(body)
            if cycle.held > HELD_BODY:
                self.flow.pause_reading()

    def on_deadline(self, now: float) -> float | None:
        """Looks at what the client owes (`Timed`). Times count from the first look that finds it owing."""
        if self._reads_nothing(now):
            self.transport.abort()
            return None
        if self.transport.is_closing():
            return now + LOOK_EVERY
        if self._idle_since is not None and now - self._idle_since >= self._source.plane.settings.server.keep_alive:
            self.transport.close()
            return now + LOOK_EVERY
        answering = self._answering()
        if not self._client_owes(answering=answering):
            self._waits_since = None
        elif self._waits_since is None:
            self._waits_since, self._seen = now, 0
        elif answering and now - self._waits_since >= BODY_TIME:
            if self._seen < BODY_RATE:
                self._refuse(RequestTimeout("The request's body did not arrive in time."))
                return None
            self._waits_since, self._seen = now, 0
        elif not answering and now - self._waits_since >= HEAD_TIME:
            self._refuse(RequestTimeout("The request's head did not arrive in time."))
            return None
        return now + LOOK_EVERY

    def _reads_nothing(self, now: float) -> bool:
        """Whether the client has left what was written unread for too long; closing waits for it to read."""
        if self._unread_since is None and self.transport.is_closing():
            self._unread_since = now
        since, limit = self._unread_since, self._source.plane.settings.server.write_timeout
        return since is not None and now - since >= limit

    def _answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # its own annotation leaves the None out
        return cycle is not None and not cycle.response_complete

    def _client_owes(self, *, answering: bool) -> bool:
        if answering:
            return self.cycle.more_body and not self.flow.read_paused
        return self._idle_since is None  # else nothing of a request has come

    def send_400_response(self, msg: str) -> None:
        """What cannot be read is not HTTP (uvicorn's own answer is plain text)."""
        del msg
        self._refuse(InvalidRequest(NOT_HTTP, code="invalid_http"))

    def _refuse(self, error: ApiError) -> None:
        """Answers, unless an answer has begun already, and closes."""
        if not (self._answering() and self.cycle.response_started):
            request_id = self._source.plane.ids()
            body = replies.error_body(error, Operation.CHAT, request_id)
            head = [status_line(error.status), replies.refusal(error, Operation.CHAT, request_id, b"")]
            head += [b"%s: %s\r\n" % header for header in self.server_state.default_headers]
            head.append(b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(body))
            self.transport.write(b"".join(head) + body)
        self.transport.close()
