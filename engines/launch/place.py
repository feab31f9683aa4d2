"""Where an engine runs: what the routing file says of it beside its launch settings."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from engines.launch.common import Launch
from engines.profile import EngineKind

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
EVERYWHERE: Final = "0.0.0.0"
_PORTS: Final = {EngineKind.VLLM: 8000, EngineKind.TRTLLM: 8000, EngineKind.TRITON: 9000}
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,62}")


@dataclass(frozen=True, slots=True)
class Place:
    """An engine's name, the name of its service (the host in its URL, if that is a name), and where it listens.

    `local`: the gateway looks for it on its own machine, so that a container has to publish its port there.
    """

    engine: str
    service: str
    host: str
    port: int
    local: bool = False


def place_of(engine: str, kind: EngineKind, urls: Sequence[str], launch: Launch) -> Place:
    """The place that an engine's URLs and launch settings give."""
    url = urlsplit(urls[0].removeprefix("dns+"))
    hosts = {urlsplit(one.removeprefix("dns+")).hostname or "" for one in urls}
    port = launch.port or url.port or (443 if url.scheme == "https" else _PORTS[kind] if not url.netloc else 80)
    local = hosts <= LOOPBACK
    host = launch.host or ("127.0.0.1" if local else EVERYWHERE)
    return Place(engine, _service(engine, url.hostname or ""), host, port, local)


def _service(engine: str, hostname: str) -> str:
    """A name that compose and Kubernetes take: the host's first part where it is a name, else made of the engine's."""
    first = hostname.partition(".")[0]
    if _NAME.fullmatch(first) and hostname not in LOOPBACK:
        return first
    name = re.sub(r"[^a-z0-9]+", "-", engine.lower()).strip("-")
    return name if _NAME.fullmatch(name) else f"engine-{name}"[:63].rstrip("-")
