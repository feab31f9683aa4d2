"""One configuration made ready for traffic: everything a request needs, found by one or two dictionary look-ups.

A plane is built once and never changed; a new configuration makes a new plane. What must outlive it (meters, the
wheel of deadlines, ids) is given to it.
"""

import asyncio
import os
import random
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from engines.profile import EngineKind, Operation, Profile, Unknown
from engines.registry import profile
from gateway.balance.endpoint import Endpoint, Notice
from gateway.balance.engine import Engine, Resilience
from gateway.balance.health import HealthSettings
from gateway.balance.lease import Target
from gateway.balance.policies.least_requests import LeastRequests
from gateway.balance.policies.policy import Policy
from gateway.balance.policies.round_robin import RoundRobin
from gateway.balance.retry import RetryBudget, RetrySettings
from gateway.balance.route import Route
from gateway.logs import Observer
from gateway.metrics import Meter, Meters
from gateway.proxy.deadlines import Deadlines
from gateway.proxy.replies import engine_lines
from gateway.proxy.upstream import ConnectionPool
from gateway.settings.tree import Engine as EngineSettings
from gateway.settings.tree import Model as ModelSettings
from gateway.settings.tree import Settings, Timeouts
from gateway.wire.answer import AnswerNames
from gateway.wire.shape import Extras, ReasoningField, Shape

TASKS: Final[Mapping[Operation, str]] = {
    Operation.CHAT: "chat",
    Operation.COMPLETIONS: "chat",
    Operation.EMBEDDINGS: "embedding",
    Operation.RESPONSES: "chat",
    Operation.MESSAGES: "chat",
    Operation.COUNT_TOKENS: "chat",
    Operation.RERANK: "rerank",
    Operation.SCORE: "rerank",
}
"""What a model must be for, to be asked for an operation; operations that are not here take any model."""

SHAPED: Final = (Operation.CHAT, Operation.COMPLETIONS)
"""Operations whose answers have choices, whole or streamed."""

POLICIES: Final[Mapping[str, Callable[[], Policy]]] = {"least_requests": LeastRequests, "round_robin": RoundRobin}


class Ids:
    """Ids that no other gateway process makes: a random prefix and a counter, 24 hexadecimal digits."""

    __slots__ = ("_next", "_prefix")

    def __init__(self) -> None:
        self._prefix = os.urandom(7).hex().encode()
        self._next = 0

    def __call__(self) -> bytes:
        self._next = number = self._next + 1
        return b"%s%010x" % (self._prefix, number)


@dataclass(slots=True, eq=False)
class EndpointLink:
    """How to talk to one endpoint: its connections, and by operation a request's head up to the parts that vary."""

    endpoint: Endpoint
    pool: ConnectionPool
    heads: Mapping[Operation, bytes]


@dataclass(slots=True, eq=False)
class EngineLink:
    """An engine with what the data path must know of it."""

    engine: Engine
    profile: Profile
    timeouts: Timeouts
    name: bytes
    embeddings: bool = False


@dataclass(slots=True, eq=False)
class Destination:
    """One of a model's engines, with the count of what it served."""

    link: EngineLink
    meter: Meter
    first_lines: bytes
    """The header lines of an answer that the first attempt brought."""
    first_token: float
    total: float
    """Seconds; see `Timeouts`."""
    shapes: Mapping[Operation, Shape] = field(default_factory=dict)
    """What is done to this engine's answers, for operations whose answers have choices."""


@dataclass(slots=True, eq=False)
class Asked:
    """What a name that clients send stands for. A model and each of its aliases have one each, over one route."""

    name: str
    route: Route
    task: str
    unknown: Unknown
    token_inputs: str
    destinations: Mapping[str, Destination]
    unserved: Meter
    names: Mapping[Operation, AnswerNames]
    served: Mapping[Operation, frozenset[str]]
    """The engines of ``destinations`` that have an operation."""

    def strangers(self, operation: Operation) -> tuple[Endpoint, ...]:
        """The endpoints that cannot be asked for an operation, because their engine does not have it."""
        able = self.served[operation]
        if len(able) == len(self.destinations):
            return ()
        links = [each.link for name, each in self.destinations.items() if name not in able]
        return tuple(endpoint for link in links for endpoint in link.engine.endpoints)


@dataclass(slots=True, eq=False)
class Plane:
    """A configuration in force."""

    loop: asyncio.AbstractEventLoop
    settings: Settings
    deadlines: Deadlines
    meters: Meters
    ids: Ids
    engines: Mapping[str, EngineLink]
    endpoints: Mapping[Endpoint, EndpointLink]
    asked: Mapping[str, Asked]
    budget: RetryBudget
    retry: RetrySettings
    observe: Observer | None = None
    clock: Callable[[], float] = time.time
    rng: Callable[[], float] = random.random
    nowhere: Meter = field(init=False)
    origins: frozenset[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.nowhere = self.meters.meter("", "")
        self.origins = frozenset(origin.encode() for origin in self.settings.server.cors_origins)

    def close(self, successor: "Plane | None" = None) -> None:
        """Gives up idle connections, but for those that the successor goes on with; calls in flight keep theirs."""
        kept = {} if successor is None else successor.endpoints
        for endpoint, link in self.endpoints.items():
            if endpoint not in kept:
                link.pool.close()


class PlaneSource(Protocol):
    """Who knows the configuration in force."""

    @property
    def plane(self) -> Plane:
        """The plane for new requests."""


def build_plane(
    settings: Settings,
    loop: asyncio.AbstractEventLoop,
    meters: Meters,
    *,
    deadlines: Deadlines | None = None,
    ids: Ids | None = None,
    notice: Notice | None = None,
    observe: Observer | None = None,
    old: Plane | None = None,
    now: int = 0,
) -> Plane:
    """Makes a plane. ``now`` (Unix seconds) is what model listings give as ``created``.

    Engines that are the same in the ``old`` plane are taken over with all that is known about them: health, load,
    breakers, connections.
    """
    engines: dict[str, EngineLink] = {}
    endpoints: dict[Endpoint, EndpointLink] = {}
    for name, engine_settings in settings.engines.items():
        if old is not None and old.settings.engines.get(name) == engine_settings:
            link = old.engines[name]
            members = {endpoint: old.endpoints[endpoint] for endpoint in link.engine.endpoints}
        else:
            link, members = _engine(name, engine_settings, loop, notice)
        engines[name] = link
        endpoints.update(members)
    asked: dict[str, Asked] = {}
    for name, model_settings in settings.models.items():
        asked.update(_model(name, model_settings, engines, meters, now))
    retry = RetrySettings(attempts=settings.retry.attempts)
    return Plane(
        loop,
        settings,
        deadlines or Deadlines(loop),
        meters,
        ids or Ids(),
        engines,
        endpoints,
        asked,
        RetryBudget(retry, loop.time()) if old is None else old.budget,
        retry,
        observe,
    )


def _engine(
    name: str, settings: EngineSettings, loop: asyncio.AbstractEventLoop, notice: Notice | None
) -> tuple[EngineLink, dict[Endpoint, EndpointLink]]:
    kind = profile(settings.kind)
    members = [Endpoint(url, max_in_flight=settings.max_in_flight) for url in settings.urls]
    judged = Resilience(health=HealthSettings(interval=settings.health.interval))
    engine = Engine(name, settings.kind, members, resilience=judged, notice=notice or (lambda _: None))
    key = settings.api_key.get_secret_value() if settings.api_key is not None else ""
    links = {
        endpoint: EndpointLink(
            endpoint,
            ConnectionPool(
                loop,
                (endpoint.host, endpoint.port),
                tls=ssl.create_default_context() if endpoint.tls else None,
                connect_timeout=settings.timeouts.connect,
                keep_alive=kind.keep_alive,
            ),
            {operation: _head(endpoint, path, key) for operation, path in kind.paths.items()},
        )
        for endpoint in members
    }
    return EngineLink(engine, kind, settings.timeouts, name.encode(), settings.embeddings), links


def _head(endpoint: Endpoint, path: bytes, key: str) -> bytes:
    """A request's head, without the id, the forwarded lines, and the length. ``%`` is doubled for the later filling."""
    authorization = f"authorization: Bearer {key}\r\n" if key else ""
    head = (
        f"POST {endpoint.base_path}{path.decode()} HTTP/1.1\r\n"
        f"host: {endpoint.authority}\r\n"
        "content-type: application/json\r\n"
        "accept-encoding: identity\r\n"
        f"{authorization}"
    )
    return head.replace("%", "%%").encode() + b"x-request-id: %s\r\n%scontent-length: %d\r\n\r\n"


def _model(
    name: str, settings: ModelSettings, engines: Mapping[str, EngineLink], meters: Meters, now: int
) -> Iterable[tuple[str, Asked]]:
    targets = [Target(engines[t.engine].engine, t.model or name, t.weight) for t in settings.targets_of(name)]
    route = Route(name, targets, POLICIES[settings.policy](), task=settings.task, created=now)
    destinations = {
        target.engine.name: Destination(
            engines[target.engine.name],
            meters.meter(name, target.engine.name),
            engine_lines(target.engine.name.encode(), 1),
            engines[target.engine.name].timeouts.first_token,
            engines[target.engine.name].timeouts.total,
            _shapes(engines[target.engine.name].profile, settings),
        )
        for target in targets
    }
    served = {
        operation: frozenset(engine for engine, each in destinations.items() if serves(each.link, operation))
        for operation in Operation
    }
    for asked in (name, *settings.aliases):
        names = {operation: AnswerNames(operation, asked) for operation in Operation}
        yield (
            asked,
            Asked(
                asked,
                route,
                settings.task,
                settings.unknown_parameters,
                settings.token_inputs,
                destinations,
                meters.meter(name, ""),
                names,
                served,
            ),
        )


def _shapes(kind: Profile, settings: ModelSettings) -> Mapping[Operation, Shape]:
    extras, reasoning = Extras(settings.extras), ReasoningField(settings.reasoning.field)
    return {operation: Shape(operation, kind.answers, extras, reasoning) for operation in SHAPED}


def serves(link: EngineLink, operation: Operation) -> bool:
    """Whether the engine has the operation at all. Embeddings: vLLM only, and Triton engines declared so."""
    if operation not in link.profile.paths:
        return False
    return operation is not Operation.EMBEDDINGS or link.profile.kind is EngineKind.VLLM or link.embeddings
