"""What would become of the models if a configuration took the place of another one.

Pure: how endpoints are now, and what was found at the new ones, are arguments.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gateway.settings.changes.change import Change
from gateway.settings.changes.secrets import uncompared
from gateway.settings.engines import Engine
from gateway.settings.tree import Settings

Place: TypeAlias = tuple[str, str]
"""An engine's name, and one of its `urls` as the file has it."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was found at a place. `fault` says why it cannot be used, empty if it can.

    `models` are those that it lists; empty: it does not say.
    """

    engine: str
    url: str
    fault: str = ""
    kind: str | None = None
    version: str | None = None
    models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loss:
    """A model that is served now and would not be any more, with the reasons of its targets."""

    model: str
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is to be known before a configuration takes the place of what is at `against`.

    `losses`: models that would lose their last healthy target. `unreached`: new engines of which no replica can be
    used. `unlisted`: engines, each with a model that it would be asked for and does not list. `uncompared`: the keys of
    secrets that may differ, since a running gateway does not tell its own.
    """

    against: str
    changes: tuple[Change, ...]
    looks: tuple[Look, ...]
    losses: tuple[Loss, ...]
    unreached: tuple[str, ...]
    unlisted: tuple[tuple[str, str], ...]
    uncompared: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the plan cannot know."""
        if not self.uncompared:
            return ()
        return (f"secrets are not compared with a running gateway: {', '.join(self.uncompared)}",)

    @property
    def safe(self) -> bool:
        """Whether everything that is served now still is, and all that is new is there."""
        return not self.losses and not self.unreached


def make_plan(
    against: str,
    old: Settings,
    new: Settings,
    changes: tuple[Change, ...],
    standing: Mapping[Place, bool],
    looks: Mapping[Place, Look],
) -> Plan:
    """Puts together what would happen.

    `standing`: whether endpoints of the old configuration serve; those that are not in it are taken to. `looks`: what
    was found at the places that `to_look_at` names; without one, a place is taken to be fine.
    """
    return Plan(
        against,
        changes,
        tuple(looks.values()),
        tuple(_losses(old, new, standing, looks)),
        tuple(_unreached(old, new, looks)),
        tuple(_unlisted(new, looks)),
        uncompared(old, new),
    )


def to_look_at(old: Settings, new: Settings) -> tuple[Place, ...]:
    """Places of which the running gateway cannot know whether they will do: new addresses, addresses that are spoken to
    in another way, and engines that are asked for another model than before. Whoever has only stars for the key of an
    engine cannot ask it.
    """
    known = {place: old.engines[place[0]] for place in _places(old)}
    asked = set(_asked(old))
    others = {engine for engine, model in _asked(new) if (engine, model) not in asked}
    return tuple(
        (name, url)
        for name, url in _places(new)
        if not _is_hidden(new.engines[name])
        and ((name, url) not in known or name in others or _differs(known[name, url], new.engines[name]))
    )


def _differs(old: Engine, new: Engine) -> bool:
    """Whether an address might answer otherwise, as far as can be seen: a key that is stars is not compared."""
    keys = _key(old), _key(new)
    other_key = bool(keys[0]) != bool(keys[1]) if _is_hidden(old) or _is_hidden(new) else keys[0] != keys[1]
    header, path = old.api_key_header != new.api_key_header, old.health.path != new.health.path
    return other_key or header or path or old.kind is not new.kind


def _key(engine: Engine) -> str:
    return engine.api_key.get_secret_value() if engine.api_key is not None else ""


def _is_hidden(engine: Engine) -> bool:
    return set(_key(engine)) == {"*"}


def _places(settings: Settings) -> Iterator[Place]:
    for name, engine in settings.engines.items():
        for url in engine.urls:
            yield name, url


def _asked(settings: Settings) -> Iterator[tuple[str, str]]:
    """Engines, and the models that they are asked for."""
    for name, model in settings.models.items():
        for target in model.targets_of(name):
            yield target.engine, target.model or name


def _names(settings: Settings) -> dict[str, str]:
    found = {name: name for name in settings.models}
    for name, model in settings.models.items():
        for alias in model.aliases:
            found.setdefault(alias, name)
    return found


def _losses(
    old: Settings, new: Settings, standing: Mapping[Place, bool], looks: Mapping[Place, Look]
) -> Iterator[Loss]:
    """For each name that clients may go on sending: served now, and not any more."""
    before, after = _names(old), _names(new)
    told: set[str] = set()
    for name, model in after.items():
        if name not in before or model in told:
            continue
        served = any(not _fault(place, standing, {}, "") for place, _ in _targets(old, before[name]))
        faults = [(place, _fault(place, standing, looks, asked)) for place, asked in _targets(new, model)]
        if served and all(fault for _, fault in faults):
            told.add(model)
            yield Loss(model, "; ".join(f"{engine} at {url}: {fault}" for (engine, url), fault in faults))


def _targets(settings: Settings, model: str) -> Iterator[tuple[Place, str]]:
    """The places that serve a model, and what they are asked for."""
    for target in settings.models[model].targets_of(model):
        for url in settings.engines[target.engine].urls:
            yield (target.engine, url), target.model or model


def _fault(place: Place, standing: Mapping[Place, bool], looks: Mapping[Place, Look], model: str) -> str:
    """Why a place does not serve a model; empty if it does. What was just found counts more than what was known."""
    look = looks.get(place)
    if look is not None:
        if look.fault:
            return look.fault
        return f'does not list "{model}"' if look.models and model not in look.models else ""
    return "" if standing.get(place, True) else "does not serve now"


def _unreached(old: Settings, new: Settings, looks: Mapping[Place, Look]) -> Iterator[str]:
    """Engines with nothing but new addresses, of which none can be used."""
    before = set(_places(old))
    for name, engine in new.engines.items():
        found = [looks.get((name, url)) for url in engine.urls]
        if all(look is not None and look.fault for look in found) and not before & {(name, url) for url in engine.urls}:
            yield name


def _unlisted(new: Settings, looks: Mapping[Place, Look]) -> Iterator[tuple[str, str]]:
    for engine, model in dict.fromkeys(_asked(new)):
        found = [look for (name, _), look in looks.items() if name == engine and look.models]
        if found and all(model not in look.models for look in found):
            yield engine, model


def as_tree(plan: Plan) -> dict[str, object]:
    """The plan as JSON has it."""
    return {
        "safe": plan.safe,
        "against": plan.against,
        "notes": list(plan.notes),
        "changes": [
            {
                "kind": change.kind.value,
                "subject": change.subject,
                "key": change.key,
                "meaning": change.meaning,
                "before": change.before,
                "after": change.after,
                "breaks": change.breaks,
                "restart": change.restart,
            }
            for change in plan.changes
        ],
        "losses": [{"model": loss.model, "why": loss.why} for loss in plan.losses],
        "unreached": list(plan.unreached),
        "unlisted": [{"engine": engine, "model": model} for engine, model in plan.unlisted],
        "looks": [
            {
                "engine": look.engine,
                "url": look.url,
                "ok": not look.fault,
                "fault": look.fault or None,
                "kind": look.kind,
                "version": look.version,
                "models": list(look.models),
            }
            for look in plan.looks
        ],
    }
