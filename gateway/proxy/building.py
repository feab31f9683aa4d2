"""From settings to a plane, and from one plane to the next."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from engines.profile import Operation, Profile
from gateway.balance.admission import AdmissionSettings
from gateway.balance.endpoint import Notice
from gateway.balance.fallback import Cause, Fallbacks
from gateway.balance.hedge import FirstTokens
from gateway.balance.lease import Target
from gateway.balance.retry import RetryBudget, RetrySettings
from gateway.balance.route import Route
from gateway.logs import Journal
from gateway.metrics import Meters
from gateway.proxy.affinity import key_of, policy_of
from gateway.proxy.callers import Callers
from gateway.proxy.deadlines import Deadlines
from gateway.proxy.guard import Guard
from gateway.proxy.limiter import Limiter, is_limited
from gateway.proxy.limits import Limits
from gateway.proxy.links import Addresses, EngineLink, addresses_of, link_engine
from gateway.proxy.plane import Asked, Destination, Ids, Plane
from gateway.proxy.queueing import AdmissionQueue
from gateway.proxy.replies import engine_lines
from gateway.proxy.tooling import Tooling
from gateway.settings.engines import Timeouts
from gateway.settings.models import Model as ModelSettings
from gateway.settings.tree import Settings
from gateway.wire.answer import AnswerNames
from gateway.wire.shape import Extras, ReasoningField, Shape

SHAPED: Final = (Operation.CHAT, Operation.COMPLETIONS)
"""Operations whose answers have choices, whole or streamed."""


def build_plane(
    settings: Settings,
    loop: asyncio.AbstractEventLoop,
    meters: Meters,
    *,
    deadlines: Deadlines | None = None,
    ids: Ids | None = None,
    notice: Notice | None = None,
    journal: Journal | None = None,
    old: Plane | None = None,
    addresses: Addresses = MappingProxyType({}),
    now: int = 0,
) -> Plane:
    """Makes a plane. ``now`` (Unix seconds) is what model listings give as ``created``, ``addresses`` what new names
    stand for.

    What is the same in the ``old`` plane is taken over with all that is known about it: endpoints with their health,
    load, breakers and connections, queues with those who wait. Nothing of the old plane changes before the new one is
    complete.
    """
    known = {**addresses} if old is None else {**addresses, **addresses_of(old.engines.values())}
    engines: dict[str, EngineLink] = {}
    for name, engine_settings in settings.engines.items():
        link = None if old is None else old.engines.get(name)
        if link is None or not link.is_meant_by(engine_settings):
            link = link_engine(name, engine_settings, loop, notice, known)
        engines[name] = link
    queues = _queues(settings, loop, meters, {} if old is None else old.queues)
    asked: dict[str, Asked] = {}
    for name in settings.models:
        before = None if old is None else old.asked.get(name)
        asked.update(_model(name, settings, engines, meters, now, queues.get(name), before))
    for one in asked.values():
        models = settings.models[one.route.model].fallbacks
        one.stand_ins = {model: replace(asked[model], name=one.name, names=one.names) for model in models}
    for one in asked.values():
        for stand_in in one.stand_ins.values():
            stand_in.fallbacks, stand_in.stand_ins = one.fallbacks, one.stand_ins
    retry = RetrySettings(
        attempts=settings.retry.attempts, share=settings.retry.budget, on_timeout=settings.retry.on_timeout
    )
    plane = Plane(
        loop,
        settings,
        Deadlines(loop) if deadlines is None else deadlines,  # one without entries is false
        meters,
        ids or Ids(),
        engines,
        asked,
        queues,
        RetryBudget(retry, loop.time()) if old is None or old.retry != retry else old.budget,
        retry,
        journal,
        _guard(settings, meters, None if old is None else old.guard),
    )
    plane.enter(known)
    return plane


def _guard(settings: Settings, meters: Meters, before: Guard | None) -> Guard | None:
    """Who is let in and to how much; None where everybody is, to everything. What is owed stays owed."""
    callers = Callers(settings.keys) if settings.asks_for_keys else None
    if callers is None and not is_limited(settings):
        return None
    limiter = Limiter(settings, meters, time.time, None if before is None else before.limiter)
    return Guard(callers, limiter, meters, time.time)


def _queues(
    settings: Settings, loop: asyncio.AbstractEventLoop, meters: Meters, old: Mapping[str, AdmissionQueue]
) -> dict[str, AdmissionQueue]:
    """A queue for every model that has a limit, its own or its engines'. Who is in a queue stays there."""
    admission = AdmissionSettings(queue=settings.admission.queue, wait=settings.admission.wait)
    queues: dict[str, AdmissionQueue] = {}
    for name, model in settings.models.items():
        limited = [t.engine for t in model.targets_of(name) if settings.engines[t.engine].max_in_flight is not None]
        if model.max_in_flight is None and not limited:
            continue
        queue = old.get(name)
        if queue is None:
            queue = AdmissionQueue(loop, admission, model.max_in_flight, meters.queue(name))
        queues[name] = queue
    return queues


def _model(
    name: str,
    everything: Settings,
    engines: Mapping[str, EngineLink],
    meters: Meters,
    now: int,
    queue: AdmissionQueue | None,
    before: Asked | None,
) -> Iterable[tuple[str, Asked]]:
    """What the model's names stand for. ``before``: what the model's own name stood for until now."""
    settings = everything.models[name]
    targets = [Target(engines[t.engine].engine, t.model or name, t.weight) for t in settings.targets_of(name)]
    follows = None if before is None else before.route
    route = Route(name, targets, policy_of(settings), task=settings.task, created=now, follows=follows)
    destinations = {}
    for target in targets:
        engine = target.engine.name
        link, configured = engines[engine], everything.engines[engine]
        destinations[engine] = Destination(
            link,
            meters.meter(name, engine),
            engine_lines(engine.encode(), 1),
            _limits(configured.timeouts, settings),
            Tooling(name, settings, configured, link, target.model, meters),
            _shapes(link.profile_under(configured), settings),
        )
    causes = frozenset(Cause(cause) for cause in settings.fallback_on)
    hedge = None
    if settings.hedge is not None:
        hedge = FirstTokens() if before is None or before.hedge is None else before.hedge
    for asked in (name, *settings.aliases):
        names = {operation: AnswerNames(operation, asked) for operation in Operation}
        yield (
            asked,
            Asked(
                asked,
                route,
                settings.task,
                settings.unknown_parameters,
                settings.token_inputs,
                destinations,
                meters.meter(name, ""),
                names,
                key_of(settings),
                queue,
                Fallbacks(settings.fallbacks, causes),
                hedge=hedge,
                log_prompts=settings.log_prompts,
            ),
        )


def _limits(engine: Timeouts, model: ModelSettings) -> Limits:
    own = model.timeouts
    return Limits(
        own.first_token or engine.first_token,
        own.idle or engine.idle,
        own.total or engine.total,
        whole=own.first_token is not None or "first_token" in engine.model_fields_set,
    )


def _shapes(kind: Profile, settings: ModelSettings) -> Mapping[Operation, Shape]:
    extras, reasoning = Extras(settings.extras), ReasoningField(settings.reasoning.field)
    return {operation: Shape(operation, kind.answers, extras, reasoning) for operation in SHAPED}
