"""The part of an exchange that asks a second endpoint when the first token is late (`models.*.hedge`).

The first attempt runs as any other. When the model's patience is over, a second one starts elsewhere, if the retry
budget pays for it and an endpoint in good standing has room. Whoever has bytes for the client first becomes the
exchange's attempt; the other is given up, which blames nobody. If one of the two fails before, the other goes on alone.
Only first attempts at streams are hedged: a retry has waited enough, and a whole answer has no first token.
"""

import asyncio

from gateway.balance.endpoint import Endpoint
from gateway.balance.engine import SERVING
from gateway.balance.hedge import FirstTokens
from gateway.balance.lease import Lease
from gateway.balance.outcome import (
    CLIENT_GONE,
    Broken,
    ClientGone,
    Outcome,
    Overloaded,
    Phase,
    Refused,
    Rejected,
    Served,
    Stale,
    TimedOut,
    Truncated,
)
from gateway.errors import ApiError
from gateway.proxy.attempt import Attempt
from gateway.proxy.detour import Detour, Second
from gateway.proxy.outgoing import outgoing
from gateway.proxy.owner import Owner
from gateway.proxy.seeking import Seeker


class Hedge(Second, Owner):
    """A second attempt: planned until its time has come, then under way until one of the two is ahead or fails."""

    __slots__ = ("_exchange", "_timer", "attempt")

    def __init__(self, exchange: "Hedger", timer: asyncio.TimerHandle) -> None:
        self._exchange = exchange
        self._timer = timer
        self.attempt: Attempt | None = None

    def stop(self) -> None:
        """Nobody waits for it any more."""
        self._timer.cancel()
        if self.attempt is not None and not self.attempt.over:
            self.attempt.abandon(CLIENT_GONE)

    # ---- Owner

    def on_stream(self, data: bytes) -> None:
        """It is ahead."""
        self._exchange.overtaken()
        self._exchange.on_stream(data)

    def on_heard(self) -> None:
        """A sign of life is no first token."""

    def on_stream_end(self, tail: bytes) -> None:
        """Its whole stream came at once."""
        self._exchange.overtaken()
        self._exchange.on_stream_end(tail)

    def on_whole(self, body: bytes, now: float) -> None:
        """Only streams are hedged."""
        del body, now
        raise AssertionError("a stream has no whole answer")

    def on_failure(self, outcome: Outcome, error: ApiError) -> None:
        """It came to nothing: the first attempt goes on alone."""
        del error
        self._exchange.hedge_failed(outcome)


class Hedger(Seeker):
    """A seeker that may have two attempts under way until the first bytes are there."""

    __slots__ = ()

    def _plan_hedge(self, first_tokens: FirstTokens) -> None:
        """Gives the attempt that has just begun so long until another one begins."""
        patience = first_tokens.patience
        if patience is not None and isinstance(self._attempt, Attempt) and not self._attempt.over:
            timer = self._plane.loop.call_later(patience, self._hedge)
            self._off_course().second = Hedge(self, timer)

    def _hedge(self) -> None:
        first, detour, now = self._attempt, self._off_course(), self._plane.loop.time()
        hedge = detour.second
        if not isinstance(hedge, Hedge) or not isinstance(first, Attempt) or first.over or self.committed:
            return
        second = self._second(first, hedge, detour, now)
        if second is None:
            detour.second = None
            return
        hedge.attempt = second
        second.destination.meter.in_flight += 1
        first.destination.meter.retried("hedge")
        second.send(self._inbound.forward, now)

    def _second(self, first: Attempt, hedge: Hedge, detour: Detour, now: float) -> Attempt | None:
        """An attempt elsewhere, ready to be sent; None where there is no room, or no budget for it."""
        plane, asked, before = self._plane, self._asked, detour.tried
        detour.tried = (*before, first.lease.endpoint)
        try:
            lease = self._acquire_fit(asked, now)
        except ApiError:  # the engine that serves it has been found not to take such calls
            lease = None
        detour.tried = before
        if not isinstance(lease, Lease):
            return None
        destination = asked.destinations[lease.target.engine.name]
        sent, self._ready = self._ready, None
        try:
            if sent is None or sent.target is not lease.target:
                sent = outgoing(self._call, asked, destination.link, lease.target)
        except ApiError:
            lease.end(Rejected(400), now)
            return None
        good = lease.endpoint.state in SERVING and sent.prepared.split is None
        if not good or not plane.budget.take(now):
            lease.end(CLIENT_GONE, now)
            return None
        self.attempts += 1
        own_id = b"%s-%d" % (self._own_id, self.attempts)
        return Attempt(plane, hedge, self._call, asked, lease, destination, sent, own_id)

    # ---- how it ends

    def overtaken(self) -> None:
        """The second attempt has the first bytes."""
        first = self._attempt
        self._promote()
        if first is not None and not first.over:
            if self._asked.hedge is not None:
                self._asked.hedge.note(self._plane.loop.time() - first.begun_at)
            first.abandon(CLIENT_GONE)

    def _promote(self) -> None:
        """The second attempt is the exchange's own from now on."""
        detour = self._off_course()
        hedge, detour.second = detour.second, None
        assert isinstance(hedge, Hedge)  # noqa: S101 - whoever calls has seen it
        assert hedge.attempt is not None  # noqa: S101
        hedge.attempt.owner = self
        self._attempt = hedge.attempt
        self._down.wake_at(min(self._total, hedge.attempt.begun_at + self._limits.first_token))

    def _begun(self, first_tokens: FirstTokens, now: float) -> None:
        """The first bytes are there: a second attempt that is still planned or under way is given up."""
        attempt = self._attempt
        if isinstance(attempt, Attempt):  # a fan-out begins anew with each of its parts, and is not hedged
            first_tokens.note(now - attempt.begun_at)
        if self._detour is not None and self._detour.second is not None:
            self._detour.second.stop()
            self._detour.second = None

    def hedge_failed(self, outcome: Outcome) -> None:
        """The second attempt came to nothing. What it tried need not be tried again, and its death counts."""
        detour = self._off_course()
        hedge, detour.second = detour.second, None
        assert isinstance(hedge, Hedge)  # noqa: S101 - only a hedge reports
        assert hedge.attempt is not None  # noqa: S101
        detour.tried = (*detour.tried, hedge.attempt.lease.endpoint)
        detour.history.died += isinstance(outcome, Broken) and outcome.died

    def on_failure(self, outcome: Outcome, error: ApiError) -> None:
        """The exchange's own attempt came to nothing (`Owner`): the second goes on alone, if there is one."""
        second = None if self.committed or self._detour is None else self._detour.second
        if isinstance(second, Hedge) and self._detour is not None:
            first = self._attempt
            if first is not None and second.attempt is not None and self._worth_going_on(outcome):
                self._detour.tried = (*self._detour.tried, first.lease.endpoint)
                self._detour.last, self._detour.error = outcome, error
                self._detour.history.died += isinstance(outcome, Broken) and outcome.died
                self._promote()
                return
            second.stop()
            self._detour.second = None
        super().on_failure(outcome, error)

    def _worth_going_on(self, outcome: Outcome) -> bool:
        """Whether another endpoint may still serve what one has failed at in this way."""
        match outcome:
            case Refused() | Stale() | Overloaded() | Broken():
                return True
            case TimedOut(phase=phase, by_client=by_client):
                late = phase is Phase.FIRST_TOKEN and self._plane.retry.on_timeout
                return not by_client and (late or phase is Phase.CONNECT)
            case Served() | Rejected() | ClientGone() | Truncated():
                return False

    def endpoint_lost(self, endpoint: Endpoint) -> None:
        """Health checks have found the endpoint dead: of two attempts, the other goes on alone."""
        second = None if self.committed or self._detour is None else self._detour.second
        if not isinstance(second, Hedge) or second.attempt is None or self._attempt is None:
            super().endpoint_lost(endpoint)
        elif second.attempt.runs_on(endpoint):
            second.attempt.abandon(Broken(died=True))
            self.hedge_failed(Broken(died=True))
        elif self._attempt.runs_on(endpoint):
            first, detour = self._attempt, self._off_course()
            first.abandon(Broken(died=True))
            first.destination.meter.retried("endpoint_down")
            detour.tried += (endpoint,)
            detour.history.died += 1
            self._promote()
