"""The reference of the configuration file: every key with its meaning and its default, as commented YAML.

Prose stands after `# `, a key that is not in force after a bare `#`. What is in force is the least that a file needs.
"""

import textwrap
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Final, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gateway.settings.json_schema import described
from gateway.settings.launching import LaunchOfKind, sections
from gateway.settings.schema import written_of
from gateway.settings.tree import Settings
from gateway.settings.written import text_of

COMMAND: Final = "turnout check --reference"
SCHEMA_LINE: Final = "# yaml-language-server: $schema={}"
"""Tells editors where the JSON Schema of a YAML file is: a path from the file's folder."""

_WIDTH: Final = 120
_NAMES: Final = {"engines": "qwen", "models": "chat"}
"""What the entries of a mapping are called here."""
_IN_FORCE: Final = frozenset({("engines",), ("models",), ("models", "*", "engine")})
"""Beside required keys and the top: what a file cannot do without."""

_HEAD: Final = f"""\
{SCHEMA_LINE.format("turnout.schema.json")}
# Every key of Turnout's configuration, with its meaning and its default, or an example where there is none.
# Written by `{COMMAND}`; not to be edited. A file to start from is turnout.yaml beside it.
#
# Durations: 500ms, 10s, 15m, 1h; a bare number means seconds. Sizes: 64MiB, 1GB. Shares: 20%. ${{NAME}} and
# ${{NAME:-default}} stand for environment variables anywhere; secrets may also be file:/run/secrets/x.
# Every key can be set from the environment: TURNOUT_SERVER__PORT=9090 sets server.port.
"""


def reference_text() -> str:
    """The file `config/turnout.reference.yaml`."""
    lines = [_HEAD.rstrip("\n")]
    for name, field in Settings.model_fields.items():
        lines += ["", *_field(name, field, (), live=True)]
    return "\n".join(lines) + "\n"


def _field(name: str, field: FieldInfo, above: tuple[str, ...], *, live: bool) -> Iterator[str]:
    """The lines of one key, prose first; `live`: what is around it is in force."""
    path = (*above, name)
    inner = _inside(field.annotation)
    plain = inner is not None and _is_plain(field) and field.default is not None
    live = live and (field.is_required() or path in _IN_FORCE or plain)
    mark = "" if live else "#"
    yield from _prose(field)
    if inner is None:
        yield f"{mark}{name}: {_shown(path, field)}"
        return
    yield f"{mark}{name}:"
    kind = get_origin(field.annotation)
    if kind is tuple:
        yield from _indented(_as_item(list(_section(inner, (*path, "*"), live=False))))
    elif kind is dict:
        yield f"  {mark}{_NAMES.get(name, 'name')}:"
        yield from _indented(_section(inner, (*path, "*"), live=live), 4)
    else:
        yield from _indented(_section(inner, path, live=live))


def _is_plain(field: FieldInfo) -> bool:
    """Whether the field is one section, which may be written down without any key in it."""
    return get_origin(field.annotation) not in (tuple, dict)


def _section(section: type[BaseModel], path: tuple[str, ...], *, live: bool) -> Iterator[str]:
    for name, field in section.model_fields.items():
        yield from _field(name, field, path, live=live)


def _as_item(lines: list[str]) -> Iterator[str]:
    """The lines of a section as the first item of a list that is not in force."""
    first = next(index for index, line in enumerate(lines) if line.startswith("#") and not line.startswith("# "))
    for index, line in enumerate(lines):
        if index == first:
            yield f"#- {line[1:]}"
        else:
            yield f"  {line}"


def _indented(lines: Iterator[str], by: int = 2) -> Iterator[str]:
    return (" " * by + line for line in lines)


def _prose(field: FieldInfo) -> Iterator[str]:
    text = described(field)
    if choices := _choices(field.annotation):
        text += f" ({' | '.join(choices)})"
    elif field.examples and field.annotation is not bool and not field.is_required() and field.default:
        text += f"; e.g. {field.examples[0]}"
    for line in textwrap.wrap(text, _WIDTH - 16):
        yield f"# {line}"


def _shown(path: tuple[str, ...], field: FieldInfo) -> str:
    """The default, or an example where there is none."""
    if not field.is_required() and field.default not in (None, (), {}):
        written = written_of(field)
        return text_of(field.default, written.text if written else None)
    if field.examples:
        return str(field.examples[0])
    if choices := _choices(field.annotation):
        return choices[0]
    if not field.is_required() and field.default == ():
        return "[]"
    raise LookupError(f"{'.'.join(path)} has no default: give its field an example")


def _choices(annotation: object) -> list[str]:
    match get_origin(annotation):
        case origin if origin is Literal:
            return [str(word) for word in get_args(annotation)]
        case origin if origin is tuple:
            return _choices(get_args(annotation)[0])
        case _ if isinstance(annotation, type) and issubclass(annotation, Enum):
            return [str(word.value) for word in annotation]
        case _:
            return []


def _inside(annotation: object) -> type[BaseModel] | None:
    """The section that a field holds: itself, as an item, under a name, or unless it is left out."""
    if annotation is LaunchOfKind:
        return sections(annotation)[0]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) is Annotated:
        return _inside(get_args(annotation)[0])
    return next((found for inner in get_args(annotation) if (found := _inside(inner)) is not None), None)
