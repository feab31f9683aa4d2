"""The half of an exchange that finds an endpoint for its call, again and again if need be.

Straight on, a request costs one look at its route. What happens besides is kept in a `Detour`, which most requests
never have: waiting for room, trying elsewhere, another model that stands in.
"""

from abc import abstractmethod
from dataclasses import replace
from functools import partial

from gateway.balance.admission import Shed
from gateway.balance.endpoint import Endpoint
from gateway.balance.fallback import Cause, next_model
from gateway.balance.lease import Lease
from gateway.balance.outcome import CLIENT_GONE, Broken, Outcome, Rejected
from gateway.balance.retry import GiveUp, decide
from gateway.balance.route import Unavailable
from gateway.errors import ApiError, EngineFailed
from gateway.proxy import verdicts
from gateway.proxy.attempt import Attempt
from gateway.proxy.detour import Detour
from gateway.proxy.downstream import Downstream, Inbound
from gateway.proxy.fanout import FanOut
from gateway.proxy.limits import Limits
from gateway.proxy.outgoing import Outgoing, check_asked, outgoing, unfit
from gateway.proxy.owner import Owner
from gateway.proxy.plane import Asked, Plane
from gateway.proxy.queueing import AdmissionQueue, ShedReason
from gateway.wire.openai import Call


class Seeker(Owner):
    """Starts attempts for one call. Its other half speaks to the client."""

    __slots__ = (
        "_asked",
        "_attempt",
        "_call",
        "_detour",
        "_down",
        "_inbound",
        "_inside",
        "_limits",
        "_own_id",
        "_plane",
        "_ready",
        "_total",
        "attempts",
        "committed",
        "over",
        "started",
    )
    _asked: Asked
    _attempt: Attempt | FanOut | None
    _call: Call
    _detour: Detour | None
    _down: Downstream
    _inbound: Inbound
    _inside: AdmissionQueue | None
    _limits: Limits
    _own_id: bytes
    _plane: Plane
    _ready: Outgoing | None
    _total: float
    attempts: int
    committed: bool
    over: bool
    started: float

    @abstractmethod
    def on_deadline(self, now: float) -> float | None:
        """A deadline may have passed: the next one, in loop time; None if there is none."""

    @abstractmethod
    def _fail(self, error: ApiError) -> None:
        """Answers the client with an error."""

    @abstractmethod
    def _break_off(self, error: ApiError) -> None:
        """Ends a committed stream with an error."""

    # ---- the next endpoint

    def _try(self) -> None:
        """Starts an attempt at an endpoint that has not been tried, or waits for one. Raises ApiError."""
        asked, plane = self._asked, self._plane
        fresh = self._detour is None
        now = self.started if fresh else plane.loop.time()
        queue = asked.queue
        if queue is not None and self._inside is not queue and (queue.waiting or not queue.gate.open):
            if not self._stand_in(Cause.OVERLOAD, now):
                self._wait(queue, now)
            return
        if fresh and asked.straight:
            lease = asked.route.acquire(None, now, plane.rng)
        else:
            lease = self._acquire_fit(asked, now) if asked.mixed else self._acquire(asked, now)
        if isinstance(lease, Lease):
            self._start(lease, now)
        elif self._stand_in(self._cause(lease), now):
            return
        elif queue is not None and lease.reason == "all_busy":
            self._wait(queue, now)
        else:
            raise self._off_course().error or verdicts.unavailable(lease, self._call.model)

    def _acquire(self, asked: Asked, now: float) -> Lease | Unavailable:
        key = None if asked.key is None else asked.key(self._call, self._inbound)
        tried = () if self._detour is None else self._detour.tried
        if asked.mixed:
            tried = (*tried, *asked.strangers(self._call.operation))
        return asked.route.acquire(key, now, self._plane.rng, tried)

    def _acquire_fit(self, asked: Asked, now: float) -> Lease | Unavailable:
        """As `_acquire`; of several engines, one that serves the call as it is asked. Raises ApiError if none does."""
        lease = self._acquire(asked, now)
        if asked.mixed and isinstance(lease, Lease):
            try:
                self._ready = outgoing(
                    self._call, asked, asked.destinations[lease.target.engine.name].link, lease.target
                )
            except ApiError:
                lease.end(Rejected(400), now)
                self._off_course().tried += unfit(self._call, asked)
                return self._acquire(asked, now)
        return lease

    def _start(self, lease: Lease, now: float) -> None:
        """Sends the call to the lease's endpoint. Raises ApiError when its engine cannot serve it as it is."""
        plane, asked, call = self._plane, self._asked, self._call
        if asked.queue is not self._inside:
            self._step_over(asked.queue)
        target = lease.target
        destination = asked.destinations[target.engine.name]
        limits = destination.limits
        sent = self._ready
        if sent is not None:
            self._ready = None
        try:
            if self._inbound.bounds is not None:
                beats = call.stream and plane.settings.server.heartbeat is not None
                limits = limits.lowered(self._inbound.bounds, streamed=call.stream, beats=beats)
            if sent is None or sent.target is not target:
                sent = outgoing(call, asked, destination.link, target)
        except ApiError:
            lease.end(Rejected(400), now)
            raise
        destination.meter.in_flight += 1
        self.attempts = number = self.attempts + 1
        # A new id each time: an engine may refuse one that it is still working on (cases.md D51).
        own_id = self._own_id if number == 1 else b"%s-%d" % (self._own_id, number)
        split = sent.prepared.split
        attempt: Attempt | FanOut
        if split is None:
            attempt = Attempt(plane, self, call, asked, lease, destination, sent, own_id)
        else:
            if asked.mixed:
                self._off_course().tried += unfit(call, asked)
            more = partial(self._acquire, asked)
            attempt = FanOut(plane, self, call, asked, lease, destination, sent, own_id, split, more)
        self._attempt = attempt
        self._limits = limits
        self._total = total = self.started + limits.total
        first = now + limits.first_token
        self._down.wake_at(first if first < total else total)  # noqa: FURB136 - calling min costs ten times as much
        attempt.send(self._inbound.forward, now)

    def _step_over(self, queue: AdmissionQueue | None) -> None:
        """Counts the request in where it is served now, and out where it was."""
        if self._inside is not None:
            self._inside.step_out()
        self._inside = queue if queue is not None and queue.gate.enter() else None

    def _off_course(self) -> Detour:
        if self._detour is None:
            self._detour = Detour()
        return self._detour

    # ---- after a failure

    def on_failure(self, outcome: Outcome, error: ApiError) -> None:
        """The attempt came to nothing (`attempt.Owner`): another endpoint, another model, or the error."""
        attempt = self._attempt
        assert attempt is not None  # noqa: S101 - only an attempt reports
        if self.committed:
            self._break_off(error)
            return
        plane = self._plane
        detour = self._off_course()
        detour.last, detour.error = outcome, error
        now = plane.loop.time()
        decision = decide(outcome, detour.history, plane.budget, plane.retry, now, plane.rng)
        if isinstance(decision, GiveUp):
            cause = None if decision.reason == "poisonous" else self._cause(outcome)
            if not self._stand_in(cause, now):
                self._fail(error)
            return
        detour.tried = (*detour.tried, attempt.lease.endpoint)
        if decision.after > 0:
            detour.pause = plane.loop.call_later(decision.after, self._again, attempt, decision.reason)
        else:
            self._again(attempt, decision.reason)

    def _again(self, failed: Attempt | FanOut, reason: str) -> None:
        self._off_course().pause = None
        try:
            self._try()
        except ApiError as final:
            self._fail(final)
        else:
            failed.destination.meter.retried(reason)

    def endpoint_lost(self, endpoint: Endpoint) -> None:
        """Health checks have found the endpoint dead: if nothing is committed, the call moves to another one.

        Where there is no other it stays: the answer may still come.
        """
        attempt = self._attempt
        if self.over or self.committed or attempt is None or attempt.over or not attempt.runs_on(endpoint):
            return
        plane, detour, now = self._plane, self._off_course(), self._plane.loop.time()
        before = detour.tried
        detour.tried = (*before, endpoint)
        try:
            lease = self._acquire_fit(self._asked, now)
        except ApiError:
            lease = None
        if not isinstance(lease, Lease):
            detour.tried = before
            return
        died = Broken(died=True)
        history = replace(detour.history)
        if isinstance(decide(died, history, plane.budget, plane.retry, now, plane.rng), GiveUp):
            lease.end(CLIENT_GONE, now)
            return
        detour.history = history
        detour.last, detour.error = died, EngineFailed("The engine gave no answer.")
        attempt.abandon(died)
        attempt.destination.meter.retried("endpoint_down")
        try:
            self._start(lease, now)
        except ApiError as error:
            self._fail(error)

    # ---- another model

    def _cause(self, end: Outcome | Unavailable) -> Cause | None:
        # Whoever waited so long for a first token has waited enough, unless the operator says otherwise.
        return self._off_course().calls_for(end, patient=self._plane.retry.on_timeout)

    def _stand_in(self, cause: Cause | None, now: float) -> bool:
        """Starts an attempt with the first fallback model that can take the request now."""
        asked = self._asked
        if not asked.stand_ins:
            return False
        passed = self._off_course().stand_ins
        while (model := next_model(asked.fallbacks, cause, passed)) is not None:
            if cause is not None and self._try_model(model, asked.stand_ins[model], cause, now):
                return True
            passed = (*passed, model)
        return False

    def _try_model(self, model: str, other: Asked, cause: Cause, now: float) -> bool:
        before, detour, queue = self._asked, self._off_course(), other.queue
        if queue is not None and (queue.waiting or not queue.gate.open):
            return False
        tried = detour.tried
        if cause is Cause.CONTEXT_LENGTH:
            detour.tried = ()
        elif self._attempt is not None:
            detour.tried = (*tried, self._attempt.lease.endpoint)
        try:
            check_asked(self._call, other)
            lease = self._acquire_fit(other, now)
            if isinstance(lease, Lease):
                self._asked = other
                self._start(lease, now)
                detour.stand_ins = (*detour.stand_ins, model)
                detour.cause = cause
                self._plane.meters.happened("fallbacks", before.route.model, model, cause)
                return True
        except ApiError:  # not a model for this call
            self._asked = before
            if self._inside is not before.queue:
                self._step_over(None)
        detour.tried = tried
        return False

    # ---- waiting for room

    def _wait(self, queue: AdmissionQueue, now: float) -> None:
        """Takes a place in the queue. Raises ApiError when there is none."""
        bounds = self._inbound.bounds
        limit = self._total if bounds is None else min(self._total, self.started + bounds.total)
        # Who tries again has come before those who wait for their first try.
        age = (now - self.started) / queue.settings.aging
        place = queue.join(self, self._inbound.priority + age, limit)
        if isinstance(place, Shed):
            raise self._shed("queue_full", place.retry_after)
        self._off_course().place = (queue, place)

    def _shed(self, reason: ShedReason, retry_after: float) -> ApiError:
        self._plane.meters.shed(reason)
        queue = self._asked.queue
        own_limit = queue is not None and self._inside is not queue and not queue.gate.open
        error = None if self._detour is None else self._detour.error
        return error or verdicts.shed(self._call.model, retry_after, own_limit=own_limit)

    @property
    def picky(self) -> bool:
        """Not every endpoint will do (`queueing.Waiter`)."""
        return self._detour is not None and bool(self._detour.tried)

    def take_room(self, now: float) -> bool:
        """There may be room (`queueing.Waiter`)."""
        asked = self._asked
        if asked.queue is not None and self._inside is not asked.queue and not asked.queue.gate.open:
            return False
        try:
            lease = self._acquire_fit(asked, now) if asked.mixed else self._acquire(asked, now)
            if isinstance(lease, Lease):
                self._start(lease, now)
            elif lease.reason == "all_busy":
                return False
            elif not self._stand_in(self._cause(lease), now):  # there is nothing left to wait for
                raise self._off_course().error or verdicts.unavailable(lease, self._call.model)
        except ApiError as error:
            self._fail(error)
        self._off_course().place = None
        return True

    def turned_away(self, reason: ShedReason, retry_after: float) -> None:
        """The place is lost (`queueing.Waiter`)."""
        self._off_course().place = None
        if not self._stand_in(Cause.OVERLOAD, self._plane.loop.time()):
            self._fail(self._shed(reason, retry_after))

    def _stop_seeking(self) -> None:
        """Gives up whatever is under way but the attempt."""
        if self._inside is not None:
            self._step_over(None)
        if self._detour is not None:
            self._detour.leave()
