"""One configuration made ready for traffic: everything a request needs, found by one or two dictionary look-ups.

A plane is built once and never changed; a new configuration makes a new plane, beside the old one. What must outlive it
(meters, the wheel of deadlines, ids) is given to it. What both share (engines with their endpoints, queues) follows the
new one when it is complete, in `Plane.enter`.
"""

import asyncio
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from engines.profile import Operation, Unknown
from gateway.balance.admission import AdmissionSettings
from gateway.balance.endpoint import Endpoint
from gateway.balance.fallback import Fallbacks
from gateway.balance.hedge import FirstTokens
from gateway.balance.retry import RetryBudget, RetrySettings
from gateway.balance.route import Route
from gateway.logs import Journal
from gateway.metrics import Meter, Meters
from gateway.proxy.affinity import Key, session_header
from gateway.proxy.deadlines import Deadlines
from gateway.proxy.guard import Guard
from gateway.proxy.limits import Limits
from gateway.proxy.links import EVERYWHERE, Addresses, EndpointLink, EngineLink, serves
from gateway.proxy.queueing import AdmissionQueue
from gateway.proxy.tooling import Tooling
from gateway.settings.tree import Settings
from gateway.wire.answer import AnswerNames
from gateway.wire.shape import Shape

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


_LAST_DIGITS: Final = tuple(b"%02x" % number for number in range(256))


class Ids:
    """Ids that no other gateway process makes: a random prefix and a counter, 24 hexadecimal digits.

    The last two digits come from a table: formatting a number costs more than the rest.
    """

    __slots__ = ("_front", "_hundreds", "_next", "_prefix")

    def __init__(self) -> None:
        self._prefix = os.urandom(7).hex().encode()
        self._hundreds = 0
        self._front = b"%s%08x" % (self._prefix, 0)
        self._next = 0

    def __call__(self) -> bytes:
        self._next = number = self._next + 1
        if number > 255:
            self._next = number = 0
            self._hundreds += 1
            self._front = b"%s%08x" % (self._prefix, self._hundreds)
        return self._front + _LAST_DIGITS[number]


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
    hedge: FirstTokens | None = None
    """When a first token is late; None if no second endpoint is asked then."""
    log_prompts: bool = False
    """Whether the log's lines about requests show their prompts."""
    mixed: bool = field(init=False)
    """Whether there are several engines, of which some may not have an operation."""

    unchecked: frozenset[Operation] = field(init=False)
    """Operations that any call to this model may have without a further look (`outgoing.check_asked`)."""

    straight: bool = field(init=False)
    """Whether the first choice of an endpoint needs nothing but the route."""

    def __post_init__(self) -> None:
        self.mixed = len(self.destinations) > 1
        self.straight = self.key is None and not self.mixed
        self.unchecked = EVERYWHERE if self.task == "chat" else frozenset()

    def served(self, operation: Operation) -> bool:
        """Whether any engine has the operation, as far as is known now."""
        return operation in EVERYWHERE or any(serves(each.link, operation) for each in self.destinations.values())

    def strangers(self, operation: Operation) -> tuple[Endpoint, ...]:
        """The endpoints that cannot be asked for an operation, because their engine does not have it, or said so."""
        if operation in EVERYWHERE:
            return ()
        able = [each.link for each in self.destinations.values() if serves(each.link, operation)]
        willing = [link for link in able if operation not in link.lacking] or able
        links = [each.link for each in self.destinations.values() if each.link not in willing]
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
    journal: Journal | None = None
    guard: Guard | None = None
    clock: Callable[[], float] = time.time
    rng: Callable[[], float] = random.random
    nowhere: Meter = field(init=False)
    max_body: int = field(init=False)
    """Bytes of a request's body at most."""
    logs_served: bool = field(init=False)
    """Whether requests that ended well may have a line in the log."""
    origins: frozenset[bytes] = field(init=False)
    session_headers: frozenset[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.nowhere = self.meters.meter("", "")
        self.max_body = self.settings.server.max_body
        self.logs_served = self.journal is not None and self.settings.logged_requests not in ("off", "errors")
        self.origins = frozenset(origin.encode() for origin in self.settings.server.cors_origins)
        headers = map(session_header, self.settings.models.values())
        self.session_headers = frozenset(header for header in headers if header is not None)

    @property
    def endpoints(self) -> dict[Endpoint, EndpointLink]:
        """The endpoints of all engines, as they are now."""
        return {endpoint: link for engine in self.engines.values() for endpoint, link in engine.endpoints.items()}

    def enter(self, known: Addresses) -> None:
        """Lets what may have served a plane before this one serve this one. ``known``: what names stand for."""
        now = self.loop.time()
        for name, link in self.engines.items():
            link.adopt(self.settings.engines[name], known, now)
            served = [one for one in self.asked.values() if name in one.destinations]
            link.queues = tuple({one.queue: None for one in served if one.queue is not None})
            link.wants_load = any(one.route.policy.uses_load for one in served)
        admission = AdmissionSettings(queue=self.settings.admission.queue, wait=self.settings.admission.wait)
        for name, queue in self.queues.items():
            queue.adjust(admission, self.settings.models[name].max_in_flight)

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
