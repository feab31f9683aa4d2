"""Engines and their endpoints as the data path sees them: states of the balance, and connections."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from engines.faults import Fault, FaultKind
from engines.profile import Build, EngineKind, Operation, Profile
from engines.registry import profile
from gateway.balance.endpoint import Endpoint, Notice
from gateway.balance.engine import Engine, Resilience
from gateway.balance.health import HealthSettings
from gateway.proxy.queueing import AdmissionQueue
from gateway.proxy.trust import trusted
from gateway.proxy.upstream import ConnectionPool
from gateway.settings.engines import Engine as EngineSettings
from gateway.settings.engines import Timeouts
from gateway.settings.values import MANY_ADDRESSES

HIDDEN: Final = "***"
SHORTEST: Final = 4
"""Characters of a key that is worth hiding: a shorter one is in too many words."""

Addresses: TypeAlias = Mapping[str, tuple[str, ...]]
"""What the names in ``dns+`` URLs stand for, by URL."""

EVERYWHERE: Final = frozenset({Operation.CHAT, Operation.COMPLETIONS})
"""Operations that every engine has."""


@dataclass(slots=True, eq=False)
class EndpointLink:
    """How to talk to one endpoint: its connections, and by operation a request's head up to the parts that vary."""

    endpoint: Endpoint
    pool: ConnectionPool
    heads: Mapping[Operation, bytes]


@dataclass(slots=True, eq=False)
class EngineLink:
    """An engine with what the data path must know of it. It outlives the plane that made it while its name, its kind
    and one of its addresses stay the same; then everything that is known about its endpoints stays, too.

    ``endpoints`` also holds those that have left while requests still run on them. ``addresses`` is what the names of
    ``dns+`` URLs stand for now. ``queues`` are served when an attempt ends here. ``wants_load``: somebody chooses by
    what the engine says about its load. ``without_parser``: it has said that it was started without a tool parser.
    ``refusing``: the endpoints that refuse our credentials; ``doubted``: those that have to be asked whether they do.
    ``mistaken``: those that are of another kind than the file says, and which. ``lacking``: operations whose paths it
    has said not to have.
    """

    engine: Engine
    profile: Profile
    timeouts: Timeouts
    name: bytes
    settings: EngineSettings
    loop: asyncio.AbstractEventLoop
    embeddings: bool = False
    endpoints: dict[Endpoint, EndpointLink] = field(default_factory=dict)
    addresses: dict[str, tuple[str, ...]] = field(default_factory=dict)
    queues: Sequence[AdmissionQueue] = ()
    wants_load: bool = False
    ranks: bool = False
    without_parser: bool = False
    refusing: set[Endpoint] = field(default_factory=set)
    doubted: set[Endpoint] = field(default_factory=set)
    mistaken: dict[Endpoint, EngineKind] = field(default_factory=dict)
    build: Build = field(default_factory=Build)
    lacking: set[Operation] = field(default_factory=set)

    def is_meant_by(self, settings: EngineSettings) -> bool:
        """Whether an engine that is configured so, under the same name, is this one."""
        return settings.kind is self.settings.kind and not set(settings.urls).isdisjoint(self.settings.urls)

    def learn(self, build: Build) -> None:
        """Takes in what the engine says about itself, which with its settings chooses among the profile's variants."""
        self.build = build
        self.ranks = self.settings.ranks
        self.lacking.clear()
        self.profile = self.profile_under(self.settings)

    def profile_under(self, settings: EngineSettings) -> Profile:
        """What the profile is, or would be, under these settings."""
        return profile(settings.kind).for_build(replace(self.build, guided=settings.guided_decoding))

    def heard(self, fault: Fault, operation: Operation, endpoint: Endpoint) -> Fault:
        """Takes in an engine's refusal, and gives it back without our key, which it may have repeated.

        An engine that has no such path is not asked for it until it is looked at again, if there are others.
        """
        if fault.kind is FaultKind.NO_SUCH_PATH and operation not in EVERYWHERE:
            self.lacking.add(operation)
        if fault.kind is FaultKind.UNAUTHORIZED:
            self.doubted.add(endpoint)
        key = self.settings.api_key.get_secret_value() if self.settings.api_key is not None else ""
        return replace(fault, message=fault.message.replace(key, HIDDEN)) if len(key) >= SHORTEST else fault

    def adopt(self, settings: EngineSettings, known: Addresses, now: float) -> None:
        """Goes on under other settings. What is under way is finished. ``known``: what names stand for now."""
        if settings.credentials != self.settings.credentials:
            self.doubted.update(self.engine.endpoints)
        self.settings = settings
        self.timeouts = settings.timeouts
        self.embeddings = settings.embeddings
        self.learn(self.build)
        self.addresses = {url: known[url] for url in settings.urls if url in known}
        self.engine.adjust(resilience_of(settings), now)
        self.follow(now)
        for link in self.endpoints.values():
            link.pool.adjust(settings.timeouts.connect, self._keep_alive)
            link.heads = self._heads(link.endpoint)

    def follow(self, now: float) -> None:
        """Makes the engine's endpoints those that its URLs and ``addresses`` name; what runs on others goes on."""
        for gone in self.engine.update(endpoints_of(self.settings, self.addresses), now):
            self.endpoints[gone].pool.retire()
        known, members = self.endpoints, self.engine.endpoints
        self.endpoints = {one: known.get(one) or self._connected(one) for one in members}
        self.endpoints |= {one: link for one, link in known.items() if one not in self.endpoints and one.in_flight}

    def _connected(self, endpoint: Endpoint) -> EndpointLink:
        pool = ConnectionPool(
            self.loop,
            (endpoint.host, endpoint.port),
            tls=trusted() if endpoint.tls else None,
            connect_timeout=self.timeouts.connect,
            keep_alive=self._keep_alive,
        )
        return EndpointLink(endpoint, pool, self._heads(endpoint))

    @property
    def _keep_alive(self) -> float:
        return self.settings.keep_alive or self.profile.keep_alive

    def _heads(self, endpoint: Endpoint) -> Mapping[Operation, bytes]:
        paths = profile(self.settings.kind).paths  # a variant may lack some, until another build serves at the address
        return {operation: _head(endpoint, path, self.settings.credentials) for operation, path in paths.items()}


def link_engine(
    name: str,
    settings: EngineSettings,
    loop: asyncio.AbstractEventLoop,
    notice: Notice | None,
    known: Addresses,
) -> EngineLink:
    """Makes the link of an engine. ``known``: what names stood for until now."""
    addresses = {url: known[url] for url in settings.urls if url in known}
    members = endpoints_of(settings, addresses)
    engine = Engine(name, settings.kind, members, resilience=resilience_of(settings), notice=notice or (lambda _: None))
    kind = profile(settings.kind)
    link = EngineLink(engine, kind, settings.timeouts, name.encode(), settings, loop, settings.embeddings)
    link.addresses = addresses
    link.learn(link.build)
    link.follow(loop.time())
    return link


def resilience_of(settings: EngineSettings) -> Resilience:
    """How the engine's endpoints are judged."""
    health = settings.health
    return Resilience(health=HealthSettings(interval=health.interval), warm_up=health.warm_up)


def endpoints_of(settings: EngineSettings, addresses: Addresses) -> Iterator[Endpoint]:
    """New endpoints for an engine's URLs, of which those with ``dns+`` stand for several addresses or none."""
    limit = settings.max_in_flight
    for url in settings.urls:
        if url.startswith(MANY_ADDRESSES):
            plain = url.removeprefix(MANY_ADDRESSES)
            for address in addresses.get(url, ()):
                yield Endpoint(plain, max_in_flight=limit, address=address)
        else:
            yield Endpoint(url, max_in_flight=limit)


def _head(endpoint: Endpoint, path: bytes, credentials: Mapping[str, str]) -> bytes:
    """A request's head, without the id, the forwarded lines, and the length. ``%`` is doubled for the later filling."""
    authorization = "".join(f"{name}: {value}\r\n" for name, value in credentials.items())
    head = (
        f"POST {endpoint.base_path}{path.decode()} HTTP/1.1\r\n"
        f"host: {endpoint.authority}\r\n"
        "content-type: application/json\r\n"
        "accept-encoding: identity\r\n"
        f"{authorization}"
    )
    return head.replace("%", "%%").encode() + b"x-request-id: %s\r\n%scontent-length: %d\r\n\r\n"


def addresses_of(links: Iterable[EngineLink]) -> dict[str, tuple[str, ...]]:
    """All that is known about names."""
    return {url: addresses for link in links for url, addresses in link.addresses.items()}


def serves(link: EngineLink, operation: Operation) -> bool:
    """Whether the engine has the operation at all. Embeddings: vLLM only, and Triton engines declared so."""
    if operation not in link.profile.paths:
        return False
    return operation is not Operation.EMBEDDINGS or link.profile.kind is EngineKind.VLLM or link.embeddings
