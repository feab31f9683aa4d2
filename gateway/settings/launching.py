"""Settings whose keys depend on a word beside or inside them: launch settings, and models of a Triton repository."""

from collections.abc import Mapping
from typing import Annotated, Final, get_args, get_origin

from pydantic import BaseModel, ValidationInfo
from pydantic_core import CoreSchema
from pydantic_core.core_schema import with_info_plain_validator_function

from engines.launch.kinds import LAUNCHES, AnyLaunch
from engines.launch.triton import TrtllmModel, VllmModel
from engines.profile import EngineKind
from gateway.settings.problems import Path

_BACKENDS: Final[Mapping[str, type[BaseModel]]] = {"vllm": VllmModel, "tensorrtllm": TrtllmModel}
_KINDS: Final[Mapping[str, type[BaseModel]]] = {kind.value: section for kind, section in LAUNCHES.items()}


class OfItsKind:
    """Marks launch settings: those of the kind that stands beside them. Pydantic's own way would be to try all."""

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> CoreSchema:
        """What validates them; how they are written out, each of them knows."""
        del source, handler
        return with_info_plain_validator_function(_launch_of)


def _launch_of(given: object, info: ValidationInfo) -> AnyLaunch | None:
    """The launch settings of the kind that stands beside them; None where there are none, or no valid kind."""
    kind = info.data.get("kind")
    if given is None or not isinstance(kind, EngineKind):
        return None
    return LAUNCHES[kind].model_validate(given)


def chosen(annotation: object, path: Path, tree: object) -> object:
    """The one section of several that stands at `path` of `tree`; any other annotation as it is."""
    if get_origin(annotation) is Annotated:
        return chosen(get_args(annotation)[0], path, tree)
    if len(sections(annotation)) < 2:
        return annotation
    here = value_at(tree, path)
    word = value_at(here, ("backend",)) or value_at(tree, (*path[:-1], "kind"))
    table = _BACKENDS if sections(annotation) == list(_BACKENDS.values()) else _KINDS
    return table.get(str(word), annotation)


def sections(annotation: object) -> list[type[BaseModel]]:
    """The sections among which an annotation lets one choose; a single one is none of several."""
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
