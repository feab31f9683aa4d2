"""What the tree knows about its own keys: which exist where, and an example of each."""

from collections.abc import Iterator
from typing import Annotated, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gateway.settings.launching import chosen
from gateway.settings.problems import Path
from gateway.settings.tree import Settings
from gateway.settings.written import Written


def section_at(path: Path, tree: object = None) -> type[BaseModel] | None:
    """The section that stands at `path`; None where there is a single value, a list, names of one's own, or nothing.

    Which launch settings an engine has depends on its kind, which `tree` (the plain values of the file) tells.
    """
    found = _annotation_at(path, tree)
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def holds_names(path: Path, tree: object = None) -> bool:
    """Whether `path` is a mapping whose keys are names that the user chooses (`engines`, `models`)."""
    return get_origin(_annotation_at(path, tree)) is dict


def field_at(path: Path, tree: object = None) -> FieldInfo | None:
    """The field at `path`, for its description, default and examples."""
    section = section_at(path[:-1], tree) if path else None
    return section.model_fields.get(str(path[-1])) if section else None


def written_of(field: FieldInfo) -> Written | None:
    """How the field's single value is written; None for sections, lists, switches and closed sets of words."""
    found: object = field.annotation
    metadata = list(field.metadata)
    for inner in get_args(found) if get_origin(found) not in (tuple, dict, Annotated) else ():
        if get_origin(inner) is Annotated:
            metadata += get_args(inner)[1:]
    return next((one for one in metadata if isinstance(one, Written)), None)


def example_of(path: Path, tree: object = None) -> str | None:
    """How the value at `path` can look: the field's own example, or its default."""
    field = field_at(path, tree)
    if field is None:
        return None
    if field.examples:
        return f"{path[-1]}: {field.examples[0]}"
    if isinstance(field.default, bool | int | str):
        return f"{path[-1]}: {field.default}"
    return None


def all_keys(section: type[BaseModel] = Settings, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every key of the tree as a path; `*` stands for a name of one's own."""
    for name, field in section.model_fields.items():
        path = (*above, name)
        yield path
        inner, path = _element(field.annotation, path)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from all_keys(inner, path)


def _annotation_at(path: Path, tree: object) -> object:
    found: object = Settings
    for depth, part in enumerate(path, 1):
        if isinstance(found, type) and issubclass(found, BaseModel):
            field = found.model_fields.get(str(part))
            found = field.annotation if field else None
        else:
            found, _ = _element(found, ())
        found = chosen(found, path[:depth], tree)
    return found


def _element(annotation: object, path: tuple[str, ...]) -> tuple[object, tuple[str, ...]]:
    """What a mapping or list holds, and the path with a `*` for it; anything else is itself."""
    match get_origin(annotation), get_args(annotation):
        case (origin, (_, value)) if origin is dict:
            return value, (*path, "*")
        case (origin, (value, _)) if origin is tuple:
            return value, (*path, "*")
        case _:
            return (annotation, path) if path else (None, path)
