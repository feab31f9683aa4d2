"""A command line as data: words, some of which are secrets or paths that are known only where it runs."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from engines.launch.flags.table import FlagTable
from engines.launch.values import Option


@dataclass(frozen=True, slots=True)
class SecretFile:
    """What stands in a file; the text itself is never part of what is printed."""

    path: str

    @property
    def name(self) -> str:
        """What it is called where secrets have names: the file's, in lower case, without odd characters."""
        base = self.path.rstrip("/").rpartition("/")[2].lower()
        return "".join(char if char.isalnum() else "-" for char in base).strip("-") or "secret"

    @property
    def variable(self) -> str:
        """The environment variable that holds it where it cannot stand on the command line."""
        return self.name.replace("-", "_").upper()


@dataclass(frozen=True, slots=True)
class SettingsPath:
    """The path of the file of further settings, wherever it is put."""


Word: TypeAlias = str | SecretFile | SettingsPath


@dataclass(frozen=True, slots=True)
class Command:
    """What starts an engine: its words, the environment it needs, and the members of its settings file, if any."""

    words: tuple[Word, ...]
    environment: Mapping[str, Word] = field(default_factory=dict)
    settings: Mapping[str, object] | None = None

    @property
    def secrets(self) -> tuple[SecretFile, ...]:
        """Every secret that it needs, once."""
        found = [word for word in (*self.words, *self.environment.values()) if isinstance(word, SecretFile)]
        return tuple(dict.fromkeys(found))


def option_of(info: FieldInfo) -> Option | None:
    """How a field reaches the engine."""
    return next((one for one in info.metadata if isinstance(one, Option)), None)


def flag_words(section: BaseModel, table: FlagTable, without: Collection[str] = ()) -> Iterator[str]:
    """The flags of all fields that have one and are set, in the order of the fields.

    A switch that is off is left out where the program has no flag that says so.
    """
    for name, info in type(section).model_fields.items():
        option, value = option_of(info), getattr(section, name)
        if option is None or not option.flag or name in without or value in (None, ()):
            continue
        yield from _words(table, option.flag, value)


def members_of(section: BaseModel, without: Collection[str] = ()) -> dict[str, object]:
    """The members of a settings file: all fields that have one, are set, and are not in `without`."""
    tree: dict[str, object] = {}
    for name, info in type(section).model_fields.items():
        option, value = option_of(info), getattr(section, name)
        if option is not None and option.member and name not in without and value not in (None, (), {}):
            put(tree, option.member, list(value) if isinstance(value, tuple) else value)
    return tree


def put(tree: dict[str, object], member: str, value: object) -> None:
    """Sets a member; `a.b` is b within a."""
    name, _, rest = member.partition(".")
    if not rest:
        tree[name] = value
        return
    inner = tree.setdefault(name, {})
    if isinstance(inner, dict):
        put(inner, rest, value)


def json_text(value: object) -> str:
    """JSON in one line."""
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def _words(table: FlagTable, flag: str, value: object) -> Iterator[str]:
    match value:
        case True:
            yield flag
        case False:
            negative = f"--no-{flag.removeprefix('--')}"
            yield from [negative] if negative in table.by_name else []
        case tuple():
            yield flag
            yield from map(str, value)
        case float():
            yield from (flag, f"{value:g}")
        case -1:  # a context length, see engines/launch/values.py
            yield from (flag, "auto")
        case _:
            yield from (flag, str(value))
