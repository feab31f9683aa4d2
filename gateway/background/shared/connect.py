"""From the configuration to a client of Redis: one server, one that sentinels watch, or a cluster."""

import ssl
from typing import Any, Final

from redis.asyncio import Redis
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.connection import ConnectionPool, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff

from gateway.background.shared.client import Client
from gateway.background.shared.clients import FAULTS, Clustered, Direct, fault_of
from gateway.settings.keys import State
from gateway.settings.redis_url import RedisAddress, read_redis_url

CONNECT: Final = 1.0
"""Seconds for a connection to come about. No request waits for that: it happens while Redis counts as away."""


def connect(state: State) -> Client:
    """A client that connects with its first command, and tries nothing twice by itself.

    Raises:
        RedisFault: there can be none.
    """
    assert state.redis is not None  # noqa: S101 - asked only where there is a URL
    address = read_redis_url(state.redis.get_secret_value())
    options = _options(address, None if state.password is None else state.password.get_secret_value())
    try:
        if address.topology == "sentinel":
            return _watched(address, options)
        if address.topology == "cluster":
            nodes = [ClusterNode(host, port) for host, port in address.hosts]
            return Clustered(RedisCluster(startup_nodes=nodes, ssl=address.tls, **options))
        return _one(address, options)
    except FAULTS as error:
        raise fault_of(error) from error


def _one(address: RedisAddress, options: dict[str, Any]) -> Client:
    if address.topology == "socket":
        place: dict[str, Any] = {"path": address.path, "connection_class": UnixDomainSocketConnection}
    else:
        ((host, port),) = address.hosts
        place = {"host": host, "port": port} | ({"connection_class": SSLConnection} if address.tls else {})
    return Direct(Redis.from_pool(ConnectionPool(db=address.db, **place, **options)))


def _watched(address: RedisAddress, options: dict[str, Any]) -> Client:
    tls = {"ssl": True} if address.tls else {}
    about = {key: value for key, value in options.items() if key.startswith(("ssl", "socket"))} | tls
    sentinel = Sentinel(  # type: ignore[no-untyped-call]
        address.hosts, sentinel_kwargs=about, db=address.db, **tls, **options
    )
    return Direct(sentinel.master_for(address.name), sentinel.sentinels)


def _options(address: RedisAddress, password: str | None) -> dict[str, Any]:
    options: dict[str, Any] = dict(address.options)
    if "ssl_min_version" in options:
        options["ssl_min_version"] = ssl.TLSVersion(options["ssl_min_version"])
    return options | {
        "username": address.username,
        "password": address.password if password is None else password,
        "socket_timeout": None,  # whoever asks has a limit of its own
        "socket_connect_timeout": CONNECT,
        "retry": Retry(NoBackoff(), 0),
        "driver_info": None,  # one round trip less for each connection
    }
