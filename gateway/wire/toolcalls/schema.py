"""What a tool's JSON Schema says about an argument, and untyped text turned into JSON by it.

Formats that write arguments as XML carry no types: `5` may be a number or a string. The tool's schema decides
(tool-calls.md sections 1.2 and 7, decision 8); where it is silent, text that is JSON is taken as JSON.
"""

import ast
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from gateway.wire.toolcalls.jsonscan import JsonScanner
from gateway.wire.toolcalls.jsontext import as_value, dumps, quoted

Kinds: TypeAlias = frozenset[str]

ANY: Final[Kinds] = frozenset()
"""Nothing is known about the type."""
STRING: Final[Kinds] = frozenset({"string"})
_ALL: Final = frozenset({"string", "integer", "number", "boolean", "null", "object", "array"})
_SYNONYMS: Final = {
    "str": "string", "text": "string", "char": "string", "enum": "string", "int": "integer", "long": "integer",
    "float": "number", "double": "number", "bool": "boolean", "dict": "object", "list": "array", "none": "null",
}  # fmt: skip
_MAX_DEPTH: Final = 16
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MAX_DIGITS: Final = 4000


def kinds_of(schema: object, root: Mapping[str, object], depth: int = 0) -> Kinds:
    """The JSON types that `schema` allows; `ANY` where it does not say.

    Follows `$ref` within `root`, `anyOf`, `oneOf`, `allOf`, type lists, `enum` and `const`.
    """
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return ANY
    found = _own_kinds(schema, root, depth)
    for branch in _list(schema.get("allOf")):
        kinds = kinds_of(branch, root, depth + 1)
        found = (found & kinds or found) if found and kinds else found or kinds
    if found and schema.get("nullable") is True:
        found |= {"null"}
    return found


def _own_kinds(schema: Mapping[str, object], root: Mapping[str, object], depth: int) -> Kinds:
    if (reference := schema.get("$ref")) is not None:
        return kinds_of(follow(reference, root), root, depth + 1)
    if (declared := schema.get("type")) is not None:
        return _named(declared)
    for union in ("anyOf", "oneOf"):
        if branches := _list(schema.get(union)):
            each = [kinds_of(branch, root, depth + 1) for branch in branches]
            return frozenset().union(*each) if all(each) else ANY
    if "const" in schema:
        return _kinds_of_values([schema["const"]])
    if values := _list(schema.get("enum")):
        return _kinds_of_values(values)
    if "properties" in schema or "additionalProperties" in schema:
        return frozenset({"object"})
    return frozenset({"array"}) if "items" in schema or "prefixItems" in schema else ANY


def _named(declared: object) -> Kinds:
    names = [declared] if isinstance(declared, str) else _list(declared)
    found = {_SYNONYMS.get(name.lower(), name.lower()) for name in names if isinstance(name, str)}
    return frozenset(found & _ALL)


def _kinds_of_values(values: Iterable[object]) -> Kinds:
    return frozenset(kind_of_value(value) for value in values)


def kind_of_value(value: object) -> str:
    """The JSON type of a decoded value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case Mapping():
            return "object"
        case _:
            return "array"


def follow(reference: object, root: Mapping[str, object]) -> object:
    """What a local `$ref` (`#/$defs/Name`) points at; an empty schema if it points nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return {}
    place: object = root
    for step in reference[1:].strip("/").split("/"):
        if not step:
            continue
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(place, Mapping) or name not in place:
            return {}
        place = place[name]
    return place


def resolved(schema: object, root: Mapping[str, object]) -> Mapping[str, object]:
    """`schema` with its own `$ref` followed; an empty one if it is no schema."""
    for _ in range(_MAX_DEPTH):
        if not isinstance(schema, Mapping):
            return {}
        if "$ref" not in schema:
            return schema
        schema = follow(schema["$ref"], root)
    return {}


def member(schema: object, name: str, root: Mapping[str, object], depth: int = 0) -> object:
    """The schema of the property `name` of an object schema; None if nothing is said about it."""
    plain = resolved(schema, root)
    if depth > _MAX_DEPTH:
        return None
    properties = plain.get("properties")
    if isinstance(properties, Mapping) and name in properties:
        return properties[name]
    for union in ("allOf", "anyOf", "oneOf"):
        for branch in _list(plain.get(union)):
            if (found := member(branch, name, root, depth + 1)) is not None:
                return found
    extra = plain.get("additionalProperties")
    return extra if isinstance(extra, Mapping) and extra else None


def element(schema: object, root: Mapping[str, object]) -> object:
    """The schema of the items of an array schema; None if nothing is said."""
    plain = resolved(schema, root)
    if "items" in plain:
        return plain["items"]
    for union in ("anyOf", "oneOf", "allOf"):
        for branch in _list(plain.get(union)):
            if (found := element(branch, root)) is not None:
                return found
    return None


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def coerced(text: str, kinds: Kinds) -> str:
    """`text` as JSON text of one of `kinds`.

    A string wins where it is allowed, unless the text is `null`, an object or an array and that is allowed too. Text
    that fits nothing allowed becomes a string, never invalid JSON.
    """
    bare = text.strip()
    if not kinds:
        return bare if _is_json(bare) else quoted(text)
    if "string" in kinds:
        found = _structured(bare, kinds)
        return quoted(text) if found is None else found
    for kind in ("null", "boolean", "integer", "number"):
        if kind in kinds and (found := _scalar(bare, kind)) is not None:
            return found
    found = _structured(bare, kinds)
    return quoted(text) if found is None else found


def may_need_all(first: str, kinds: Kinds) -> bool:
    """Whether a value that begins with `first` must be seen whole before its JSON can begin."""
    if "string" not in kinds:
        return True
    starts = {"{": "object", "[": "array", "n": "null"}
    return starts.get(first, "") in kinds


def _is_json(text: str) -> bool:
    try:
        as_value(text)
    except ValueError:
        return False
    return True


def _structured(text: str, kinds: Kinds) -> str | None:
    if text == "null" and "null" in kinds:
        return text
    if text[:1] in ('"', "'") and "string" not in kinds:
        return _inside_string(text, kinds)
    if (text[:1] == "{" and "object" in kinds) or (text[:1] in ("[", "(") and "array" in kinds):
        return text if text[0] != "(" and _is_json(text) else _python(text) or _repaired(text)
    return None


def _inside_string(text: str, kinds: Kinds) -> str | None:
    """JSON inside a JSON string, where the schema wants no string."""
    try:
        value = as_value(text)
    except ValueError:
        return None
    if not isinstance(value, str) or value[:1] in ('"', "'"):
        return None
    found = coerced(value, kinds)
    return None if found.startswith('"') else found


def _python(text: str) -> str | None:
    """A Python literal as JSON text; models trained on code write them."""
    try:
        return dumps(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _repaired(text: str) -> str | None:
    """JSON with the mistakes that models make in it (`JsonScanner`), put right."""
    parts: list[str] = []
    scanner = JsonScanner(parts.append, lambda _: None)
    end = scanner.feed(text, 0)
    return "".join(parts) if scanner.done and end == len(text) else None


def _scalar(text: str, kind: str) -> str | None:
    match kind:
        case "null":
            return "null" if text in ("null", "None") else None
        case "boolean":
            return text.lower() if text.lower() in ("true", "false") else None
        case "integer":
            return _integer(text)
        case _:
            return _number(text)


def _integer(text: str) -> str | None:
    if len(text) > _MAX_DIGITS:
        return None
    if _INTEGER.fullmatch(text):
        return str(int(text))
    if not _DECIMAL.fullmatch(text):
        return None
    value = float(text)
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else _number(text)


def _number(text: str) -> str | None:
    if len(text) > _MAX_DIGITS or not _DECIMAL.fullmatch(text):
        return None
    if _is_json(text):
        return text
    if _INTEGER.fullmatch(text):
        return str(int(text))
    value = float(text)
    return repr(value) if math.isfinite(value) else None
