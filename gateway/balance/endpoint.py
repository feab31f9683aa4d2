"""One address of an engine and everything that is known about it at run time."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias
from urllib.parse import urlsplit

UNLIMITED: Final = sys.maxsize


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
    closer before it hands out another lease (limit reached, trial, slow start).
    """

    __slots__ = (
        "authority",
        "base_path",
        "ceiling",
        "draining",
        "extra",
        "host",
        "in_flight",
        "max_in_flight",
        "placed",
        "port",
        "position",
        "reason",
        "state",
        "tls",
        "url",
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
        self.max_in_flight = max_in_flight
        self.weight = weight
        self.in_flight = 0
        self.extra = 0.0
        self.state = EndpointState.UNKNOWN
        self.reason = "not probed yet"
        self.draining = False
        self.ceiling = UNLIMITED if max_in_flight is None else max_in_flight
        self.placed = False
        self.position = 0

    def __repr__(self) -> str:
        return f"<Endpoint {self.url} {self.state.value} in_flight={self.in_flight}>"

    @property
    def load(self) -> float:
        """Own requests in flight plus what the engine reports beyond them."""
        return self.in_flight + self.extra


@dataclass(frozen=True, slots=True)
class StateChange:
    """An endpoint changed: one log line, one metric update."""

    engine: str
    endpoint: Endpoint
    old: EndpointState
    new: EndpointState
    reason: str
    at: float


Notice: TypeAlias = Callable[[StateChange], None]
