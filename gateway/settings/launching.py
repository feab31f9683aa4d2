"""Settings whose keys depend on a word beside or inside them: launch settings, and models of a Triton repository.

Most gateways start no engine, so that launch settings are loaded when the first ones are met.
"""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, TypeAlias, get_args, get_origin

from pydantic import BaseModel, ValidationInfo
from pydantic_core import CoreSchema
from pydantic_core.core_schema import with_info_plain_validator_function

from engines.profile import EngineKind
from gateway.settings.problems import Path

if TYPE_CHECKING:
    from engines.launch.kinds import AnyLaunch


class LaunchOfKind:
    """Stands for launch settings in an engine's section: those of the kind that stands beside them."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        """What validates them; how they are written out, each of them knows."""
        del source, handler
        return with_info_plain_validator_function(_launch_of)


if TYPE_CHECKING:
    Launch: TypeAlias = AnyLaunch | None
else:
    Launch = LaunchOfKind


def launches() -> "Mapping[EngineKind, type[AnyLaunch]]":
    """The launch settings of each kind."""
    table: Mapping[EngineKind, type[AnyLaunch]] = importlib.import_module("engines.launch.kinds").LAUNCHES
    return table


def _launch_of(given: object, info: ValidationInfo) -> "AnyLaunch | None":
    """The launch settings of the kind that stands beside them; None where there are none, or no valid kind."""
    kind = info.data.get("kind")
    if given is None or not isinstance(kind, EngineKind):
        return None
    return launches()[kind].model_validate(given)


def chosen(annotation: object, path: Path, tree: object) -> object:
    """The one section of several that stands at `path` of `tree`; any other annotation as it is."""
    if get_origin(annotation) is Annotated:
        return chosen(get_args(annotation)[0], path, tree)
    several = sections(annotation)
    if annotation is LaunchOfKind:
        kind = value_at(tree, (*path[:-1], "kind"))
        return next((section for known, section in launches().items() if known.value == kind), annotation)
    if len(several) < 2:
        return annotation
    backend = value_at(value_at(tree, path), ("backend",))
    return next((section for section in several if backend in _words(section)), annotation)


def _words(section: type[BaseModel]) -> tuple[object, ...]:
    """What `backend` may be in a model of a Triton repository."""
    field = section.model_fields.get("backend")
    return get_args(field.annotation) if field is not None else ()


def sections(annotation: object) -> list[type[BaseModel]]:
    """The sections among which an annotation lets one choose; a single one is none of several."""
    if annotation is LaunchOfKind:
        return list(launches().values())
    return [one for one in get_args(annotation) if isinstance(one, type) and issubclass(one, BaseModel)]


def value_at(tree: object, path: Path) -> object:
    """What a tree of plain values has at a path; None where it has nothing."""
    for part in path:
        if isinstance(tree, Mapping):
            tree = tree.get(part)
        elif isinstance(tree, list) and isinstance(part, int) and part < len(tree):
            tree = tree[part]
        else:
            return None
    return tree
