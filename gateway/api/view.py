"""What the control plane sees of the running gateway."""

from typing import Protocol

from gateway.balance.endpoint import Endpoint, EndpointState
from gateway.metrics import Meters
from gateway.proxy.links import EngineLink
from gateway.proxy.plane import Asked, Plane

MAY_SERVE = frozenset({EndpointState.UNKNOWN, EndpointState.UP, EndpointState.EJECTED})
"""An ejected endpoint is the last resort of its engine, so requests may still be tried on it."""

SERVES = frozenset({EndpointState.UNKNOWN, EndpointState.UP})


class View(Protocol):
    """The running gateway. ``plane`` is the configuration in force; it is replaced as a whole."""

    @property
    def plane(self) -> Plane:
        """The configuration in force."""

    @property
    def meters(self) -> Meters:
        """All counts."""


def serves(endpoint: Endpoint) -> bool:
    """Whether requests are given to the endpoint as a matter of course."""
    return endpoint.state in SERVES


def engine_serves(link: EngineLink) -> bool:
    """Whether at least one of the engine's endpoints serves."""
    return any(map(serves, link.engine.endpoints))


def model_may_be_served(asked: Asked) -> bool:
    """Whether any endpoint of any of the model's engines may be given a request."""
    return any(endpoint.state in MAY_SERVE for target in asked.route.targets for endpoint in target.engine.endpoints)
