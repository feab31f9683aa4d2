"""One model of a repository, as its rules see it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from engines.lint.finding import At
from engines.lint.places import fields_of
from engines.lint.triton_config import ModelConfig

CONFIG: Final = "config.pbtxt"
_VERSION: Final = re.compile(r"0|[1-9][0-9]*")
_MEANT: Final = re.compile(r"[vV]?[0-9]+(\.[0-9]+)*")


@dataclass(frozen=True)
class ModelFiles:
    """A model's folder: its name, and its files by their paths within; an empty folder's path ends in a slash."""

    name: str
    files: Mapping[str, bytes]

    @cached_property
    def folders(self) -> tuple[str, ...]:
        """The folders directly within."""
        return tuple(sorted({path.partition("/")[0] for path in self.files if "/" in path}))

    @cached_property
    def versions(self) -> tuple[int, ...]:
        """The versions that Triton sees: folders named by a number without zeros before it."""
        return tuple(sorted(int(folder) for folder in self.folders if _VERSION.fullmatch(folder)))

    @cached_property
    def misnamed(self) -> tuple[str, ...]:
        """Folders that were meant as versions, and are none."""
        return tuple(one for one in self.folders if _MEANT.fullmatch(one) and not _VERSION.fullmatch(one))

    def text(self, path: str) -> str | None:
        """A file's text; None if there is none. Bytes that are no UTF-8 are replaced."""
        given = self.files.get(path)
        return None if given is None else given.decode("utf-8-sig", errors="replace")

    def at(self, path: str, line: int = 1) -> At:
        """A place in one of its files."""
        return At(f"{self.name}/{path}", line)

    @cached_property
    def _lines(self) -> dict[tuple[str, ...], int]:
        return fields_of(self.text(CONFIG) or "")

    def at_field(self, *path: str) -> At:
        """The place of a field of its configuration; the first line if it is not written there."""
        return self.at(CONFIG, self._lines.get(path, 1))


@dataclass(frozen=True, slots=True)
class Configured:
    """A model with a configuration that could be read."""

    model: ModelFiles
    config: ModelConfig

    @property
    def instances(self) -> int:
        """How many instances it asks for."""
        return sum(group.count or 1 for group in self.config.instance_group) or 1

    @property
    def served(self) -> tuple[int, ...]:
        """The versions that are served: those of the policy, else the latest."""
        policy = self.config.version_policy
        if policy is None:
            return self.model.versions[-1:]
        if policy.specific is None:
            return self.model.versions
        return tuple(version for version in policy.specific.versions if version in self.model.versions)
