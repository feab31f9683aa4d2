"""All other keys, one by one: values with their units, secrets never."""

from collections.abc import Callable, Iterator, Mapping

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from gateway.settings.changes.change import Change, Kind
from gateway.settings.problems import Path
from gateway.settings.schema import written_of
from gateway.settings.written import text_of


def section_changes(
    path: Path, old: BaseModel, new: BaseModel, *, without: frozenset[str] = frozenset()
) -> Iterator[Change]:
    """Every key below a section that has another value, those in `without` left out."""
    for name, field in type(new).model_fields.items():
        if name not in without:
            yield from _value((*path, name), getattr(old, name), getattr(new, name), field)


def _value(path: Path, old: object, new: object, field: FieldInfo) -> Iterator[Change]:
    if isinstance(old, BaseModel) and isinstance(new, BaseModel):
        yield from section_changes(path, old, new)
    elif isinstance(old, dict) and isinstance(new, dict):
        yield from _entries(path, old, new)
    elif isinstance(old, tuple) and isinstance(new, tuple):
        yield from _list(path, old, new)
    elif not _same(old, new):
        written = written_of(field)
        show = written.text if written is not None else None
        before, after = _shown(old, show), _shown(new, show)
        yield Change(Kind.CHANGED, path, f"{path[-1]}: {before} → {after}", before, after)


def _same(old: object, new: object) -> bool:
    if isinstance(old, SecretStr) and isinstance(new, SecretStr):
        return old == new or _is_hidden(old) or _is_hidden(new)
    return old == new


def _is_hidden(secret: SecretStr) -> bool:
    """Whether it came from a redacted tree: what it is cannot be told, only that it is there."""
    return set(secret.get_secret_value()) == {"*"}


def _shown(value: object, show: Callable[[object], str] | None) -> str:
    if isinstance(value, SecretStr):
        return "a secret"
    return "not set" if value is None else text_of(value, show)


def _entries(path: Path, old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[Change]:
    for name, value in old.items():
        if name not in new:
            yield Change(Kind.REMOVED, (*path, name), "removed", before=text_of(value))
        else:
            other = new[name]
            if isinstance(value, BaseModel) and isinstance(other, BaseModel):
                yield from section_changes((*path, name), value, other)
            elif value != other:
                told = text_of(value), text_of(other)
                yield Change(Kind.CHANGED, (*path, name), f"{told[0]} → {told[1]}", *told)
    for name, value in new.items():
        if name not in old:
            yield Change(Kind.ADDED, (*path, name), "new", after=text_of(value))


def _list(path: Path, old: tuple[object, ...], new: tuple[object, ...]) -> Iterator[Change]:
    if old == new:
        return
    before, after = _by_identity(old), _by_identity(new)
    found = list(_entries(path, before, after))
    if not found:
        told = text_of(old), text_of(new)
        found.append(Change(Kind.CHANGED, path, f"{path[-1]} in another order: {told[1]}", *told))
    yield from found


def _by_identity(items: tuple[object, ...]) -> dict[str, object]:
    """List items by name, or by what they are; a repeated one gets a number."""
    found: dict[str, object] = {}
    for item in items:
        name = str(getattr(item, "name", None) or text_of(item))
        key, number = name, 2
        while key in found:
            key, number = f"{name} #{number}", number + 1
        found[key] = item
    return found
