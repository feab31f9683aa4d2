"""One call served by several attempts, where an engine gives only one answer at a time (`engines.policy.Split`).

To its exchange a fan-out looks like one attempt. Each part is a call of its own, with a lease of its own, perhaps on
another endpoint; a few run at once. When one fails, or the client leaves, all are given up: what happens then (another
endpoint, an error) is the exchange's decision, as for any attempt.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from engines.policy import Prepared, Split
from engines.profile import Members, Operation
from gateway.balance.endpoint import Endpoint
from gateway.balance.lease import Lease
from gateway.balance.outcome import CLIENT_GONE, Broken, Outcome, Rejected
from gateway.balance.route import Unavailable
from gateway.errors import ApiError, EngineFailed, InvalidRequest
from gateway.proxy import verdicts
from gateway.proxy.attempt import BROKEN_ANSWER, Attempt
from gateway.proxy.outgoing import Outgoing, outgoing
from gateway.proxy.owner import Owner
from gateway.proxy.plane import Asked, Destination, Plane
from gateway.proxy.spending import cost_of
from gateway.usage import Spent
from gateway.wire.embeddings import of_item
from gateway.wire.merge import MergedStream, merge_answers
from gateway.wire.openai import Call

PARALLEL: Final = 8
"""Parts of one call that run at the same time."""

_LISTS: Final = ("input", "prompt")
"""Members whose items become parts: an error of one part names its item."""

Acquire = Callable[[float], Lease | Unavailable]


class _Part:
    """One of the attempts, and what it has to say (`Owner`)."""

    __slots__ = ("at", "attempt", "whole")

    def __init__(self, whole: "FanOut", at: int) -> None:
        self.whole = whole
        self.at = at
        self.attempt: Attempt

    def on_stream(self, data: bytes) -> None:
        self.whole.part_streams(self, data)

    def on_heard(self) -> None:
        self.whole.part_heard()

    def on_stream_end(self, tail: bytes) -> None:
        self.whole.part_ends(self, tail)

    def on_whole(self, body: bytes, now: float) -> None:
        self.whole.part_answers(self, body, now)

    def on_failure(self, outcome: Outcome, error: ApiError) -> None:
        self.whole.part_fails(self, outcome, error)


class FanOut:
    """As an `Attempt` for its owner. ``lease`` and ``destination`` are those of the part that was heard of last."""

    __slots__ = (
        "_acquire",
        "_asked",
        "_bodies",
        "_call",
        "_cost",
        "_forward",
        "_left",
        "_next",
        "_own_id",
        "_owner",
        "_paused",
        "_plane",
        "_running",
        "_split",
        "_stream",
        "begun_at",
        "committed",
        "destination",
        "lease",
        "outgoing",
        "over",
    )

    def __init__(
        self,
        plane: Plane,
        owner: Owner,
        call: Call,
        asked: Asked,
        lease: Lease,
        destination: Destination,
        sent: Outgoing,
        own_id: bytes,
        split: Split,
        acquire: Acquire,
    ) -> None:
        """``lease`` is for the first part; ``acquire`` gives those of the others."""
        parts = len(split.edits)
        self._plane = plane
        self._owner = owner
        self._call = call
        self._asked = asked
        self._own_id = own_id
        self._split = split
        self._acquire = acquire
        self._forward = b""
        self._next = 0
        self._left = parts
        self._paused = False
        self._running: dict[int, Attempt] = {}
        self._bodies: list[bytes] = [b""] * parts
        self._stream = MergedStream(parts, split.copies)
        self.lease = lease
        self.destination = destination
        self.outgoing = sent
        self.begun_at = 0.0
        self.committed = False
        self._cost = Spent()
        self.over = False

    @property
    def said_all(self) -> bool:
        """Every part has said all that a client waits for."""
        return self._stream.done

    def spent(self, *, gone: bool) -> Spent:
        """What all parts have cost: nothing, if they failed before anything of them was sent and nobody had left."""
        return self._cost if gone or self.committed or self._left == 0 else Spent()

    def part_heard(self) -> None:
        """An engine has sent something that comes to nothing for the client."""
        self._owner.on_heard()

    # ---- the owner's calls

    def runs_on(self, endpoint: Endpoint) -> bool:
        """Whether this endpoint works on a part, which then counts as the one that was heard of last."""
        for attempt in self._running.values():
            if attempt.runs_on(endpoint):
                self.lease, self.destination = attempt.lease, attempt.destination
                return True
        return False

    def send(self, forward: bytes, now: float) -> None:
        """Begins the first parts."""
        self._forward = forward
        self.begun_at = now
        self._start(self.lease, now)
        self._fill(now)

    def abandon(self, outcome: Outcome) -> None:
        """Gives up every part. A death is that of one endpoint only."""
        self.over = True
        running, self._running = self._running, {}
        for attempt in running.values():
            self._cost.add(cost_of(attempt, worked=True))
        died = self.lease.endpoint if isinstance(outcome, Broken) else None
        for attempt in running.values():
            attempt.abandon(outcome if died is None or attempt.lease.endpoint is died else CLIENT_GONE)

    def pause(self) -> None:
        """Stops reading, and begins no further part."""
        self._paused = True
        for attempt in self._running.values():
            attempt.pause()

    def resume(self) -> None:
        """Reads again."""
        self._paused = False
        for attempt in self._running.values():
            attempt.resume()
        self._fill(self._plane.loop.time())

    # ---- beginning parts

    def _fill(self, now: float) -> None:
        """Begins as many parts as may run and find room."""
        while not self.over and not self._paused and self._next < len(self._bodies) and len(self._running) < PARALLEL:
            lease = self._acquire(now)
            if isinstance(lease, Lease):
                self.destination = self._asked.destinations[lease.target.engine.name]
                self.destination.meter.in_flight += 1
                self._start(lease, now)
            elif self._running:
                return  # there is room when one of them has ended
            else:
                self._fail(Rejected(503), verdicts.unavailable(lease, self._call.model))

    def _start(self, lease: Lease, now: float) -> None:
        at, self._next = self._next, self._next + 1
        destination = self.destination
        self.lease = lease
        call = self._call_of(at)
        try:
            sent = outgoing(call, self._asked, destination.link, lease.target)
        except ApiError as error:
            destination.meter.in_flight -= 1
            lease.end(Rejected(400), now)
            self._fail(Rejected(400), self._named(at, error))
            return
        if at == 0:
            told = sent.prepared
            names = (*self._split.names, *told.translated)
            self.outgoing = Outgoing(lease.target, b"", Prepared(None, told.dropped, names))
        part = _Part(self, at)
        own_id = b"%s.%d" % (self._own_id, at)
        attempt = Attempt(self._plane, part, call, self._asked, lease, destination, sent, own_id)
        part.attempt = self._running[at] = attempt
        attempt.send(self._forward, now)

    def _call_of(self, at: int) -> Call:
        whole = self._call
        members: Members = dict(whole.members)
        for name, value in self._split.edits[at].items():
            if value is None:
                members.pop(name, None)
            else:
                members[name] = msgspec.Raw(value)
        return Call(whole.operation, whole.model, whole.stream, members, msgspec.json.encode(members), whole.rank)

    # ---- what the parts say

    def part_streams(self, part: _Part, data: bytes) -> None:
        """A part has bytes for the client."""
        self._heard(part)
        out = self._stream.feed(part.at, data)
        if out and not self.over:
            self._owner.on_stream(out)
        if not part.attempt.committed and not self.over:
            part.attempt.committed = self.committed
            part.attempt.lease.proven(self._plane.loop.time())

    def part_ends(self, part: _Part, tail: bytes) -> None:
        """A part's stream is complete once ``tail`` is sent."""
        self._heard(part)
        out = self._stream.feed(part.at, tail) + self._stream.close(part.at)
        if not self._ended(part):
            if out:
                self._owner.on_stream(out)
            self._fill(self.begun_at)
        else:
            self._owner.on_stream_end(out)

    def part_answers(self, part: _Part, body: bytes, now: float) -> None:
        """A part's whole answer is there."""
        self._heard(part)
        self._bodies[part.at] = body
        if not self._ended(part):
            self._fill(self.begun_at)
            return
        items = "data" if self._call.operation is Operation.EMBEDDINGS else "choices"
        try:
            merged = merge_answers(self._bodies, items, self._split.copies)
        except ValueError:
            self._owner.on_failure(Broken(200), EngineFailed(BROKEN_ANSWER))
        else:
            self._owner.on_whole(merged, now)

    def part_fails(self, part: _Part, outcome: Outcome, error: ApiError) -> None:
        """A part came to nothing, and so do all."""
        self._heard(part)
        self._running.pop(part.at, None)
        self._fail(outcome, self._named(part.at, error))

    def _heard(self, part: _Part) -> None:
        """Any sign of life counts as the beginning of an answer: many parts take their time one after another."""
        self.begun_at = self._plane.loop.time()
        self.lease = part.attempt.lease
        self.destination = part.attempt.destination

    def _ended(self, part: _Part) -> bool:
        self._running.pop(part.at, None)
        self._cost.add(cost_of(part.attempt, worked=False))
        self._left -= 1
        self.over = self._left == 0
        return self.over

    def _fail(self, outcome: Outcome, error: ApiError) -> None:
        self.abandon(CLIENT_GONE)
        self._owner.on_failure(outcome, error)

    def _named(self, at: int, error: ApiError) -> ApiError:
        """The error with the number of the item that it is about, where the client gave a list."""
        name = next((name for name in _LISTS if name in self._split.names), None)
        if name is None or not isinstance(error, InvalidRequest):
            return error
        split = self._split
        return of_item(error, name, at // split.copies * split.size, alone=split.size == 1)
