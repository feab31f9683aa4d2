"""What an edit of the configuration changes, in terms of what clients see.

Pure: two trees in, differences out. Nothing that has an effect is left out, and equal trees differ in nothing.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from gateway.settings.changes.change import Change, Kind
from gateway.settings.changes.keys import asking_changes, told_of_key
from gateway.settings.changes.names import name_changes
from gateway.settings.changes.targets import target_changes
from gateway.settings.changes.values import section_changes
from gateway.settings.engines import Engine
from gateway.settings.launching import value_at
from gateway.settings.redacted import redacted_tree
from gateway.settings.tree import Settings
from gateway.settings.units import duration_text

__all__ = ["Change", "Kind", "changes"]

_OWN_WORDS: Final = frozenset({"engines", "models"})
_NAMES_AND_TARGETS: Final = frozenset({"engine", "model", "targets", "aliases"})


def changes(old: Settings, new: Settings, now: float) -> tuple[Change, ...]:
    """Every difference between two configurations: names first, then models, engines and the rest.

    ``now`` (Unix seconds) says which keys have expired. A secret that is stars on one side is only looked at for being
    there.
    """
    found = [
        *name_changes(old, new),
        *_models(old, new),
        *_engines(old, new),
        *asking_changes(old, new),
        *section_changes((), old, new, without=_OWN_WORDS),
    ]
    return tuple(_told(change, old, new, now) for change in found)


def _models(old: Settings, new: Settings) -> Iterator[Change]:
    for name, model in new.models.items():
        before = old.models.get(name)
        if before is None:
            continue
        yield from target_changes(name, before, model)
        yield from section_changes(("models", name), before, model, without=_NAMES_AND_TARGETS)
        if set(before.aliases) == set(model.aliases) and before.aliases != model.aliases:
            yield Change(Kind.CHANGED, ("models", name, "aliases"), "aliases in another order")


def _launches(settings: Settings) -> dict[str, object]:
    """Launch settings as they may be shown: they can hold secrets under any name."""
    tree = redacted_tree(settings)
    return {name: value_at(tree, ("engines", name, "launch")) for name in settings.engines}


def _engines(old: Settings, new: Settings) -> Iterator[Change]:
    launch = _launches(old), _launches(new)
    for name, engine in old.engines.items():
        if name not in new.engines:
            yield Change(Kind.REMOVED, ("engines", name), "gone", before=_about(engine))
    for name, engine in new.engines.items():
        before = old.engines.get(name)
        if before is None:
            yield Change(Kind.ADDED, ("engines", name), f"new: {_about(engine)}", after=_about(engine))
            continue
        yield from section_changes(("engines", name), before, engine, without=frozenset({"launch"}))
        if launch[0].get(name) != launch[1].get(name):
            meaning = "other launch settings: they count when the engine is started again"
            yield Change(Kind.CHANGED, ("engines", name, "launch"), meaning)
        limit = "first_token"
        was, is_now = (limit in one.timeouts.model_fields_set for one in (before, engine))
        if was != is_now and before.timeouts.first_token == engine.timeouts.first_token:
            scope = "also for answers in one piece" if is_now else "for streams only"
            meaning = f"{limit} ({duration_text(engine.timeouts.first_token)}) now holds {scope}"
            yield Change(Kind.CHANGED, ("engines", name, "timeouts", limit), meaning)


def _about(engine: Engine) -> str:
    return f"{engine.kind} at {', '.join(engine.urls)}"


def _told(change: Change, old: Settings, new: Settings, now: float) -> Change:
    """The change with what it means for clients, where its key and values alone do not say it."""
    match change.path:
        case ("models", str(), "task"):
            return replace(change, meaning=f"is for {change.after} now, not for {change.before}", breaks=True)
        case ("keys", str(), *_):
            return told_of_key(change, old, new, now)
        case ("engines", str(), "urls", str(url)):
            word = "new replica" if change.kind is Kind.ADDED else "leaves"
            return replace(change, meaning=f"{word}: {url}")
        case _:
            return change
