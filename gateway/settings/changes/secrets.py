"""Secrets that are stars on the old side: whether they differ cannot be told, so it has to be said."""

from collections.abc import Iterator

from pydantic import BaseModel, SecretStr

from gateway.settings.problems import Path, dotted


def uncompared(old: BaseModel, new: BaseModel) -> tuple[str, ...]:
    """The keys of secrets that both have, and of which the old one is only stars."""
    return tuple(dotted(path) for path in _hidden((), old, new))


def _hidden(path: Path, old: object, new: object) -> Iterator[Path]:
    if isinstance(old, BaseModel) and isinstance(new, BaseModel):
        for name in type(new).model_fields:
            yield from _hidden((*path, name), getattr(old, name, None), getattr(new, name))
    elif isinstance(old, dict) and isinstance(new, dict):
        for name in [one for one in new if one in old]:
            yield from _hidden((*path, name), old[name], new[name])
    elif _text(new) and set(_text(old)) == {"*"}:
        yield path


def _text(value: object) -> str:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return value if isinstance(value, str) else ""
