"""Before a configuration takes the place of another: looks at what is new, and says what would become of the models."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from engines.probes import Answer, Fingerprint
from engines.profile import EngineKind, Health
from engines.registry import profile
from gateway.background.fetch import Fetch, NoAnswer
from gateway.background.listing import recognise
from gateway.background.resolver import look_up
from gateway.balance.endpoint import Endpoint, EndpointState
from gateway.proxy.plane import Plane
from gateway.settings.changes import changes
from gateway.settings.changes.plan import Look, Place, Plan, as_tree, make_plan, to_look_at
from gateway.settings.engines import Engine
from gateway.settings.tree import Settings
from gateway.settings.values import MANY_ADDRESSES

_SERVES: Final = frozenset({EndpointState.UNKNOWN, EndpointState.UP})


async def plan(against: str, old: Settings, new: Settings, standing: Mapping[Place, bool], fetch: Fetch | None) -> Plan:
    """What would happen; without `fetch`, nothing is looked at."""
    looks = {} if fetch is None else await look_at(fetch, new, to_look_at(old, new))
    return make_plan(against, old, new, changes(old, new, time.time()), standing, looks)


async def tree_of_plan(plane: Plane, new: Settings, *, probe: bool) -> dict[str, object]:
    """The plan against what a gateway has in force, as plain values."""
    fetch = Fetch() if probe else None
    try:
        return as_tree(await plan("what is in force", plane.settings, new, _standing(plane), fetch))
    finally:
        if fetch is not None:
            await fetch.close()


def _standing(plane: Plane) -> dict[Place, bool]:
    """Whether each place serves now; all addresses of a name count as one."""
    found: dict[Place, bool] = {}
    for name, link in plane.engines.items():
        states = {endpoint.url: endpoint.state in _SERVES for endpoint in link.engine.endpoints}
        plain = {url: Endpoint(url).url for url in link.settings.urls if not url.startswith(MANY_ADDRESSES)}
        resolved = any(serves for shown, serves in states.items() if shown not in plain.values())
        for url in link.settings.urls:
            found[name, url] = states.get(plain[url], True) if url in plain else resolved
    return found


async def look_at(fetch: Fetch, settings: Settings, places: Iterable[Place]) -> dict[Place, Look]:
    """Asks at all places at once; a name with several addresses is as good as the best of them."""
    async with asyncio.TaskGroup() as group:
        asked = {place: group.create_task(_look(fetch, settings.engines[place[0]], place)) for place in places}
    return {place: task.result() for place, task in asked.items()}


async def _look(fetch: Fetch, engine: Engine, place: Place) -> Look:
    endpoints = await _endpoints(place[1])
    if not endpoints:
        return Look(*place, fault="its host name cannot be resolved")
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(_look_once(fetch, engine, place, endpoint)) for endpoint in endpoints]
    looks = [task.result() for task in asked]
    return min(looks, key=lambda look: bool(look.fault))


async def _endpoints(url: str) -> list[Endpoint]:
    if not url.startswith(MANY_ADDRESSES):
        return [Endpoint(url)]
    plain = url.removeprefix(MANY_ADDRESSES)
    parts = urlsplit(plain)
    try:
        addresses = await look_up(parts.hostname or "", parts.port or 80)
    except (OSError, UnicodeError):
        return []
    return [Endpoint(plain, address=address) for address in addresses]


async def _look_once(fetch: Fetch, engine: Engine, place: Place, endpoint: Endpoint) -> Look:
    kind = profile(engine.kind)
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(recognise(fetch, endpoint, engine.credentials))
        checked = group.create_task(fetch.get(endpoint, engine.health.path or kind.health.path, engine.credentials))
    found, health = asked.result(), checked.result()
    if isinstance(found, NoAnswer):
        return Look(*place, fault=found.reason)
    return Look(
        *place,
        fault=_fault(engine, found, health),
        kind=found.kind.value if found.kind is not None else None,
        version=found.version,
        models=tuple(model.id for model in found.models),
    )


def _fault(engine: Engine, found: Fingerprint, health: Answer | NoAnswer) -> str:
    if found.kind is not None and found.kind is not engine.kind:
        return f"it is {profile(found.kind).title}, not {profile(engine.kind).title} ({found.evidence})"
    if found.needs_key:
        return "it does not take the key" if engine.api_key is not None else "it asks for a key (api_key)"
    if isinstance(health, NoAnswer):
        return health.reason
    fine = engine.health.path is not None and 200 <= health.status < 300
    if not fine and profile(EngineKind(engine.kind)).health.judge(health.status) is not Health.READY:
        return f"its health check gives status {health.status}"
    return ""
