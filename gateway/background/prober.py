"""Active health checks: asks every endpoint again and again, and tells the balance what it heard."""

import asyncio
from collections.abc import Callable
from typing import Final, assert_never

import structlog

from engines.probes import NO_ANSWER, Answer, fingerprint, parse_build, parse_models
from engines.profile import Health
from engines.prometheus import read_load
from gateway.background.fetch import Credentials, Fetch, NoAnswer
from gateway.background.warming import warm_up
from gateway.balance import evidence
from gateway.balance.endpoint import Endpoint, EndpointState
from gateway.balance.health import Health as Verdict
from gateway.balance.load import LoadReport
from gateway.kserve.control import Address, KServeError, models_ready
from gateway.proxy.links import EngineLink
from gateway.proxy.plane import Plane

TICK: Final = 0.2
"""Seconds between two looks at who is due; a suspicion is followed up within it."""

LOOK_AGAIN: Final = 60.0
"""Seconds after which a healthy endpoint is asked for its version and models again."""

SWEEP: Final = 1.0
"""Seconds between two comparisons of an engine's endpoints with one another."""

_log = structlog.get_logger()


class Prober:
    """Watches the endpoints of the plane in force; a new plane's are taken up with the next tick.

    One task looks who is due, and each check is a task of its own, so that an endpoint that does not answer delays
    no other. An endpoint has at most one check at a time.
    """

    def __init__(self, plane: Callable[[], Plane], fetch: Fetch) -> None:
        self._plane = plane
        self._fetch = fetch
        self._asking: set[Endpoint] = set()
        self._looked_at: dict[Endpoint, float] = {}
        self._missing: set[tuple[str, str]] = set()
        self._mute: set[str] = set()
        self._swept_at = 0.0

    async def run(self) -> None:
        """Works until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._begin_due(group)
                await asyncio.sleep(TICK)

    def _begin_due(self, group: asyncio.TaskGroup) -> None:
        plane = self._plane()
        now = plane.loop.time()
        for name, link in plane.engines.items():
            for endpoint in link.engine.endpoints:
                if endpoint not in self._asking and endpoint.check.due <= now:
                    self._asking.add(endpoint)
                    group.create_task(self.visit(plane, name, link, endpoint))
        if now - self._swept_at >= SWEEP:
            self._swept_at = now
            for link in plane.engines.values():
                evidence.sweep(link.engine, now)
            for gone in self._looked_at.keys() - plane.endpoints.keys():
                del self._looked_at[gone]

    async def visit(self, plane: Plane, name: str, link: EngineLink, endpoint: Endpoint) -> None:
        """Checks an endpoint, and asks one that is well for whatever else is wanted."""
        try:
            credentials = plane.settings.engines[name].credentials
            if not await self.check(plane, name, link, endpoint):
                return
            if endpoint.cold and endpoint.check.verdict is Verdict.UP:
                failure = await warm_up(plane, name, link, endpoint, self._fetch)
                if failure is not None and failure != endpoint.health_reason:
                    _log.warning("endpoint is not warm", engine=name, endpoint=endpoint.url, reason=failure)
                evidence.warmed(link.engine, endpoint, plane.loop.time(), failure)
            if link.wants_load and len(link.engine.endpoints) > 1:
                await self.read_load(link, endpoint, credentials)
            if self._wants_look(plane, link, endpoint):
                await self._look(plane, name, link, endpoint, credentials)
        finally:
            self._asking.discard(endpoint)

    async def check(self, plane: Plane, name: str, link: EngineLink, endpoint: Endpoint) -> bool:
        """One health check of one endpoint. True if it passed."""
        own_path = plane.settings.engines[name].health.path
        path = own_path or link.profile.health.path
        answer = await self._fetch.get(endpoint, path, plane.settings.engines[name].credentials)
        now = plane.loop.time()
        if isinstance(answer, NoAnswer):
            evidence.check_failed(link.engine, endpoint, answer.reason, now, refused=answer.refused)
            return False
        health = link.profile.health.judge(answer.status)
        if own_path is not None and 200 <= answer.status < 300:
            health = Health.READY
        match health:
            case Health.READY:
                evidence.check_passed(link.engine, endpoint, now)
                return True
            case Health.NOT_READY if await self._models_ready(plane, name):
                evidence.check_passed(link.engine, endpoint, plane.loop.time())
                return True
            case Health.NOT_READY:
                reason = f"its health check says that it is not ready (status {answer.status})"
            case Health.BROKEN:
                reason = f"its health check gives status {answer.status}"
            case _:
                assert_never(health)
        evidence.check_failed(link.engine, endpoint, reason, now)
        return False

    async def _models_ready(self, plane: Plane, name: str) -> bool:
        """Whether KServe says that all models of an engine are ready, though the server as a whole is not: a Triton is
        not ready while any model, one of somebody else's too, is being unloaded."""
        where = plane.settings.engines[name].kserve
        if where is None:
            return False
        targets = [target for asked in plane.asked.values() for target in asked.route.targets]
        models = {target.model for target in targets if target.engine.name == name}
        try:
            return await models_ready(Address(where.http or "", where.grpc or ""), sorted(models))
        except KServeError as error:
            if name not in self._mute:
                self._mute.add(name)
                _log.warning("KServe cannot be asked", engine=name, reason=str(error))
            return False

    async def read_load(self, link: EngineLink, endpoint: Endpoint, credentials: Credentials) -> None:
        """Asks the engine for its metrics. Where they cannot be had, our own requests are all that is known."""
        answer = await self._fetch.get(endpoint, link.profile.metrics_path, credentials)
        if not isinstance(answer, Answer) or answer.status != 200:
            return
        load = read_load(link.profile.kind, answer.body)
        if load.running is None and load.waiting is None:
            return
        now = link.loop.time()
        report = LoadReport(load.running or 0.0, load.waiting or 0.0, load.kv_use or 0.0, endpoint.in_flight, now)
        evidence.report_load(link.engine, endpoint, report, now)

    def _wants_look(self, plane: Plane, link: EngineLink, endpoint: Endpoint) -> bool:
        """Now and then; and with each check while requests fail there, which may be for want of the right key."""
        last = self._looked_at.get(endpoint)
        now = plane.loop.time()
        suspect = endpoint.state is EndpointState.EJECTED or endpoint in link.refusing or endpoint in link.doubted
        if last is not None and now - last < LOOK_AGAIN and not suspect:
            return False
        self._looked_at[endpoint] = now
        link.doubted.discard(endpoint)
        return True

    async def _look(
        self, plane: Plane, name: str, link: EngineLink, endpoint: Endpoint, credentials: Credentials
    ) -> None:
        """Reads the version, which chooses among the variants of the profile, and the models, for people."""
        if link.profile.version_path is not None:
            version = await self._fetch.get(endpoint, link.profile.version_path, credentials)
            if isinstance(version, Answer) and version.status == 200:
                build = parse_build(version.body)
                link.engine.version = build.version or link.engine.version
                link.learn(build)
        listing = await self._fetch.get(endpoint, link.profile.models_path, credentials)
        if not isinstance(listing, Answer):
            return
        if listing.status == 200:
            link.refusing.discard(endpoint)
            self._recognise(name, link, endpoint, listing)
            self._compare(plane, name, {model.id for model in parse_models(listing.body)})
        elif listing.status in {401, 403} and endpoint not in link.refusing:
            link.refusing.add(endpoint)
            _log.warning("the engine refuses the gateway's key", engine=name, endpoint=endpoint.url)

    def _recognise(self, name: str, link: EngineLink, endpoint: Endpoint, listing: Answer) -> None:
        """Says once when the model list is that of another kind of engine: most requests work, and some go wrong."""
        seen = fingerprint(NO_ANSWER, listing, NO_ANSWER)
        if seen.kind is None or seen.kind is link.profile.kind:
            link.mistaken.pop(endpoint, None)
        elif link.mistaken.get(endpoint) is not seen.kind:
            link.mistaken[endpoint] = seen.kind
            _log.warning(
                "the engine is of another kind",
                engine=name,
                endpoint=endpoint.url,
                configured=link.profile.kind.value,
                seems=seen.kind.value,
                reason=seen.evidence,
            )

    def _compare(self, plane: Plane, name: str, listed: set[str]) -> None:
        """Says once when an engine does not list a model that is configured for it."""
        for asked in plane.asked.values():
            for target in asked.route.targets:
                at = (name, target.model)
                if target.engine.name != name or not listed:
                    continue
                if target.model in listed:
                    self._missing.discard(at)
                elif at not in self._missing:
                    self._missing.add(at)
                    known = ", ".join(sorted(listed)[:10])
                    _log.warning("the engine does not list the model", engine=name, model=target.model, listed=known)
