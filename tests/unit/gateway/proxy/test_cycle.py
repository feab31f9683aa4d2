"""Answers of the gateway's own cycle, beside those of uvicorn's."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from gateway.proxy.cycle import Cycle
from tests.performance.rig import SteppedLoop, no_application

DATE: Final = (b"date", b"Thu, 01 Jan 1970 00:00:00 GMT")


class Recorder(asyncio.Transport):
    """A transport that remembers."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False
        self.resumed = False

    def resume_reading(self) -> None:
        self.resumed = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


class Answer:
    """An answer as one of the two writes it."""

    def __init__(self, kind: type[RequestResponseCycle], scope: Mapping[str, str], *, keep_alive: bool) -> None:
        self.loop = SteppedLoop()
        self.transport = Recorder()
        served = HttpToolsProtocol(Config(no_application, log_config=None, ws="none"), ServerState(), {}, self.loop)
        served.server_state.default_headers = [DATE]
        served.connection_made(self.transport)
        served.on_message_begin()
        served.scope.update(scope)  # type: ignore[typeddict-item]
        self.completed = 0
        served.on_response_complete = self._complete  # type: ignore[method-assign]
        if kind is Cycle:
            self.cycle: RequestResponseCycle = Cycle(served, keep_alive=keep_alive)
        else:
            self.cycle = RequestResponseCycle(
                scope=served.scope,
                transport=self.transport,
                flow=served.flow,
                logger=served.logger,
                access_logger=served.access_logger,
                access_log=False,
                default_headers=[DATE],
                message_event=asyncio.Event(),
                expect_100_continue=False,
                keep_alive=keep_alive,
                on_response=self._complete,
            )

    def _complete(self) -> None:
        self.completed += 1

    def tell(self, messages: Iterable[Message]) -> bool:
        """Sends messages; whether all were taken."""

        async def send_all() -> None:
            for message in messages:
                await self.cycle.send(message)  # type: ignore[arg-type]

        task = self.loop.create_task(send_all())
        self.loop.catch_up()
        fault = task.exception()
        assert fault is None or isinstance(fault, RuntimeError)
        return fault is None

    def seen(self) -> tuple[bytes, list[bytes], bytes, bool, int]:
        """What the client and uvicorn see: the status line, the header lines, the body, whether it closes."""
        head, _, body = self.transport.written.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        closes = b"connection: close"
        others = sorted(line for line in lines if line != closes)
        once = [closes] * (closes in lines)  # it says as much as twice
        return first, others + once, body, self.transport.closed, self.completed


header_lines = st.lists(
    st.sampled_from(
        (
            (b"content-type", b"application/json"),
            (b"Content-Length", b"4"),
            (b"content-length", b"9"),
            (b"transfer-encoding", b"chunked"),
            (b"connection", b"close"),
            (b"x-turnout-engine", "schöne grüße".encode()),
            (b"x-odd", b"tab\there: and a colon"),
            (b"bad name", b"a"),
            (b"bad:", b"a"),
            (b"x-bad", b"line\r\nbreak: a"),
            (b"x-bad", b"nul\0"),
        )
    ),
    max_size=4,
)
bodies = st.lists(st.sampled_from((b"", b"a", b"body", b"much longer than that")), min_size=1, max_size=3)


def messages_of(status: int, headers: list[tuple[bytes, bytes]], parts: list[bytes]) -> list[Message]:
    last = len(parts) - 1
    bodies = [
        {"type": "http.response.body", "body": part, "more_body": number < last} for number, part in enumerate(parts)
    ]
    return [{"type": "http.response.start", "status": status, "headers": headers}, *bodies]


@given(
    st.sampled_from((200, 204, 304, 400, 503)),
    header_lines,
    bodies,
    st.sampled_from(("GET", "HEAD", "POST")),
    st.booleans(),
)
def test_it_answers_as_uvicorn_does(
    status: int, headers: list[tuple[bytes, bytes]], parts: list[bytes], method: str, keep_alive: bool
) -> None:
    messages = messages_of(status, headers, parts)
    own = Answer(Cycle, {"method": method}, keep_alive=keep_alive)
    uvicorns = Answer(RequestResponseCycle, {"method": method}, keep_alive=keep_alive)

    taken = own.tell(messages)

    assert taken is uvicorns.tell(messages)
    if taken:
        assert own.seen() == uvicorns.seen()


@pytest.mark.parametrize(
    "messages",
    [
        [{"type": "http.response.body", "body": b"a"}],
        [{"type": "http.response.start", "status": 200}, {"type": "http.response.start", "status": 200}],
        [*messages_of(200, [], [b"a"]), {"type": "http.response.body", "body": b"a"}],
    ],
    ids=["no start", "two starts", "after the end"],
)
def test_messages_out_of_turn_are_refused(messages: list[Message]) -> None:
    assert not Answer(Cycle, {"method": "POST"}, keep_alive=True).tell(messages)


@pytest.mark.parametrize("keep_alive", [True, False])
def test_calls_and_messages_make_the_same_answer(*, keep_alive: bool) -> None:
    called, told = (Answer(Cycle, {"method": "POST"}, keep_alive=keep_alive) for _ in range(2))
    assert isinstance(called.cycle, Cycle)

    called.cycle.respond(200, b"content-type: text/plain\r\n", b"body")
    told.tell(messages_of(200, [(b"content-type", b"text/plain"), (b"content-length", b"4")], [b"body"]))

    assert called.seen() == told.seen()


def test_a_stream_by_calls_is_the_stream_by_messages() -> None:
    called, told = (Answer(Cycle, {"method": "POST"}, keep_alive=True) for _ in range(2))
    assert isinstance(called.cycle, Cycle)

    called.cycle.start(200, b"content-type: text/event-stream\r\n")
    for part in (b"a", b"bc"):
        called.cycle.write(part)
    called.cycle.finish()
    told.tell(messages_of(200, [(b"content-type", b"text/event-stream")], [b"a", b"bc", b""]))

    assert called.seen() == told.seen()


def test_nothing_is_written_to_a_client_that_has_left() -> None:
    answer = Answer(Cycle, {"method": "POST"}, keep_alive=True)
    cycle: Any = answer.cycle
    cycle.disconnected = True

    cycle.respond(200, b"", b"body")

    assert answer.transport.written == b""


def test_a_whole_body_is_taken_without_a_message_and_reading_goes_on() -> None:
    answer = Answer(Cycle, {"method": "POST"}, keep_alive=True)
    cycle = answer.cycle
    assert isinstance(cycle, Cycle)
    cycle.take(b"half ")
    assert cycle.whole_body() is None
    cycle.take(b"and half")
    cycle.flow.read_paused = True
    cycle.more_body = False

    assert cycle.whole_body() == b"half and half"
    assert answer.transport.resumed
    assert not cycle.message_event.is_set()  # the next to come is the client's leaving
