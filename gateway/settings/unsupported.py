"""What the configuration format has and this version does not do yet.

Such a key is refused rather than read and ignored. A change that makes one work deletes its row here and adds its field
to the tree; nothing else has to be touched.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gateway.settings.problems import Finding, Path


@dataclass(frozen=True, slots=True)
class NotYet:
    """A key, or some values of a key, without function.

    `key` is a dotted path in which `*` stands for any name or list item. `values` is a pattern for the refused values;
    without it, the key itself is refused.
    """

    key: str
    feature: str
    values: str | None = None
    instead: str = "leave it out for now"


NOT_YET: Final[tuple[NotYet, ...]] = (NotYet("models.*.shadow", "shadow traffic"),)


def not_yet(tree: object) -> Iterator[Finding]:
    """A finding for everything in `tree` that this version does not do."""
    for row in NOT_YET:
        for path, value in _matches(tree, tuple(row.key.split(".")), ()):
            if row.values is None:
                yield Finding(path, f"not supported yet: {row.feature}", row.instead, at_key=True)
            elif re.fullmatch(row.values, _written(value)):
                yield Finding(path, f"not supported yet: {row.feature}", row.instead)


def names_not_yet(path: Path) -> tuple[str, ...]:
    """The keys below `path` that are refused whatever their value; a typo may have meant one of them."""
    depth = len(path)
    return tuple(
        parts[-1]
        for parts in (tuple(row.key.split(".")) for row in NOT_YET if row.values is None)
        if len(parts) == depth + 1 and all(want in ("*", have) for want, have in zip(parts, path, strict=False))
    )


def _matches(tree: object, pattern: tuple[str, ...], above: Path) -> Iterator[tuple[Path, object]]:
    if not pattern:
        yield above, tree
        return
    first, rest = pattern[0], pattern[1:]
    children: dict[str | int, object] = {}
    if isinstance(tree, Mapping):
        children = dict(tree) if first == "*" else {key: tree[key] for key in tree if key == first}
    elif isinstance(tree, list) and first == "*":
        children = dict(enumerate(tree))
    for key, child in children.items():
        yield from _matches(child, rest, (*above, key))


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).strip() if isinstance(value, str | int) else ""
