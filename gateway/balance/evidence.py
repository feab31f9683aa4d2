"""What is heard about an endpoint (outcomes, health checks, load reports) and what follows from it.

Invariants:
- 4xx answers, clients that left, limits the client set, stale connections and total timeouts change nothing.
- At most half of an engine's endpoints (but one of one) are EJECTED at any time.
- An outcome counts for the breaker only in the term in which its attempt began.
- A health verdict of down closes the breaker, so a recovered endpoint starts afresh, in slow start.
"""

from gateway.balance.breaker import Position
from gateway.balance.endpoint import Endpoint, EndpointState
from gateway.balance.engine import SERVING, Engine
from gateway.balance.health import Health
from gateway.balance.load import LoadReport, next_change
from gateway.balance.outcome import Broken, Outcome, Overloaded, Phase, Refused, TimedOut, Verdict, label, verdict
from gateway.balance.outlier import Sample, ejection_limit, find_outliers


def settle(engine: Engine, endpoint: Endpoint, term: int | None, outcome: Outcome, now: float) -> None:
    """Judge the endpoint by the outcome of an attempt that began in the breaker's `term`."""
    if _means_unreachable(outcome):
        endpoint.check.suspect(now)
    if term == endpoint.breaker.term:
        if endpoint.breaker.position is Position.CLOSED:
            _judge(engine, endpoint, outcome, now)
        else:
            _judge_trial(engine, endpoint, outcome, now)
    engine.place(endpoint)


def prove(engine: Engine, endpoint: Endpoint, term: int | None, now: float) -> int | None:
    """Let a trial succeed with the first bytes of its answer, not only at its end; the lease's term from then on."""
    if term == endpoint.breaker.term and endpoint.breaker.position is Position.HALF_OPEN:
        return endpoint.breaker.term if _end_trial(engine, endpoint, now, good=True) else None
    return term


def check_passed(engine: Engine, endpoint: Endpoint, now: float) -> None:
    """Note that a health check passed."""
    changed = endpoint.check.passed(now)
    if changed:
        endpoint.health_reason = ""
        engine.restate(endpoint, now, circuit_moved=False)
    # It was ejected because nobody listened; now somebody does, so there is nothing to wait for.
    if endpoint.breaker.position is Position.OPEN and endpoint.unreachable:
        endpoint.breaker.half_open()
        engine.restate(endpoint, now)


def check_failed(engine: Engine, endpoint: Endpoint, reason: str, now: float, *, refused: bool = False) -> None:
    """Note that a health check failed and why, in words for an operator. `refused`: nobody was listening."""
    changed = endpoint.check.failed(now, refused=refused)
    if endpoint.check.verdict is not Health.DOWN:
        return
    endpoint.health_reason = reason
    if endpoint.state is EndpointState.DOWN:
        endpoint.reason = reason
    if changed:
        endpoint.cold = engine.resilience.warm_up
        moved = endpoint.breaker.position is not Position.CLOSED
        if moved:
            endpoint.breaker.close()
        engine.restate(endpoint, now, circuit_moved=moved)


def warmed(engine: Engine, endpoint: Endpoint, now: float, failure: str | None) -> None:
    """Note how the request went that should warm an endpoint up: None is well, else why it is not warm."""
    endpoint.cold = failure is not None
    endpoint.health_reason = failure or ""
    engine.restate(endpoint, now, circuit_moved=False)


def report_load(engine: Engine, endpoint: Endpoint, report: LoadReport, now: float) -> None:
    """Take what the engine says about its load."""
    endpoint.report = report
    endpoint.extra = endpoint.foreign(now)
    change = next_change(report, now)
    if change is not None:
        engine.due = min(engine.due, change)


def hear_of_others(engine: Engine, endpoint: Endpoint, running: int, until: float, now: float) -> None:
    """Take what other gateways run on the endpoint; it holds `until` they should have said more."""
    endpoint.others, endpoint.others_until = running, until
    endpoint.extra = endpoint.foreign(now)
    if running:
        engine.due = min(engine.due, until)


def doubt(engine: Engine, endpoint: Endpoint, until: float) -> None:
    """Another gateway has ejected the endpoint: it is asked last until then, as one that has said it is full.

    It is no more than a hint, and refuses no request: the other one may be cut off where we are not.
    """
    if until > endpoint.busy_until:
        endpoint.busy_until = until
        engine.due = min(engine.due, until)
        engine.place(endpoint)


def sweep(engine: Engine, now: float) -> None:
    """Do what time alone does, compare the endpoints, eject those that stand out. To be called about once a second."""
    if now >= engine.due:
        engine.refresh(now)
    serving = [endpoint for endpoint in engine.endpoints if endpoint.state in SERVING]
    samples = [Sample(*endpoint.breaker.counts(now), endpoint.first_token.mean) for endpoint in serving]
    for index, reason in find_outliers(samples, engine.resilience.outlier):
        _eject(engine, serving[index], reason, now)


def _means_unreachable(outcome: Outcome) -> bool:
    match outcome:
        case Refused() | Broken(died=True) | TimedOut(phase=Phase.CONNECT):
            return True
        case _:
            return False


def _judge(engine: Engine, endpoint: Endpoint, outcome: Outcome, now: float) -> None:
    found = verdict(outcome)
    if found is Verdict.GOOD:
        endpoint.breaker.served(now)
    elif found is Verdict.BAD:
        wish = endpoint.breaker.failed(now)
        if wish is not None:
            endpoint.unreachable = isinstance(outcome, Refused) or outcome == TimedOut(Phase.CONNECT)
            _eject(engine, endpoint, f"{wish} (last: {label(outcome)})", now)
    elif isinstance(outcome, Overloaded):
        _spare(engine, endpoint, outcome, now)


def _judge_trial(engine: Engine, endpoint: Endpoint, outcome: Outcome, now: float) -> None:
    found = verdict(outcome)
    if found is Verdict.BAD:
        endpoint.breaker.open(now)
        endpoint.unreachable = isinstance(outcome, Refused)
        endpoint.breaker_reason = f"trial failed ({label(outcome)})"
        engine.restate(endpoint, now)
        return
    if isinstance(outcome, Overloaded):
        _spare(engine, endpoint, outcome, now)
    _end_trial(engine, endpoint, now, good=found is Verdict.GOOD)


def _end_trial(engine: Engine, endpoint: Endpoint, now: float, *, good: bool) -> bool:
    closes = endpoint.breaker.end_trial(good=good)
    if closes:
        endpoint.breaker.close()
        engine.restate(endpoint, now)
    return closes


def _spare(engine: Engine, endpoint: Endpoint, outcome: Overloaded, now: float) -> None:
    settings = engine.resilience
    asked = settings.busy_pause if outcome.retry_after is None else outcome.retry_after
    until = now + min(max(asked, 0.0), settings.longest_busy_pause)
    if until > endpoint.busy_until:
        endpoint.busy_until = until
        endpoint.asked_off = outcome.retry_after is not None
    engine.due = min(engine.due, endpoint.busy_until)


def _eject(engine: Engine, endpoint: Endpoint, reason: str, now: float) -> None:
    """Open the breaker, unless the endpoint is out already or too many of the engine's endpoints are ejected."""
    if endpoint.state not in SERVING:
        return
    ejected = sum(other.state is EndpointState.EJECTED for other in engine.endpoints)
    if endpoint not in engine.endpoints or ejected >= ejection_limit(len(engine.endpoints)):
        endpoint.reason = f"{reason}; not ejected, because half of the endpoints are"
        return
    endpoint.breaker.open(now)
    endpoint.breaker_reason = reason
    engine.restate(endpoint, now)
