"""What the control plane sees of the running gateway."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gateway import logs
from gateway.api.orders import Call
from gateway.balance.drains import DrainOrder
from gateway.balance.endpoint import Endpoint, EndpointState
from gateway.metrics import Meters
from gateway.proxy.links import EngineLink
from gateway.proxy.plane import Asked, Plane
from gateway.settings.source import Configuration
from gateway.settings.tree import Settings
from gateway.usage import UsageRow

MAY_SERVE = frozenset({EndpointState.UNKNOWN, EndpointState.UP, EndpointState.EJECTED})
"""An ejected endpoint is the last resort of its engine, so requests may still be tried on it."""

SERVES = frozenset({EndpointState.UNKNOWN, EndpointState.UP})


@dataclass(frozen=True, slots=True)
class Replies:
    """What the serving processes have answered, and how many of them have not in time."""

    views: Sequence[bytes]
    missing: int


class AskAll(Protocol):
    """The way to all serving processes, the asking one included."""

    async def __call__(self, call: Call) -> Replies:
        """Lets each heed the call and answer it. Raises ApiError if none can be asked."""


@dataclass(frozen=True, slots=True)
class ConfigState:
    """Which configuration is in force, and since when (Unix seconds).

    ``source`` is its file, ``hash`` that of the file's text; both are "" if there is none. ``error`` says why what the
    file says now is not in force. ``waiting`` is what of it needs a restart.
    """

    hash: str = ""
    source: str = ""
    loaded_at: float = 0.0
    error: str = ""
    waiting: Sequence[str] = ()


class View(Protocol):
    """The running gateway. ``plane`` is the configuration in force; it is replaced as a whole."""

    ask_all: AskAll | None
    """There where several processes serve."""

    journal: logs.Journal
    """What becomes of requests that have ended."""

    started: bool
    """Whether there is a plane yet."""

    reread: Callable[[], Awaitable[None]] | None
    """Reads the configuration's file and puts it in force; None where this process has no file to read."""

    @property
    def settings(self) -> Settings:
        """What is configured. The plane's settings also have the models that were discovered."""

    @property
    def config(self) -> ConfigState:
        """What is known about the configuration in force."""

    @property
    def plane(self) -> Plane:
        """The configuration in force."""

    @property
    def meters(self) -> Meters:
        """All counts."""

    async def shared_usage(self, since: str, until: str) -> list[UsageRow] | None:
        """The usage of these days over all gateways; None where each process keeps its own. Raises ApiError."""

    @property
    def trouble(self) -> str:
        """What is wrong with the counts that are shared with others; "" if nothing is."""

    def heed(self, order: DrainOrder) -> None:
        """Drains or undrains in this process, now and whenever the configuration changes."""

    async def plan(self, new: Settings, *, probe: bool) -> dict[str, Any]:
        """What would become of the models if this took the place of what is in force, as plain values."""

    async def take(self, found: Configuration | str) -> None:
        """Puts a configuration in force, or notes why there is none to be put; of what cannot be, it notes that."""


def serves(endpoint: Endpoint) -> bool:
    """Whether requests are given to the endpoint as a matter of course."""
    return endpoint.state in SERVES


def engine_serves(link: EngineLink) -> bool:
    """Whether at least one of the engine's endpoints serves."""
    return any(map(serves, link.engine.endpoints))


def model_may_be_served(asked: Asked) -> bool:
    """Whether any endpoint of any of the model's engines may be given a request."""
    return any(endpoint.state in MAY_SERVE for target in asked.route.targets for endpoint in target.engine.endpoints)
