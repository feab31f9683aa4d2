"""How a value is written in the file: what editors may accept there, as JSON Schema, and how people read it.

What `check` accepts, the schema accepts; the schema may accept more, since rules between keys are not its business. The
patterns keep to what JavaScript's regular expressions share with Python's, because editors read them.
"""

import json
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from pydantic import BaseModel, SecretStr

from engines.written import VARIABLE, Schema, Written, any_of, matching, one_of, whole
from gateway.settings.units import (
    DURATION_HELP,
    SHARE_HELP,
    SIZE_HELP,
    duration_text,
    share_text,
    size_text,
)

__all__ = [
    "AT_LEAST_ONE",
    "DURATION",
    "HEADER",
    "NAME",
    "ORIGIN",
    "PATH",
    "POSITIVE_DURATION",
    "POSITIVE_NUMBER",
    "POSITIVE_SIZE",
    "SECRET",
    "SHARE",
    "SOME",
    "SWITCH",
    "URL",
    "VARIABLE",
    "Schema",
    "Written",
    "any_of",
    "matching",
    "one_of",
    "text_of",
    "whole",
]

_NUMBER: Final = r"[0-9]{1,18}(\.[0-9]{1,9})?"
_NAME: Final = r"^\S(.*\S)?$"


def _amount(number: Mapping[str, object], pattern: str, expected: str) -> Schema:
    return any_of(number, {"type": "string", "pattern": rf"^\s*{pattern}\s*$"}, VARIABLE, expected=expected)


_PARTS: Final = rf"({_NUMBER}|({_NUMBER}\s*(ms|s|m|h|d)\s*)+)"
_BYTES: Final = rf"{_NUMBER}\s*([kKmMgGtT]?[iI]?[bB])?"

DURATION: Final = Written(_amount({"type": "number", "minimum": 0}, _PARTS, DURATION_HELP), duration_text)
POSITIVE_DURATION: Final = Written(
    _amount({"type": "number", "exclusiveMinimum": 0}, _PARTS, DURATION_HELP), duration_text
)
POSITIVE_SIZE: Final = Written(_amount({"type": "integer", "minimum": 1}, _BYTES, SIZE_HELP), size_text)
SHARE: Final = Written(
    _amount({"type": "number", "minimum": 0, "maximum": 1}, rf"{_NUMBER}\s*%?", SHARE_HELP), share_text
)
POSITIVE_NUMBER: Final = Written(
    any_of({"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": r"^\s*[0-9.eE+]+\s*$"}, VARIABLE)
)
AT_LEAST_ONE: Final = Written(
    any_of({"type": "number", "minimum": 1}, {"type": "string", "pattern": r"^\s*[0-9.eE+]+\s*$"}, VARIABLE)
)
NAME: Final = Written({"type": "string", "pattern": _NAME})
HEADER: Final = Written(matching(r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$", "the name of a header"))
PATH: Final = Written(matching(r"^/[!-~]*$", "a path that begins with a slash, such as /health"))
ORIGIN: Final = Written(matching(r"^(\*|https?://[^/?#@\s]+)$", "an origin such as https://chat.example.org, or *"))
SERVER_URL: Final = Written(matching(r"^https?://[^/?#@\s]+(/[^?#\s]*)?$", "a URL such as http://127.0.0.1:8000"))
HOST_PORT: Final = Written(matching(r"^[^/?#@\s]+:[0-9]{1,5}$", "host:port, such as 127.0.0.1:8001"))
URL: Final = Written(matching(r"^(dns\+)?https?://[^/?#@\s]+(/[^?#\s]*)?$", "a URL such as http://127.0.0.1:8000"))
SECRET: Final = Written(
    any_of(
        {"type": "string", "pattern": "^file:/"},
        {"type": "string", "pattern": "^[!-~]*$"},
        VARIABLE,
        expected="${VARIABLE}, file:/run/secrets/x, or a text without blanks",
    )
)
SOME: Final = Written({"minItems": 1})
SWITCH: Final = any_of(
    {"type": "boolean"},
    {
        "type": "string",
        "pattern": "^([Tt]rue|TRUE|[Ff]alse|FALSE|[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF|[yYnNtTfF01])$",
    },
    VARIABLE,
    expected="true or false",
)


def text_of(value: object, show: Callable[[object], str] | None = None) -> str:
    """A value as YAML has it in one line, with units; secrets are stars."""
    if show is not None and value is not None:
        return show(value)
    match value:
        case SecretStr():
            return "********"
        case BaseModel():
            return text_of(value.model_dump(exclude_defaults=True))
        case Enum():
            return str(value.value)
        case bool():
            return "true" if value else "false"
        case tuple() | list():
            return f"[{', '.join(map(text_of, value))}]"
        case dict():
            return f"{{{', '.join(f'{key}: {text_of(one)}' for key, one in value.items())}}}"
        case float() if value == int(value):
            return str(int(value))
        case str() if not value or value != value.strip() or set(value) & set("#,[]{}\"'&*!|>%@`") or ": " in value:
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)
