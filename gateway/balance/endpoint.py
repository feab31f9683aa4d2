"""One address of an engine and everything that is known about it at run time."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from gateway.balance.breaker import Breaker, BreakerSettings, Position
from gateway.balance.ewma import Ewma
from gateway.balance.health import HealthCheck, HealthSettings
from gateway.balance.load import LoadReport, extra_load

UNLIMITED: Final = sys.maxsize
NEVER: Final = -inf


class EndpointState(StrEnum):
    """What an operator sees. UNKNOWN counts as up: nobody has asked the endpoint yet."""

    UNKNOWN = "unknown"
    UP = "up"
    DOWN = "down"
    EJECTED = "ejected"
    DRAINING = "draining"


class Endpoint:
    """The state of one address; its engine is the only one that changes it.

    `in_flight` counts the leases that have not ended; it is never reset. `extra` is load that is not ours, in requests
    (see `gateway.balance.load`). `ceiling` is the number of requests in flight from which on the engine must look
    closer before it hands out another lease (limit reached, trial, slow start). `first_token` is the mean number of
    seconds to the first token, for whoever measures it to observe. `cold`: it has to be warmed up before it serves, and
    counts as down until then. `label` is the URL as hashes see it.
    """

    __slots__ = (
        "asked_off",
        "authority",
        "base_path",
        "breaker",
        "breaker_reason",
        "busy_until",
        "ceiling",
        "check",
        "cold",
        "drain_reason",
        "extra",
        "first_token",
        "health_reason",
        "host",
        "in_flight",
        "label",
        "max_in_flight",
        "order",
        "others",
        "others_until",
        "placed",
        "port",
        "reason",
        "report",
        "state",
        "tls",
        "unreachable",
        "url",
        "warm_limit",
        "warm_since",
        "weight",
    )

    def __init__(self, url: str, *, max_in_flight: int | None = None, weight: float = 1.0, address: str = "") -> None:
        """Take `url` apart; `address` overrides the host to connect to (a resolved name keeps its authority).

        Raises ValueError when the URL is not http(s)://host[:port][/path].
        """
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"not an http(s) address: {parts.scheme}://{parts.hostname or ''}")
        self.tls = parts.scheme == "https"
        self.port = parts.port or (443 if self.tls else 80)
        name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        # Without user name, password and query: this text reaches logs, metrics and the admin API.
        self.authority = name if parts.port is None else f"{name}:{parts.port}"
        self.base_path = parts.path.rstrip("/")
        self.host = address or parts.hostname
        shown = f"[{address}]:{self.port}" if ":" in address else f"{address}:{self.port}"
        self.url = f"{parts.scheme}://{shown if address else self.authority}{self.base_path}"
        self.label = self.url.encode()
        self.max_in_flight = max_in_flight
        self.weight = weight
        self.in_flight = 0
        self.extra = 0
        self.others = 0
        self.others_until = NEVER
        self.report: LoadReport | None = None
        self.first_token = Ewma(half_life=30.0)
        self.equip(BreakerSettings(), HealthSettings())

    def equip(self, breaker: BreakerSettings, health: HealthSettings) -> None:
        """Start judging afresh by these settings. What is in flight stays counted."""
        self.breaker = Breaker(breaker)
        self.check = HealthCheck(health)
        self.state = EndpointState.UNKNOWN
        self.reason = "not checked yet"
        self.health_reason = ""
        self.breaker_reason = ""
        self.drain_reason = ""
        self.unreachable = False
        self.cold = False
        self.busy_until = NEVER
        self.asked_off = False
        self.warm_since = NEVER
        self.warm_limit = UNLIMITED
        self.ceiling = self.limit
        self.placed = False
        self.order = 0

    def __repr__(self) -> str:
        return f"<Endpoint {self.url} {self.state.value} in_flight={self.in_flight}>"

    @property
    def limit(self) -> int:
        """The most requests in flight, as a number."""
        return UNLIMITED if self.max_in_flight is None else self.max_in_flight

    def foreign(self, now: float) -> int:
        """Requests that are not ours: as the engine reports, or as other gateways tell, whoever says more."""
        told = self.others if now < self.others_until else 0
        return max(extra_load(self.report, now), told)

    @property
    def load(self) -> int:
        """Own requests in flight plus what the engine reports beyond them."""
        return self.in_flight + self.extra


@dataclass(frozen=True, slots=True)
class StateChange:
    """An endpoint changed its state, or its breaker its position: one log line, one metric update."""

    engine: str
    endpoint: Endpoint
    old: EndpointState
    new: EndpointState
    circuit: Position
    reason: str
    at: float


Notice: TypeAlias = Callable[[StateChange], None]
