"""One configuration made ready for traffic: everything a request needs, found by one or two dictionary look-ups.

A plane is built once and never changed; a new configuration makes a new plane. What must outlive it (meters, the
wheel of deadlines, ids) is given to it.
"""

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from engines.profile import Operation, Profile, Unknown
from gateway.balance.admission import AdmissionSettings
from gateway.balance.endpoint import Endpoint, Notice
from gateway.balance.fallback import Cause, Fallbacks
from gateway.balance.lease import Target
from gateway.balance.retry import RetryBudget, RetrySettings
from gateway.balance.route import Route
from gateway.logs import Observer
from gateway.metrics import Meter, Meters
from gateway.proxy.affinity import Key, key_of, policy_of, session_header
from gateway.proxy.deadlines import Deadlines
from gateway.proxy.limits import Limits
from gateway.proxy.links import EndpointLink, EngineLink, addresses_of, link_engine, serves
from gateway.proxy.queueing import AdmissionQueue
from gateway.proxy.replies import engine_lines
from gateway.proxy.tooling import Tooling
from gateway.settings.engines import Timeouts
from gateway.settings.models import Model as ModelSettings
from gateway.settings.tree import Settings
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

EVERYWHERE: Final = frozenset({Operation.CHAT, Operation.COMPLETIONS})
"""Operations that every engine has."""

SHAPED: Final = (Operation.CHAT, Operation.COMPLETIONS)
"""Operations whose answers have choices, whole or streamed."""


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
class Destination:
    """One of a model's engines, with the count of what it served."""

    link: EngineLink
    meter: Meter
    first_lines: bytes
    """The header lines of an answer that the first attempt brought."""
    limits: Limits
    tooling: Tooling
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
    key: Key | None = None
    """What finds the key that the route's policy wants; None if it wants none."""
    queue: AdmissionQueue | None = None
    """Where requests wait for room; None if nothing limits the model."""
    fallbacks: Fallbacks = field(default_factory=Fallbacks)
    stand_ins: Mapping[str, "Asked"] = field(default_factory=dict)
    """The fallback models, under the name that this one was asked by."""
    mixed: bool = field(init=False)
    """Whether there are several engines, of which some may not have an operation."""

    unchecked: frozenset[Operation] = field(init=False)
    """Operations that any call to this model may have without a further look (`outgoing.check_asked`)."""

    def __post_init__(self) -> None:
        self.mixed = len(self.destinations) > 1
        self.unchecked = EVERYWHERE if self.task == "chat" else frozenset()

    def served(self, operation: Operation) -> bool:
        """Whether any engine has the operation, as far as is known now."""
        return operation in EVERYWHERE or any(serves(each.link, operation) for each in self.destinations.values())

    def strangers(self, operation: Operation) -> tuple[Endpoint, ...]:
        """The endpoints that cannot be asked for an operation, because their engine does not have it."""
        if operation in EVERYWHERE:
            return ()
        links = [each.link for each in self.destinations.values() if not serves(each.link, operation)]
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
    asked: Mapping[str, Asked]
    queues: Mapping[str, AdmissionQueue]
    budget: RetryBudget
    retry: RetrySettings
    observe: Observer | None = None
    clock: Callable[[], float] = time.time
    rng: Callable[[], float] = random.random
    nowhere: Meter = field(init=False)
    origins: frozenset[bytes] = field(init=False)
    session_headers: frozenset[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.nowhere = self.meters.meter("", "")
        self.origins = frozenset(origin.encode() for origin in self.settings.server.cors_origins)
        headers = map(session_header, self.settings.models.values())
        self.session_headers = frozenset(header for header in headers if header is not None)

    @property
    def endpoints(self) -> dict[Endpoint, EndpointLink]:
        """The endpoints of all engines, as they are now."""
        return {endpoint: link for engine in self.engines.values() for endpoint, link in engine.endpoints.items()}

    def close(self, successor: "Plane | None" = None) -> None:
        """Gives up idle connections, but for those that the successor goes on with; calls in flight keep theirs."""
        kept = {} if successor is None else successor.endpoints
        for endpoint, link in self.endpoints.items():
            if successor is None:
                link.pool.close()
            elif endpoint not in kept:
                link.pool.retire()


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
    known = {} if old is None else addresses_of(old.engines.values())
    for name, engine_settings in settings.engines.items():
        if old is not None and old.settings.engines.get(name) == engine_settings:
            engines[name] = old.engines[name]
        else:
            engines[name] = link_engine(name, engine_settings, loop, notice, known)
    queues = _queues(settings, loop, meters, {} if old is None else old.queues)
    asked: dict[str, Asked] = {}
    for name, model_settings in settings.models.items():
        asked.update(_model(name, model_settings, engines, meters, now, queues.get(name)))
    for one in asked.values():
        models = settings.models[one.route.model].fallbacks
        one.stand_ins = {model: replace(asked[model], name=one.name, names=one.names) for model in models}
    for one in asked.values():
        for stand_in in one.stand_ins.values():
            stand_in.fallbacks, stand_in.stand_ins = one.fallbacks, one.stand_ins
    for name, link in engines.items():
        _attach(link, [one for one in asked.values() if name in one.destinations])
    retry = RetrySettings(
        attempts=settings.retry.attempts, share=settings.retry.budget, on_timeout=settings.retry.on_timeout
    )
    return Plane(
        loop,
        settings,
        Deadlines(loop) if deadlines is None else deadlines,  # one without entries is false
        meters,
        ids or Ids(),
        engines,
        asked,
        queues,
        RetryBudget(retry, loop.time()) if old is None or old.retry != retry else old.budget,
        retry,
        observe,
    )


def _attach(link: EngineLink, served: Sequence[Asked]) -> None:
    """Lets an engine know who is interested in it."""
    link.queues = tuple({one.queue: None for one in served if one.queue is not None})
    link.wants_load = any(one.route.policy.uses_load for one in served)


def _queues(
    settings: Settings, loop: asyncio.AbstractEventLoop, meters: Meters, old: Mapping[str, AdmissionQueue]
) -> dict[str, AdmissionQueue]:
    """A queue for every model that has a limit, its own or its engines'. Who is in a queue stays there."""
    admission = AdmissionSettings(queue=settings.admission.queue, wait=settings.admission.wait)
    queues: dict[str, AdmissionQueue] = {}
    for name, model in settings.models.items():
        limited = [t.engine for t in model.targets_of(name) if settings.engines[t.engine].max_in_flight is not None]
        if model.max_in_flight is None and not limited:
            continue
        if name in old:
            queues[name] = old[name]
            queues[name].adjust(admission, model.max_in_flight)
        else:
            queues[name] = AdmissionQueue(loop, admission, model.max_in_flight, meters.queue(name))
    return queues


def _model(
    name: str,
    settings: ModelSettings,
    engines: Mapping[str, EngineLink],
    meters: Meters,
    now: int,
    queue: AdmissionQueue | None,
) -> Iterable[tuple[str, Asked]]:
    targets = [Target(engines[t.engine].engine, t.model or name, t.weight) for t in settings.targets_of(name)]
    route = Route(name, targets, policy_of(settings), task=settings.task, created=now)
    destinations = {
        target.engine.name: Destination(
            engines[target.engine.name],
            meters.meter(name, target.engine.name),
            engine_lines(target.engine.name.encode(), 1),
            _limits(engines[target.engine.name].timeouts, settings),
            Tooling(name, settings, engines[target.engine.name], target.model, meters),
            _shapes(engines[target.engine.name].profile, settings),
        )
        for target in targets
    }
    causes = frozenset(Cause(cause) for cause in settings.fallback_on)
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
                key_of(settings),
                queue,
                Fallbacks(settings.fallbacks, causes),
            ),
        )


def _limits(engine: Timeouts, model: ModelSettings) -> Limits:
    own = model.timeouts
    return Limits(
        own.first_token or engine.first_token,
        own.idle or engine.idle,
        own.total or engine.total,
        whole=own.first_token is not None or "first_token" in engine.model_fields_set,
    )


def _shapes(kind: Profile, settings: ModelSettings) -> Mapping[Operation, Shape]:
    extras, reasoning = Extras(settings.extras), ReasoningField(settings.reasoning.field)
    return {operation: Shape(operation, kind.answers, extras, reasoning) for operation in SHAPED}
