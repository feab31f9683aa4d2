"""One try of one call at one endpoint.

An attempt is the `Listener` of its connection. It reads the answer as far as needed to know how it went, and tells its
owner (the exchange) one of four things: bytes of a stream, the end of a stream, a whole answer, or a failure as an
outcome with what the client would be told. It never speaks to the client itself.
"""

from typing import Final

import msgspec

from engines.faults import Fault, FaultKind
from engines.profile import Operation
from gateway.balance.endpoint import Endpoint
from gateway.balance.lease import Lease
from gateway.balance.outcome import REFUSED, SERVED, STALE, TRUNCATED, Broken, Outcome, Phase, Rejected, TimedOut, label
from gateway.errors import ApiError, EngineFailed
from gateway.proxy import verdicts
from gateway.proxy.connection import Connection
from gateway.proxy.outgoing import Outgoing, asking_why, outgoing
from gateway.proxy.owner import Owner
from gateway.proxy.plane import Asked, Destination, Plane
from gateway.proxy.tooling import UNTOOLED
from gateway.proxy.whole import put_right
from gateway.wire.answer import Usage
from gateway.wire.embeddings import name_input
from gateway.wire.estimate import uncounted
from gateway.wire.inflate import InflateError, Inflater
from gateway.wire.named_stream import NAMED, NamedStream
from gateway.wire.openai import Call, expected_choices
from gateway.wire.shape import Chain
from gateway.wire.stream import StreamRelay

ANSWER_LIMIT: Final = 512 * 1024 * 1024
"""Bytes of a whole answer that are held before it is sent on; an engine that says more is cut off."""

BROKEN_ANSWER: Final = "The engine's answer made no sense."


class Attempt(msgspec.Struct, eq=False):
    """Sends on `send`, listens, reports once how it ended. ``committed`` is set by the owner, which may change."""

    _plane: Plane
    owner: Owner
    _call: Call
    _asked: Asked
    lease: Lease
    destination: Destination
    outgoing: Outgoing
    _own_id: bytes
    begun_at: float = 0.0
    _connection: Connection | None = None
    relay: StreamRelay | NamedStream | None = None
    _head: bytes = b""
    _forward: bytes = b""
    _inflater: Inflater | None = None
    _parts: list[bytes] = msgspec.field(default_factory=list)
    _size: int = 0
    _answer_begun: bool = False
    _stale: bool = False
    _twice: bool = False
    _asks_why: bool = False
    usage: Usage | None = None
    estimate: tuple[int, int] | None = None
    """The tokens of prompt and answer, where a whole answer does not count them."""
    committed: bool = False
    over: bool = False

    @property
    def said_all(self) -> bool:
        """The engine has sent everything that a client waits for; at most the end of the body is missing."""
        return self.relay is not None and self.relay.done

    def runs_on(self, endpoint: Endpoint) -> bool:
        """Whether this endpoint works on it."""
        return self.lease.endpoint is endpoint

    def send(self, forward: bytes, now: float) -> None:
        """Sends the call on a waiting connection or a new one; ``forward`` are header lines of the client's."""
        self.begun_at = now
        self._forward = forward
        link = self.destination.link.endpoints[self.lease.endpoint]
        self._head = link.heads[self._call.operation] % (self._own_id, forward, len(self.outgoing.body))
        connection = link.pool.take(now)
        if connection is None:
            link.pool.connect(self)
        else:
            self._connection = connection
            connection.send(self, self._head, self.outgoing.body)

    def abandon(self, outcome: Outcome) -> None:
        """Gives up: the engine sees its request's connection close, the owner hears nothing more."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abandon()
        if self.committed and not self.over:
            self._count_stream()
        self._end(outcome, self._plane.loop.time())

    def pause(self) -> None:
        """Stops reading from the engine."""
        if self._connection is not None:
            self._connection.pause()

    def resume(self) -> None:
        """Reads again."""
        if self._connection is not None:
            self._connection.resume()

    # ---- Listener

    def on_connected(self, connection: Connection) -> None:
        """A new connection is there; after `abandon` it is kept for others."""
        if self.over:
            connection.pool.keep(connection)
        else:
            self._connection = connection
            connection.send(self, self._head, self.outgoing.body)

    def on_refused(self, error: OSError) -> None:
        """No connection came about: no work was done."""
        if self.over:
            return
        if self._asks_why:
            self._died()
        elif isinstance(error, TimeoutError):
            seconds = self.destination.link.timeouts.connect
            self._fail(TimedOut(Phase.CONNECT), verdicts.timed_out(Phase.CONNECT, seconds))
        else:
            self._fail(REFUSED, verdicts.unreachable(self._call.model))

    def on_lost(self, connection: Connection, error: Exception | None) -> None:
        """The connection died before its answer was whole."""
        del error
        self._connection = None
        if connection.reused and not connection.answered and not self._stale:
            # The engine closed the idle connection while the request was on its way: nobody has worked on it.
            self._stale = True
            self.destination.meter.retried(label(STALE))
            self.destination.link.endpoints[self.lease.endpoint].pool.connect(self)
        elif self.said_all:
            self._complete(b"")
        elif not self._ask_why(connection):
            self._died()

    def on_answer(self, connection: Connection, data: bytes, *, complete: bool) -> None:
        """The next part of the answer."""
        if (
            complete
            and connection.status == 200
            and not (self._answer_begun or self._call.stream or connection.encoding)
        ):
            self._connection = None
            self._whole(data)
            return
        try:
            if not self._answer_begun:
                self._open(connection)
            if self._inflater is not None:
                data = self._inflater.feed(data)
            relay = self.relay
            if relay is None:
                self._collect(connection, data, complete=complete)
                return
            if data:
                if out := relay.feed(data):
                    self.owner.on_stream(out)
                else:
                    self.owner.on_heard()
            if complete or relay.error is not None:
                self._stream_ended(relay)
        except (InflateError, OverflowError):
            self._drop()
            self._broken(Broken(connection.status), BROKEN_ANSWER)

    def _open(self, connection: Connection) -> None:
        self._answer_begun = True
        if connection.encoding:
            self._inflater = Inflater(connection.encoding)
        call = self._call
        if call.stream and connection.status == 200 and connection.content_type[:17] == b"text/event-stream":
            names, named = self._asked.names[call.operation], NAMED.get(call.operation)
            if named is None:
                self.relay = StreamRelay(names, self._own_id, self._chain(), self._plane.clock)
            else:
                self.relay = NamedStream(named, names, self._own_id)

    def _chain(self) -> Chain | None:
        """What is done to the answer, beside its names."""
        shape = self.destination.shapes.get(self._call.operation)
        if shape is None:
            return None
        asked, tooled, stage = self._call.members, self.outgoing.tooled, None
        if tooled is not None:
            stage = self.destination.tooling.stage(tooled, asked, expected_choices(self._call), self._own_id.decode())
        return shape.chain(asked, self.outgoing.prepared.members or asked, stage)

    def _stream_ended(self, relay: StreamRelay | NamedStream) -> None:
        if relay.error is not None:
            self._drop()
            profile = self.destination.link.profile
            self._judge(profile.classify_event(relay.error) or profile.classify(500, relay.error), None)
            return
        self._connection = None
        if relay.done:
            self._complete(b"")
        elif (tail := relay.end(expected_choices(self._call))) is not None and relay.events:
            self._complete(tail)
        else:
            self._broken(Broken(), "The engine ended its answer before it began.")

    def _complete(self, tail: bytes) -> None:
        self._count_stream()
        self._end(SERVED, self._plane.loop.time())
        self.owner.on_stream_end(tail)

    def _collect(self, connection: Connection, data: bytes, *, complete: bool) -> None:
        if data:
            self._parts.append(data)
            self._size += len(data)
            if self._size > ANSWER_LIMIT:
                raise OverflowError("the answer is larger than the gateway holds")
        if not complete:
            return
        self._connection = None
        parts = self._parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        if connection.status != 200 and not self._asks_why and self._ask_otherwise(connection.status, body):
            return
        if connection.status != 200:
            fault = self.destination.link.profile.classify(connection.status, body)
            if self._asks_why and fault.kind is FaultKind.ENGINE_ERROR:
                self._died()
            else:
                self._judge(fault, verdicts.retry_after_seconds(connection.retry_after))
        elif self._asks_why:  # there was nothing wrong with the request
            self._died()
        elif self._call.stream:
            self._broken(Broken(200), "The engine did not stream its answer.")
        else:
            self._whole(body)

    def _ask_otherwise(self, status: int, refusal: bytes) -> bool:
        """Whether the engine refused only how it was asked for tool calls, and is asked again as it can be."""
        if self._twice or self.outgoing.tooled is None or not self.destination.tooling.learns(status, refusal):
            return False
        self._twice = True
        try:
            self.outgoing = outgoing(self._call, self._asked, self.destination.link, self.outgoing.target)
        except ApiError as error:
            self._fail(Rejected(400), error)
            return True
        self._send_again()
        return True

    def _ask_why(self, connection: Connection) -> bool:
        """Whether the engine may have cut the stream to refuse the request, and is asked so that it can say so."""
        cuts = self.destination.link.profile.answers.cuts_refusals
        if self._asks_why or self.committed or not (cuts and self._call.stream and connection.answered):
            return False
        self._asks_why = True
        self.outgoing = asking_why(self.outgoing, self._call)
        self.destination.meter.retried("cut")
        self._send_again()
        return True

    def _send_again(self) -> None:
        self._answer_begun = False
        self._inflater = self.relay = None
        self._parts, self._size = [], 0
        self.send(self._forward, self.begun_at)

    def _whole(self, body: bytes) -> None:
        call, destination = self._call, self.destination
        plain = destination.tooling.plain
        names = self._asked.names[call.operation]
        usage = plain.usage(body, names) if plain is not None and self.outgoing.tooled is UNTOOLED else None
        answer = body
        if usage is None:
            try:
                answer, usage = put_right(body, call, names, self._own_id, self._chain, self._plane.clock)
            except ValueError:
                self._broken(Broken(200), BROKEN_ANSWER)
                return
        self.usage = usage
        if usage is None:
            self.estimate = uncounted(call.operation, len(self.outgoing.body), len(answer))
        else:
            meter = destination.meter
            meter.input_tokens += usage.prompt_tokens
            meter.output_tokens += usage.completion_tokens
        now = self._plane.loop.time()
        self._end(SERVED, now)
        self.owner.on_whole(answer, now)

    # ---- endings

    def _judge(self, fault: Fault, retry_after: float | None) -> None:
        fault = self.destination.link.heard(fault, self._call.operation, self.lease.endpoint)
        call = self._call
        error = verdicts.error_of(fault, call.model, call.operation, retry_after, self.outgoing.target.model)
        if self._call.operation is Operation.EMBEDDINGS:
            error = name_input(error, self._call.members.get("input"))
        self._fail(TRUNCATED if self.committed else verdicts.outcome_of(fault, retry_after), error)

    def _died(self) -> None:
        self._broken(Broken(died=True), "The engine gave no answer.")

    def _broken(self, outcome: Broken, message: str) -> None:
        if self.committed:
            self._fail(TRUNCATED, verdicts.interrupted())
        else:
            self._fail(outcome, EngineFailed(message))

    def _fail(self, outcome: Outcome, error: ApiError) -> None:
        if self.committed:
            self._count_stream()
        self._end(outcome, self._plane.loop.time())
        self.owner.on_failure(outcome, error)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and connection.listener is self:
            connection.abandon()

    def _end(self, outcome: Outcome, now: float) -> None:
        if not self.over:
            self.over = True
            destination = self.destination
            destination.meter.in_flight -= 1
            self.lease.end(outcome, now)
            if destination.link.queues:
                for queue in destination.link.queues:
                    queue.poke()

    def _count_stream(self) -> None:
        relay = self.relay
        if relay is None:
            return
        meter, usage = self.destination.meter, relay.usage
        if usage is not None:
            meter.input_tokens += usage.prompt_tokens
            meter.output_tokens += usage.completion_tokens
        else:
            meter.output_tokens += relay.events  # most engines send one token in each
