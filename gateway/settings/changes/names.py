"""Names that clients send: which ones come, go, or stand for something else."""

from collections.abc import Iterator

from gateway.settings.changes.change import Change, Kind
from gateway.settings.problems import Path
from gateway.settings.tree import Settings


def name_changes(old: Settings, new: Settings) -> Iterator[Change]:
    """Models and aliases. Where one side asks the engines for their models, its names are not known: that is said."""
    if old.discovers_models or new.discovers_models:
        if old.discovers_models != new.discovers_models:
            yield _discovery(new)
        return
    before, after = _names(old), _names(new)
    for name, (model, path) in before.items():
        if name not in after:
            meaning = f'"{name}" is gone: requests for it get 404'
            yield Change(Kind.REMOVED, path, meaning, before=_described(name, model), breaks=True)
        elif after[name][0] != model:
            meaning = f'"{name}" now stands for {after[name][0]} instead of {model}'
            yield Change(Kind.CHANGED, after[name][1], meaning, before=model, after=after[name][0])
    for name, (model, path) in after.items():
        if name not in before:
            yield Change(Kind.ADDED, path, _welcome(new, name, model), after=_described(name, model))


def _discovery(new: Settings) -> Change:
    meaning = "only those that the file names" if new.models else "whatever the engines list"
    told = ("discovered", "named") if new.models else ("named", "discovered")
    return Change(Kind.CHANGED, ("models",), f"models are now {meaning}", *told, breaks=bool(new.models))


def _names(settings: Settings) -> dict[str, tuple[str, Path]]:
    """Every name with the model it stands for, and its place: that of the model alone, or with the alias."""
    found: dict[str, tuple[str, Path]] = {name: (name, ("models", name)) for name in settings.models}
    for name, model in settings.models.items():
        for alias in model.aliases:
            found.setdefault(alias, (name, ("models", name, "aliases", alias)))
    return found


def _described(name: str, model: str) -> str:
    return name if name == model else f"{name} (alias of {model})"


def _welcome(settings: Settings, name: str, model: str) -> str:
    if name != model:
        return f'new alias "{name}"'
    section = settings.models[model]
    targets = ", ".join(f"{target.model} on {target.engine}" for target in section.targets_of(model))
    return f"new: {section.task}, {targets}"
