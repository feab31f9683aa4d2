"""Engines and their endpoints as the data path sees them: states of the balance, and connections."""

import asyncio
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engines.profile import EngineKind, Operation, Profile
from engines.registry import profile
from gateway.balance.endpoint import Endpoint, Notice
from gateway.balance.engine import Engine, Resilience
from gateway.balance.health import HealthSettings
from gateway.proxy.queueing import AdmissionQueue
from gateway.proxy.upstream import ConnectionPool
from gateway.settings.engines import Engine as EngineSettings
from gateway.settings.engines import Timeouts
from gateway.settings.values import MANY_ADDRESSES


@dataclass(slots=True, eq=False)
class EndpointLink:
    """How to talk to one endpoint: its connections, and by operation a request's head up to the parts that vary."""

    endpoint: Endpoint
    pool: ConnectionPool
    heads: Mapping[Operation, bytes]


@dataclass(slots=True, eq=False)
class EngineLink:
    """An engine with what the data path must know of it. It may outlive the plane that made it.

    ``endpoints`` also holds those that have left while requests still run on them. ``addresses`` is what the names of
    ``dns+`` URLs stand for now. ``queues`` are served when an attempt ends here. ``wants_load``: somebody chooses by
    what the engine says about its load. ``without_parser``: it has said that it was started without a tool parser.
    ``refusing``: the endpoints that refuse our credentials.
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
    without_parser: bool = False
    refusing: set[Endpoint] = field(default_factory=set)

    def follow(self, now: float) -> None:
        """Makes the engine's endpoints those that its URLs and ``addresses`` name; what runs on others goes on."""
        for gone in self.engine.update(endpoints_of(self.settings, self.addresses), now):
            self.endpoints[gone].pool.retire()
        members = set(self.engine.endpoints)
        for done in [one for one in self.endpoints if one not in members and not one.in_flight]:
            del self.endpoints[done]
        for endpoint in self.engine.endpoints:
            if endpoint not in self.endpoints:
                self.endpoints[endpoint] = self._connected(endpoint)

    def _connected(self, endpoint: Endpoint) -> EndpointLink:
        pool = ConnectionPool(
            self.loop,
            (endpoint.host, endpoint.port),
            tls=ssl.create_default_context() if endpoint.tls else None,
            connect_timeout=self.timeouts.connect,
            keep_alive=self.profile.keep_alive,
        )
        key = self.settings.api_key.get_secret_value() if self.settings.api_key is not None else ""
        heads = {operation: _head(endpoint, path, key) for operation, path in self.profile.paths.items()}
        return EndpointLink(endpoint, pool, heads)


def link_engine(
    name: str,
    settings: EngineSettings,
    loop: asyncio.AbstractEventLoop,
    notice: Notice | None,
    known: Mapping[str, tuple[str, ...]],
) -> EngineLink:
    """Makes the link of an engine. ``known``: what names stood for until now."""
    judged = Resilience(health=HealthSettings(interval=settings.health.interval))
    addresses = {url: known[url] for url in settings.urls if url in known}
    members = endpoints_of(settings, addresses)
    engine = Engine(name, settings.kind, members, resilience=judged, notice=notice or (lambda _: None))
    kind = profile(settings.kind)
    link = EngineLink(engine, kind, settings.timeouts, name.encode(), settings, loop, settings.embeddings)
    link.addresses = addresses
    link.follow(loop.time())
    return link


def endpoints_of(settings: EngineSettings, addresses: Mapping[str, tuple[str, ...]]) -> Iterator[Endpoint]:
    """New endpoints for an engine's URLs, of which those with ``dns+`` stand for several addresses or none."""
    limit = settings.max_in_flight
    for url in settings.urls:
        if url.startswith(MANY_ADDRESSES):
            plain = url.removeprefix(MANY_ADDRESSES)
            for address in addresses.get(url, ()):
                yield Endpoint(plain, max_in_flight=limit, address=address)
        else:
            yield Endpoint(url, max_in_flight=limit)


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


def addresses_of(links: Iterable[EngineLink]) -> dict[str, tuple[str, ...]]:
    """All that is known about names."""
    return {url: addresses for link in links for url, addresses in link.addresses.items()}


def serves(link: EngineLink, operation: Operation) -> bool:
    """Whether the engine has the operation at all. Embeddings: vLLM only, and Triton engines declared so."""
    if operation not in link.profile.paths:
        return False
    return operation is not Operation.EMBEDDINGS or link.profile.kind is EngineKind.VLLM or link.embeddings
