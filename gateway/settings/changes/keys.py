"""Keys of callers: who loses what by an edit, as each key counts at the moment of the plan."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from gateway.settings.changes.change import Change, Kind
from gateway.settings.keys import Key
from gateway.settings.tree import Settings


def asking_changes(old: Settings, new: Settings) -> Iterator[Change]:
    """Whether a key is asked for at all: an empty list of keys lets nobody in."""
    if old.asks_for_keys == new.asks_for_keys:
        return
    opened = "opens the gateway to everybody: no key is asked for any more"
    meaning = "callers need a key now" if new.asks_for_keys else opened
    yield Change(Kind.CHANGED, ("keys",), meaning, breaks=new.asks_for_keys)


def told_of_key(change: Change, old: Settings, new: Settings, now: float) -> Change:
    """A change of a key with what it means for those who show that key at ``now`` (Unix seconds)."""
    name = str(change.path[1])
    before, after = (next((key for key in one.keys if key.name == name), None) for one in (old, new))
    if before is None:
        fault = "" if after is None else _fault(after, now)
        return replace(change, meaning=f"new, but refused: {fault}" if fault else "may call from now on", after=name)
    if after is None:
        return _removed(replace(change, before=name), before, new, now)
    match change.path[2:]:
        case ("disabled" | "expires",):
            return _refusal(change, before, after, now)
        case ("hash",):
            meaning = "is another key: the old one is refused from now on"
            return replace(change, meaning=meaning, breaks=not _fault(before, now))
        case ("models", *_):
            return _models(change, before, after, old, new, now)
        case _:
            return change


def _fault(key: Key, now: float) -> str:
    """Why a key is refused; empty if it is not."""
    if key.disabled:
        return "it is disabled"
    return f"it expired at {_moment(key.expires)}" if key.expires is not None and key.expires <= now else ""


def _moment(when: float) -> str:
    try:
        return f"{datetime.fromtimestamp(when, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):  # years that no calendar has
        return f"{when:.0f}"


def _removed(change: Change, key: Key, new: Settings, now: float) -> Change:
    if not new.asks_for_keys:
        return replace(change, meaning="is gone: whoever shows it is let in as everybody is")
    fault = _fault(key, now)
    if fault:
        return replace(change, meaning=f"is gone; it was refused already: {fault}")
    return replace(change, meaning="is refused from now on", breaks=True)


def _refusal(change: Change, before: Key, after: Key, now: float) -> Change:
    was, is_now = _fault(before, now), _fault(after, now)
    if is_now and not was:
        return replace(change, meaning=f"is refused from now on: {is_now}", breaks=True)
    if was and not is_now:
        return replace(change, meaning=f"may call again ({change.meaning})")
    if is_now:
        return replace(change, meaning=f"stays refused: {is_now} ({change.meaning})")
    if change.path[-1] == "expires":
        until = "does not expire any more" if after.expires is None else f"is refused from {_moment(after.expires)} on"
        return replace(change, meaning=until)
    return change


def _models(change: Change, before: Key, after: Key, old: Settings, new: Settings, now: float) -> Change:
    """A name in `models` allows that name, and a model's own name all of its aliases."""
    at_work = not _fault(before, now)
    match change.kind, change.path[3:]:
        case Kind.REMOVED, (str(model),):
            names = _names(new)
            lost = {one for one in _lost(before, after, old, new) if model in {one, names[one]}}
            if not lost and not _unknown(old, new):
                return replace(change, meaning=f"no longer names {model}, and loses nothing by it")
            return replace(change, meaning=f"loses {model}: its requests for it are refused", breaks=at_work)
        case Kind.ADDED, (str(model),):
            return replace(change, meaning=f"may ask for {model} from now on")
        case Kind.CHANGED, () if after.models is None:
            return replace(change, meaning="may ask for every model from now on")
        case Kind.CHANGED, () if before.models is None:
            only = ", ".join(after.models or ()) or "no model at all"
            loses = _unknown(old, new) or bool(_lost(before, after, old, new))
            return replace(change, meaning=f"may ask only for {only} from now on", breaks=at_work and loses)
        case _:
            return change


def _names(settings: Settings) -> dict[str, str]:
    """Every name that may be asked for, with its model."""
    aliases = {alias: name for name, model in settings.models.items() for alias in model.aliases}
    return aliases | {name: name for name in settings.models}


def _unknown(old: Settings, new: Settings) -> bool:
    """Whether only the engines know which names there are."""
    return old.discovers_models or new.discovers_models


def _lost(before: Key, after: Key, old: Settings, new: Settings) -> set[str]:
    """Names that the key could ask for and are still there, but not for it."""

    def allowed(key: Key, settings: Settings) -> set[str]:
        names = _names(settings)
        return {one for one, model in names.items() if key.models is None or {one, model} & set(key.models)}

    return (allowed(before, old) & set(_names(new))) - allowed(after, new)
