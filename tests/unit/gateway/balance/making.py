"""Small engines and routes for the tests of the balancer."""

from engines.profile import EngineKind
from gateway.balance.breaker import BreakerSettings
from gateway.balance.endpoint import Endpoint, StateChange
from gateway.balance.engine import Engine, Resilience
from gateway.balance.lease import Lease, Target
from gateway.balance.outlier import OutlierSettings
from gateway.balance.policies.policy import Policy
from gateway.balance.policies.round_robin import RoundRobin
from gateway.balance.route import Route
from gateway.balance.slow_start import SlowStart

NO_SLOW_START = Resilience(slow_start=SlowStart(duration=0.0))


def endpoints(count: int, limit: int | None = None) -> list[Endpoint]:
    made = [Endpoint(f"http://10.0.0.{number}:8000", max_in_flight=limit) for number in range(1, count + 1)]
    for order, endpoint in enumerate(made):
        endpoint.order = order
    return made


def engine(
    count: int,
    *,
    name: str = "qwen",
    limit: int | None = None,
    resilience: Resilience = NO_SLOW_START,
    facts: list[StateChange] | None = None,
) -> Engine:
    heard = [] if facts is None else facts
    return Engine(name, EngineKind.VLLM, endpoints(count, limit), resilience=resilience, notice=heard.append)


def route(*engines: Engine, policy: Policy | None = None, weights: tuple[float, ...] = ()) -> Route:
    shares = weights or (1.0,) * len(engines)
    targets = [Target(each, "m", share) for each, share in zip(engines, shares, strict=True)]
    return Route("chat", targets, policy or RoundRobin())


def lease(from_route: Route, now: float = 0.0, tried: tuple[Endpoint, ...] = (), key: bytes | None = None) -> Lease:
    found = from_route.acquire(key, now, lambda: 0.5, tried)
    assert isinstance(found, Lease)
    return found


def trials(count: int) -> Resilience:
    return Resilience(
        breaker=BreakerSettings(trials=count), outlier=OutlierSettings(), slow_start=SlowStart(duration=0.0)
    )
