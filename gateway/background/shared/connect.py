"""From a URL to a client of Redis: one server, one that sentinels watch, or a cluster."""

from collections.abc import Mapping
from typing import Any, Final

from redis.asyncio import Redis
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff

from gateway.background.shared.client import Client
from gateway.background.shared.clients import Clustered, Direct
from gateway.settings.keys import State

CONNECT: Final = 1.0
"""Seconds for a connection to come about. No request waits for that: it happens while Redis counts as away."""

SENTINEL_PORT: Final = 26379
PORT: Final = 6379


def connect(state: State) -> Client:
    """A client that connects with its first command, and tries nothing twice by itself."""
    assert state.redis is not None  # noqa: S101 - asked only where there is a URL
    scheme, _, rest = state.redis.get_secret_value().partition("://")
    password = None if state.password is None else state.password.get_secret_value()
    plain, _, topology = scheme.partition("+")
    if not topology:
        return _one(f"{scheme}://{rest}", _options({}, password))
    credentials, at, place = rest.rpartition("@")
    hosts, _, tail = place.partition("/")
    name = ""
    if topology == "sentinel":
        name, _, tail = tail.partition("/")
        name, mark, query = name.partition("?")
        tail = tail or mark + query
    first = hosts.split(",")[0]
    options = _options(parse_url(f"{plain}://{credentials}{at}{first}/{tail}"), password)
    if plain == "rediss":
        options["ssl"] = True
    addresses = [_address(host, SENTINEL_PORT if topology == "sentinel" else PORT) for host in hosts.split(",")]
    return _watched(addresses, name, options) if topology == "sentinel" else _cluster(addresses, options)


def _one(url: str, options: dict[str, Any]) -> Client:
    return Direct(Redis.from_url(url, **options))


def _watched(addresses: list[tuple[str, int]], name: str, options: dict[str, Any]) -> Client:
    about = {key: value for key, value in options.items() if key.startswith(("ssl", "socket"))}
    sentinel = Sentinel(addresses, sentinel_kwargs=about, **options)  # type: ignore[no-untyped-call]
    return Direct(sentinel.master_for(name), sentinel.sentinels)


def _cluster(addresses: list[tuple[str, int]], options: dict[str, Any]) -> Client:
    options.pop("db", None)
    return Clustered(RedisCluster(startup_nodes=[ClusterNode(host, port) for host, port in addresses], **options))


def _options(found: Mapping[str, Any], password: str | None) -> dict[str, Any]:
    options = {key: value for key, value in found.items() if key not in ("host", "port", "connection_class")}
    if password is not None:
        options["password"] = password
    return options | {
        "socket_timeout": None,  # whoever asks has a limit of its own
        "socket_connect_timeout": CONNECT,
        "retry": Retry(NoBackoff(), 0),
        "driver_info": None,  # one round trip less for each connection
    }


def _address(host: str, otherwise: int) -> tuple[str, int]:
    name, colon, port = host.rpartition(":")
    return (name.strip("[]"), int(port)) if colon and port.isdigit() else (host.strip("[]"), otherwise)
