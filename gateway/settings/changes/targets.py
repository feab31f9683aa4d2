"""Which engines serve a model, and with what share of its requests."""

from collections.abc import Iterator, Sequence

from gateway.settings.changes.change import Change, Kind
from gateway.settings.models import Model, Target
from gateway.settings.units import share_text


def target_changes(name: str, old: Model, new: Model) -> Iterator[Change]:
    """`engine: x` and `targets: [{engine: x}]` mean the same."""
    before, after = old.targets_of(name), new.targets_of(name)
    if before == after:
        return
    path = ("models", name, "targets")
    yield Change(Kind.CHANGED, path, _meaning(before, after), _told(before), _told(after))


def _meaning(before: Sequence[Target], after: Sequence[Target]) -> str:
    here, there = dict.fromkeys(map(_place, before)), dict.fromkeys(map(_place, after))
    gone, come = [one for one in here if one not in there], [one for one in there if one not in here]
    if len(gone) == len(here):
        return f"moves from {' and '.join(gone)} to {' and '.join(come)}"
    if gone and come:
        return f"leaves {' and '.join(gone)}, and also runs on {' and '.join(come)}"
    if gone:
        return f"leaves {' and '.join(gone)}"
    if come:
        return f"also runs on {' and '.join(come)}"
    weights = {_place(one): one.weight for one in before} != {_place(one): one.weight for one in after}
    return "other shares of the requests" if weights else "another order of targets"


def _place(target: Target) -> str:
    return f"{target.engine} ({target.model})"


def _told(targets: Sequence[Target]) -> str:
    whole = sum(target.weight for target in targets)
    if len(targets) == 1:
        return _place(targets[0])
    return ", ".join(f"{_place(target)} {share_text(round(target.weight / whole, 3))}" for target in targets)
