"""The JSON Schema of the configuration file, for editors: made from the settings tree and its descriptions."""

import json
from collections.abc import Iterable
from enum import Enum
from typing import Annotated, Final, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gateway.settings.engines import Engine
from gateway.settings.launching import LaunchOfKind, launches, sections
from gateway.settings.schema import written_of
from gateway.settings.tree import Settings
from gateway.settings.written import SWITCH, Schema, Written, any_of, one_of

DIALECT: Final = "http://json-schema.org/draft-07/schema#"
"""The newest that all editors know."""

COMMAND: Final = "turnout check --schema"


def json_schema() -> Schema:
    """The whole file's schema, self-contained: no references, no definitions."""
    about = {
        "$schema": DIALECT,
        "$comment": f"Written by `{COMMAND}`; not to be edited.",
        "title": "Turnout's configuration",
    }
    return {**about, **_section(Settings), "description": "One YAML file: where models run, and what clients ask for."}


def json_schema_text() -> str:
    """The schema as the file `config/turnout.schema.json` has it."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def described(field: FieldInfo) -> str:
    """What a field is for: its description, or that of the section it holds."""
    section = field.annotation
    if field.description is None and isinstance(section, type) and issubclass(section, BaseModel):
        return first_sentences(section)
    return field.description or ""


def first_sentences(section: type[BaseModel]) -> str:
    """The first paragraph of a section's docstring, in one line."""
    return " ".join((section.__doc__ or "").partition("\n\n")[0].split())


def _section(section: type[BaseModel]) -> Schema:
    required = [name for name, field in section.model_fields.items() if field.is_required()]
    return {
        "type": "object",
        "description": first_sentences(section),
        "additionalProperties": False,
        "properties": {name: _field(field) for name, field in section.model_fields.items()},
        **({"required": required} if required else {}),
        **(_by_kind() if section is Engine else {}),
    }


def _by_kind() -> Schema:
    """An engine's launch settings are those of its kind."""
    return {
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind.value}}, "required": ["kind"]},
                "then": {"properties": {"launch": _or_nothing(_section(launch))}},
            }
            for kind, launch in launches().items()
        ]
    }


def _field(field: FieldInfo) -> Schema:
    schema = _schema(field.annotation, field.metadata)
    if not field.is_required():
        schema = _or_nothing(schema)
    told: Schema = {"description": described(field)} if described(field) else {}
    if not field.is_required() and field.default not in (None, (), {}) and not isinstance(field.default, BaseModel):
        told["default"] = _default(field)
    return {**schema, **told}


def _default(field: FieldInfo) -> object:
    written = written_of(field)
    if written is not None and written.text is not None:
        return written.text(field.default)
    return json.loads(json.dumps(field.default, default=str))


def _or_nothing(schema: Schema) -> Schema:
    """A key without a value counts as left out."""
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    choices = schema.get("anyOf")
    if isinstance(choices, list):
        return {**schema, "anyOf": [*choices, {"type": "null"}]}
    return any_of(schema, {"type": "null"})


def _schema(annotation: object, metadata: Iterable[object] = ()) -> Schema:
    written = next((one for one in metadata if isinstance(one, Written)), None)
    if written is not None and get_origin(annotation) is not tuple:
        return dict(written.schema)
    found = _known(annotation) or {}
    return {**found, **written.schema} if written is not None else found


def _known(annotation: object) -> Schema | None:
    """The schema of what is made of other types, or of a closed set of words; None for a single value."""
    arguments = get_args(annotation)
    match get_origin(annotation):
        case origin if origin is Annotated:
            return _schema(arguments[0], arguments[1:])
        case origin if origin is Literal:
            return one_of(arguments)
        case origin if origin is tuple:
            return {"type": "array", "items": _schema(arguments[0])}
        case origin if origin is dict:
            return {"type": "object", "additionalProperties": _schema(arguments[1])}
        case None if annotation is LaunchOfKind:
            return {"anyOf": [{"type": "object"}]}  # which one it is depends on the kind: see _by_kind
        case None if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return _section(annotation)
        case None if isinstance(annotation, type) and issubclass(annotation, Enum):
            return one_of(str(word.value) for word in annotation)
        case None if annotation is bool:
            return SWITCH
        case None:
            return None
        case _ if len(sections(annotation)) > 1:
            return any_of(*map(_section, sections(annotation)))
        case _ if type(None) in arguments:
            return _schema(next(one for one in arguments if one is not type(None)))
        case _:
            return None
