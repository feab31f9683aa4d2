"""The URL of a Redis: read whole when the file is read, so that nothing in it can fail while requests are served."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias
from urllib.parse import parse_qsl, unquote

from gateway.settings.values import RefusedValueError

Topology: TypeAlias = Literal["one", "socket", "sentinel", "cluster"]
Option: TypeAlias = str | bool | int

SCHEMES: Final[Mapping[str, tuple[Topology, bool]]] = {
    "redis": ("one", False),
    "rediss": ("one", True),
    "unix": ("socket", False),
    "redis+sentinel": ("sentinel", False),
    "rediss+sentinel": ("sentinel", True),
    "redis+cluster": ("cluster", False),
    "rediss+cluster": ("cluster", True),
}
"""What each scheme names, and whether it is behind TLS."""

PORTS: Final[Mapping[Topology, int]] = {"one": 6379, "socket": 0, "sentinel": 26379, "cluster": 6379}
YES_AND_NO: Final[Mapping[str, Option]] = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
REQUIREMENTS: Final[Mapping[str, Option]] = {one: one for one in ("required", "optional", "none")}
TLS_VERSIONS: Final[Mapping[str, Option]] = {"1.2": 0x0303, "1.3": 0x0304}
"""By their number on the wire, which `ssl.TLSVersion` has too."""

TEXT: Final[Mapping[str, Option]] = {}
"""Any text will do."""
COMMON_OPTIONS: Final[Mapping[str, Mapping[str, Option]]] = {"client_name": TEXT}
TCP_OPTIONS: Final[Mapping[str, Mapping[str, Option]]] = {"socket_keepalive": YES_AND_NO}
TLS_OPTIONS: Final[Mapping[str, Mapping[str, Option]]] = {
    "ssl_ca_certs": TEXT,
    "ssl_certfile": TEXT,
    "ssl_keyfile": TEXT,
    "ssl_cert_reqs": REQUIREMENTS,
    "ssl_check_hostname": YES_AND_NO,
    "ssl_min_version": TLS_VERSIONS,
    "ssl_ciphers": TEXT,
}
"""The options that are passed on, with the values that they may have. What is left out the gateway decides itself."""

_HOST = re.compile(
    r"(?P<name>[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?|\[[0-9A-Fa-f:.]+(?:%\w+)?\])(?::(?P<port>[0-9]{1,5}))?"
)


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """Where a Redis is and how it is talked with. ``name`` is what sentinels watch, ``path`` that of a socket."""

    topology: Topology
    tls: bool
    hosts: tuple[tuple[str, int], ...] = ()
    path: str = ""
    name: str = ""
    db: int = 0
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    options: Mapping[str, Option] = field(default_factory=dict, repr=False)

    @property
    def shown(self) -> str:
        """For logs: the hosts with their ports, or the path. Never user, password or options."""
        hosts = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        return self.path or ",".join(hosts)


def read_redis_url(text: str) -> RedisAddress:
    """What the URL says.

    Raises:
        RefusedValueError: it says nothing that could be used. The message holds no secret.
    """
    scheme, _, rest = text.partition("://")
    if scheme not in SCHEMES or not re.fullmatch(r"[!-~]+", rest):
        raise RefusedValueError(f"expected a URL that begins with {', '.join(SCHEMES)}")
    topology, tls = SCHEMES[scheme]
    found = re.fullmatch(r"(?P<place>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?", rest)
    if found is None or "@" in found["path"] + (found["query"] or ""):
        raise RefusedValueError("expected %2F, %3F, %23 and %40 for /, ?, # and @ in user, password, path and options")
    credentials, _, place = found["place"].rpartition("@")
    username, _, password = credentials.partition(":")
    path, name = unquote(found["path"]), ""
    if topology == "sentinel":
        name, slash, path = path.removeprefix("/").partition("/")
        path = slash + path
    options = _options(found["query"] or "", _allowed(topology, tls=tls))
    return RedisAddress(
        topology,
        tls,
        hosts=_hosts(place, path, topology),
        path=path if topology == "socket" else "",
        name=_watched(name) if topology == "sentinel" else "",
        db=_db("" if topology == "socket" else path, options, topology),
        username=unquote(username) or None,
        password=unquote(password) or None,
        options=options,
    )


def _hosts(place: str, path: str, topology: Topology) -> tuple[tuple[str, int], ...]:
    if topology == "socket":
        if place not in ("", "localhost") or not path.strip("/"):
            raise RefusedValueError("expected the path of a socket, as in unix:///run/redis.sock")
        return ()
    if not place:
        raise RefusedValueError("expected a host, as in redis://127.0.0.1:6379/0")
    hosts = place.split(",")
    if topology == "one" and len(hosts) > 1:
        raise RefusedValueError("expected one host; several are for redis+sentinel:// and redis+cluster://")
    return tuple(_host(host, PORTS[topology]) for host in hosts)


def _host(text: str, otherwise: int) -> tuple[str, int]:
    found = _HOST.fullmatch(text)
    port = otherwise if found is None or found["port"] is None else int(found["port"])
    if found is None or not 0 < port < 65_536:
        raise RefusedValueError("expected hosts with ports from 1 to 65535")
    return found["name"].strip("[]"), port


def _watched(name: str) -> str:
    if not name:
        raise RefusedValueError(
            "expected the name that the sentinels watch, as in redis+sentinel://host:26379/mymaster"
        )
    return name


def _db(path: str, options: dict[str, Option], topology: Topology) -> int:
    """The number of the database: behind the host, or the option `db`, which is taken out of the options."""
    said = {str(one) for one in (path.strip("/"), options.pop("db", "")) if one != ""}
    number = said.pop() if said else "0"
    if said or not re.fullmatch(r"[0-9]{1,5}", number):
        raise RefusedValueError("expected one number of a database behind the host, as in redis://127.0.0.1:6379/0")
    if topology == "cluster" and int(number):
        raise RefusedValueError("expected no database but 0: a cluster has no other")
    return int(number)


def _allowed(topology: Topology, *, tls: bool) -> dict[str, Mapping[str, Option]]:
    found = {"db": TEXT, **COMMON_OPTIONS}
    if topology != "socket":
        found |= TCP_OPTIONS
    return {**found, **TLS_OPTIONS} if tls else found


def _options(query: str, allowed: Mapping[str, Mapping[str, Option]]) -> dict[str, Option]:
    """The options behind the `?`. Their values are not repeated in messages: they might be secrets."""
    found: dict[str, Option] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in allowed:
            raise RefusedValueError(_unknown(name, allowed))
        if name in found or not value:
            raise RefusedValueError(f"expected {'one value' if value else 'a value'} for the option {name}")
        choices = allowed[name]
        if choices and value.lower().removeprefix("tlsv") not in choices:
            raise RefusedValueError(f"expected one of {', '.join(choices)} for the option {name}")
        found[name] = choices[value.lower().removeprefix("tlsv")] if choices else value
    if "client_name" in found and not re.fullmatch(r"[!-~]+", str(found["client_name"])):
        raise RefusedValueError("expected letters, digits and signs without spaces for the option client_name")
    if "ssl_keyfile" in found and "ssl_certfile" not in found:
        raise RefusedValueError("expected the option ssl_certfile beside ssl_keyfile")
    return found


def _unknown(name: str, allowed: Mapping[str, object]) -> str:
    what = f"the option {name}" if re.fullmatch(r"[a-z_]{1,40}", name) else "an option"
    why = ""
    if name in TLS_OPTIONS:
        why = " (it needs TLS: rediss://)"
    elif name in ("username", "password"):
        why = " (it stands before the host, as in redis://user:password@host, or in state.password)"
    return f"{what} cannot be used here{why}; expected one of {', '.join(allowed)}"
