"""One client request with all its attempts.

A state machine driven by callbacks: the client's carrier, the attempts and the wheel of deadlines call it, and it calls
the `Downstream`. There is no coroutine and no task on the straight path; a task exists only while a new connection is
being made.

Phases: *waiting* (nothing of an answer has been sent to the client, so another endpoint may still be tried; heartbeats
may have opened the stream), *committed* (head and first bytes of a stream are out), *over*. Whatever happens, every
lease ends exactly once and the meters are set right.
"""

from bisect import bisect_left
from math import inf
from typing import Final

from gateway.balance.outcome import CLIENT_GONE, SERVED, Phase, TimedOut
from gateway.errors import ApiError, InvalidRequest
from gateway.logs import RequestSummary
from gateway.metrics import Meter
from gateway.proxy import replies, verdicts
from gateway.proxy.attempt import Attempt
from gateway.proxy.downstream import Downstream, Inbound
from gateway.proxy.fanout import FanOut
from gateway.proxy.heartbeat import BEAT, Heartbeat
from gateway.proxy.hedging import Hedger
from gateway.proxy.limiter import Permit
from gateway.proxy.outgoing import check_asked
from gateway.proxy.plane import Plane
from gateway.proxy.spending import cost_of
from gateway.usage import Spent
from gateway.wire.anthropic import ANTHROPIC
from gateway.wire.named_stream import farewell
from gateway.wire.openai import NO_CALL, parse_call, prompt_of

_FAILURES: Final = {503: "unavailable", 504: "timed_out"}


class Exchange(Hedger):
    """Serves one request. Its carrier calls `begin`, then `client_gone`, `client_paused`, `client_resumed`."""

    __slots__ = ("_body", "_first_at", "_heartbeat", "_last_at", "_opened", "_paused_at", "_permit", "request_id")
    _last_at: float
    request_id: bytes

    def __init__(self, plane: Plane, down: Downstream, inbound: Inbound, body: bytes) -> None:
        """Sets all that its halves have, too: it is made for every request, and each further constructor costs."""
        self._plane = plane
        self._down = down
        self._inbound = inbound
        self._body = body
        self._call = NO_CALL
        self._attempt = self._detour = self._inside = self._ready = None
        self._heartbeat: Heartbeat | None = None
        self._permit: Permit | None = None
        self._total = inf
        self._first_at = self._paused_at = 0.0
        self.attempts = 0
        self._opened = self.committed = self.over = False

    # ---- the carrier's calls

    def begin(self) -> None:
        """Starts to serve; every error ends up as an answer."""
        plane, inbound = self._plane, self._inbound
        self._own_id = own_id = plane.ids()
        self.request_id = inbound.request_id or own_id
        self.started = self._last_at = now = plane.loop.time()
        guard, caller = plane.guard, inbound.caller
        try:
            if guard is not None and (caller is None or caller.watched):
                guard.let_in(caller)
            if inbound.objection is not None:
                message, code = inbound.objection
                raise InvalidRequest(message, code=code)
            self._call = call = parse_call(inbound.operation, self._body, None if caller is None else caller.rank)
            asked = plane.asked.get(call.model)
            if asked is None:
                raise verdicts.no_such_model(call.model)
            self._asked = asked
            if guard is not None and caller is not None and caller.models is not None:
                guard.allow(caller, call.model, asked.route.model)
            if call.operation not in asked.unchecked:
                check_asked(call, asked)
            plane.budget.request(now)
            if call.stream and (interval := plane.settings.server.heartbeat) is not None:
                self._heartbeat = Heartbeat(self, interval)
                plane.deadlines.put(self._heartbeat, now + interval)
            if guard is not None:
                self._permit = guard.limiter.admit(self, caller, asked.route.model, call, now)
            if guard is None or self._permit is not None:
                self._try()
                if call.stream and self._asked.hedge is not None:  # which may be another model by now
                    self._plan_hedge(self._asked.hedge)
        except ApiError as error:
            self._fail(error)

    def admitted(self, permit: Permit) -> None:
        """The limits let the request pass (`limiter.Waiter`)."""
        if self.over:
            permit.end(0, 0, 0, self._plane.loop.time())
            return
        self._permit = permit
        try:
            self._try()
            if self._asked.hedge is not None and self._call.stream:
                self._plan_hedge(self._asked.hedge)
        except ApiError as error:
            self._fail(error)

    def refused(self, error: ApiError) -> None:
        """The limits do not let the request pass (`limiter.Waiter`)."""
        if not self.over:
            self._fail(error)

    def client_gone(self) -> None:
        """The client has closed its connection: the engine's request is closed at once."""
        if self.over:
            return
        attempt = self._attempt
        whole = attempt is not None and attempt.said_all
        if attempt is not None:
            attempt.abandon(SERVED if whole else CLIENT_GONE)
        self._finish("served" if whole else "client_gone", 200 if self.committed else 0)

    def client_paused(self) -> None:
        """The client reads more slowly than the engine writes: stop reading from the engine."""
        if self.over or self._attempt is None:
            return
        self._paused_at = now = self._plane.loop.time()
        self._attempt.pause()
        self._down.wake_at(min(now + self._plane.settings.server.write_timeout, self._total))

    def client_resumed(self) -> None:
        """The client has caught up."""
        self._paused_at = 0.0
        if not self.over and self._attempt is not None:
            self._last_at = now = self._plane.loop.time()
            self._down.wake_at(min(now + self._limits.idle, self._total))
            self._attempt.resume()

    def interrupt(self) -> None:
        """The gateway stops and waits no longer: the client is told, the engine's request is closed."""
        if self.over:
            return
        if self._attempt is not None:
            self._attempt.abandon(CLIENT_GONE)
        error = verdicts.going_away()
        if self.committed:
            self._break_off(error)
        else:
            self._fail(error)

    # ---- the answer

    def on_stream(self, data: bytes) -> None:
        """Bytes of the stream (`Owner`). The first ones commit: no other endpoint is tried from here on."""
        attempt = self._attempt
        assert attempt is not None  # noqa: S101 - only an attempt reports
        now = self._plane.loop.time()
        meter = attempt.destination.meter
        if self.committed:
            silence, seconds = now - self._last_at, meter.inter_token  # `Histogram.observe`, without the call
            seconds.counts[bisect_left(seconds.bounds, silence)] += 1
            seconds.total += silence
        else:
            self.committed = attempt.committed = True
            self._first_at = now
            attempt.lease.proven(now)
            meter.first_token.observe(now - self.started)
            if self._asked.hedge is not None:
                self._begun(self._asked.hedge, now)
            limits = self._limits
            if limits.idle < limits.first_token:  # else the look at the first token's limit comes soon enough
                self._down.wake_at(min(now + limits.idle, self._total))
            self._open(now)
        self._last_at = now
        self._down.write(data)

    def on_heard(self) -> None:
        """The engine speaks, but says nothing for the client (`Owner`)."""
        self._last_at = self._plane.loop.time()

    def _open(self, now: float) -> None:
        if not self._opened:
            self._opened = True
            self._down.start(200, self._headers(replies.EVENT_STREAM, replies.STREAM_LINES, now))

    def on_stream_end(self, tail: bytes) -> None:
        """The stream is complete (`Owner`)."""
        if tail:
            self.on_stream(tail)
        self._finish("served", 200)
        self._down.finish()

    def on_whole(self, body: bytes, now: float) -> None:
        """The answer is there (`Owner`)."""
        headers = self._headers(replies.JSON, b"", now)
        self._finish("served", 200, now)
        self._down.respond(200, headers, body)

    # ---- time

    def beat(self, now: float) -> bool:
        """The client has waited long enough for a sign of life (`Awaiting`). From here on errors are events too."""
        if self.over or self.committed:
            return False
        self._open(now)
        self._down.write(BEAT)
        return True

    def on_deadline(self, now: float) -> float | None:
        """A deadline may have passed: the next one, in loop time; None if there is none."""
        attempt = self._attempt
        if self.over or attempt is None:
            return None
        limits, total = self._limits, self._total
        if self._paused_at and now >= self._paused_at + self._plane.settings.server.write_timeout:
            self._down.abort()
            self.client_gone()
            return None
        if now >= total:
            phase, limit = Phase.TOTAL, total
        elif self._paused_at:
            return min(self._paused_at + self._plane.settings.server.write_timeout, total)
        elif self.committed:
            phase, limit = Phase.IDLE, self._last_at + limits.idle
        elif attempt.over or not (limits.whole or self._call.stream):
            return total  # it waits for room elsewhere; or for an answer that comes when it is complete
        else:
            phase, limit = Phase.FIRST_TOKEN, attempt.begun_at + limits.first_token
        if now < limit:
            return min(limit, total)
        self._too_late(attempt, phase)
        return None

    def _too_late(self, attempt: Attempt | FanOut, phase: Phase) -> None:
        if attempt.said_all:  # only the end of the body is missing
            attempt.abandon(SERVED)
            self.on_stream_end(b"")
            return
        seconds = self._limits.of(phase)
        outcome = TimedOut(phase, by_client=phase in self._limits.by_client)
        attempt.abandon(outcome)
        self.on_failure(outcome, verdicts.timed_out(phase, seconds))

    # ---- endings

    def _break_off(self, error: ApiError) -> None:
        """Ends a committed stream so that no client can take it for whole: one error event, then a cut."""
        attempt = self._attempt
        self._finish("truncated", 200, error=error)
        self._cut(error, attempt)

    def _cut(self, error: ApiError, attempt: Attempt | FanOut | None) -> None:
        relay = attempt.relay if isinstance(attempt, Attempt) else None
        self._down.write(farewell(self._inbound.operation, error, relay, self._own_id))
        self._down.abort()

    def _fail(self, error: ApiError) -> None:
        attempt = self._attempt
        more = replies.error_lines(error) + (replies.NO_ATTEMPT if attempt is None else b"")
        headers = self._headers(replies.JSON, more, self._plane.loop.time())
        outcome = _FAILURES.get(error.status, "rejected" if error.status < 500 else "failed")
        self._finish(outcome, error.status, error=error)
        if self._opened:  # by a heartbeat: the status is out
            self._cut(error, attempt)
            return
        self._down.respond(error.status, headers, replies.error_body(error, self._inbound.operation, self.request_id))

    def _finish(self, outcome: str, status: int, now: float | None = None, error: ApiError | None = None) -> None:
        self.over = True
        plane = self._plane
        if self._heartbeat is not None:
            plane.deadlines.drop(self._heartbeat)
        if self._inside is not None or self._detour is not None:
            self._stop_seeking()
        if now is None:
            now = plane.loop.time()
        if self._permit is not None:
            attempt = self._attempt
            if isinstance(attempt, Attempt) and (usage := attempt.usage) is not None:
                self._permit.end(usage.prompt_tokens, usage.completion_tokens, 0, now)
            else:
                cost = self._cost(gone=outcome == "client_gone")
                self._permit.end(cost.prompt, cost.answer, cost.estimated, now)
        meter = self._unserved() if self._attempt is None else self._attempt.destination.meter
        meter.ended(outcome, now - self.started)
        if error is not None or plane.logs_served:
            self._note(meter, outcome, status, now, error)
        self._attempt = None  # it knows its owner: both would wait for the garbage collector, with all their bytes

    def _cost(self, *, gone: bool) -> Spent:
        attempt = self._attempt
        if isinstance(attempt, Attempt):
            return cost_of(attempt, worked=gone)
        return Spent() if attempt is None else attempt.spent(gone=gone)

    def _unserved(self) -> Meter:
        """Who counts a request that no engine got. Names that are not configured make no series of their own."""
        asked = self._plane.asked.get(self._call.model)
        return self._plane.nowhere if asked is None else asked.unserved

    def _note(self, meter: Meter, outcome: str, status: int, now: float, error: ApiError | None) -> None:
        """Tells the journal, if it wants to know."""
        journal = self._plane.journal
        if journal is None or (error is None and not journal.draws()):
            return
        cost = self._cost(gone=outcome == "client_gone")
        asked = self._plane.asked.get(self._call.model)
        shows_prompt = asked is not None and asked.log_prompts
        journal.note(
            RequestSummary(
                request_id=self.request_id.decode(),
                operation=self._inbound.operation.value,
                model=meter.model,
                engine=meter.engine,
                status=status,
                outcome=outcome,
                attempts=self.attempts,
                seconds=now - self.started,
                first_token=self._first_at - self.started if self.committed else None,
                input_tokens=cost.prompt,
                output_tokens=cost.answer,
                code="" if error is None else error.code or error.type,
                message="" if error is None else error.brief,
                prompt=prompt_of(self._call) if shows_prompt else "",
                key="" if self._inbound.caller is None else self._inbound.caller.name,
            )
        )

    def _headers(self, content_type: bytes, more: bytes, now: float) -> bytes:
        attempt = self._attempt
        if attempt is not None:
            prepared = attempt.outgoing.prepared
            destination = attempt.destination
            if self.attempts == 1:
                more += destination.first_lines
            else:
                more += replies.engine_lines(destination.link.name, self.attempts)
            if prepared.dropped or prepared.translated:
                more += replies.told(prepared.dropped, prepared.translated)
        if self._detour is not None and self._detour.cause is not None:
            more += replies.fallback_lines(self._detour.stand_ins[-1], self._detour.cause)
        if self._inbound.operation in ANTHROPIC:
            more += replies.REQUEST_ID % self.request_id
        if self._permit is not None and self._permit.lines:
            more += self._permit.lines
        if self._inbound.echo:
            more += self._inbound.echo
        return replies.BLOCK % (content_type, self.request_id, (now - self.started) * 1000.0, more)
