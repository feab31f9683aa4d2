"""Request validation as data: the part of pydantic's behaviour that the three frontends show to their clients."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, TypeAlias

import msgspec

Location: TypeAlias = tuple[str | int, ...]
Body: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Issue:
    """One validation error, with pydantic's names."""

    type: str
    loc: Location
    msg: str
    input: object
    ctx: Mapping[str, object] | None = None

    def as_dict(self) -> dict[str, object]:
        """The form in which frameworks show it."""
        shown: dict[str, object] = {"type": self.type, "loc": self.loc, "msg": self.msg, "input": self.input}
        if self.ctx is not None:
            shown["ctx"] = dict(self.ctx)
        return shown


class Kind(Enum):
    """The type of a member."""

    TEXT = auto()
    WHOLE = auto()
    NUMBER = auto()
    FLAG = auto()
    LIST = auto()
    OBJECT = auto()
    ANY = auto()


@dataclass(frozen=True, slots=True)
class Field:
    """What a member may hold."""

    kind: Kind = Kind.ANY
    required: bool = False
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    choice_error: str = "literal_error"
    at_least: int = 0
    members: "Schema | None" = None
    """Of an object, or of each object in a list."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The members of an object. A closed one refuses others; `name` stands in the errors of list items."""

    fields: Mapping[str, Field] = field(default_factory=dict)
    closed: bool = False


class Refused(Exception):
    """A body that is not the JSON object it should be; carries the one issue."""

    def __init__(self, issue: Issue) -> None:
        super().__init__(issue.msg)
        self.issue = issue


class Unreadable(Exception):
    """The bytes of the body are not text."""


def read_object(raw: bytes) -> Body:
    """The request's JSON object. Raises `Refused` or `Unreadable`."""
    if not raw:
        raise Refused(Issue("missing", ("body",), "Field required", None))
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        value = _read_slowly(raw)
    if not isinstance(value, dict):
        message = "Input should be a valid dictionary or object to extract fields from"
        raise Refused(Issue("model_attributes_type", ("body",), message, value))
    return value


def _read_slowly(raw: bytes) -> object:
    """Python's own reader: takes NaN, a byte order mark and lone surrogates, and gives the recorded errors."""
    try:
        return json.loads(raw)
    except json.JSONDecodeError as error:
        context = {"error": error.msg}
        raise Refused(Issue("json_invalid", ("body", error.pos), "JSON decode error", {}, context)) from error
    except (UnicodeDecodeError, ValueError) as error:
        raise Unreadable from error


def check(schema: Schema, body: Mapping[str, Any], loc: Location = ("body",)) -> tuple[Body, list[Issue]]:
    """The body with its values converted as pydantic converts them, and what is wrong with it.

    The order is pydantic's: known members as they are declared, then unknown ones.
    """
    out = dict(body)
    issues: list[Issue] = []
    for name, wanted in schema.fields.items():
        here = (*loc, name)
        if name not in body:
            if wanted.required:
                issues.append(Issue("missing", here, "Field required", dict(body)))
            continue
        value = body[name]
        if value is None and not wanted.required:
            continue
        converted, found = _value(wanted, value, here)
        out[name] = converted
        issues.extend(found)
    if schema.closed:
        extra = "Extra inputs are not permitted"
        issues.extend(
            Issue("extra_forbidden", (*loc, name), extra, body[name]) for name in body if name not in schema.fields
        )
    return out, issues


def _value(wanted: Field, value: Any, loc: Location) -> tuple[object, list[Issue]]:  # noqa: ANN401 - any JSON value
    converted, issue = _CONVERT[wanted.kind](value, loc)
    if issue is not None:
        return value, [issue]
    issues = list(_limits(wanted, converted, value, loc))
    if wanted.members is not None and isinstance(converted, dict):
        converted, inner = check(wanted.members, converted, loc)
        issues.extend(inner)
    elif wanted.members is not None and isinstance(converted, list):
        converted, inner = _items(wanted.members, converted, loc)
        issues.extend(inner)
    return converted, issues


def _items(schema: Schema, values: Sequence[object], loc: Location) -> tuple[list[object], list[Issue]]:
    out: list[object] = []
    issues: list[Issue] = []
    for index, value in enumerate(values):
        converted, found = _value(Field(Kind.OBJECT, members=schema), value, (*loc, index))
        out.append(converted)
        issues.extend(found)
    return out, issues


def _limits(wanted: Field, converted: object, given: object, loc: Location) -> Iterator[Issue]:
    if wanted.choices and converted not in wanted.choices:
        quoted = [f"'{choice}'" for choice in wanted.choices]
        expected = quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
        yield Issue(wanted.choice_error, loc, f"Input should be {expected}", given, {"expected": expected})
    if isinstance(converted, int | float) and not isinstance(converted, bool):
        if wanted.low is not None and converted < wanted.low:
            message = f"Input should be greater than or equal to {wanted.low:g}"
            yield Issue("greater_than_equal", loc, message, given, {"ge": float(wanted.low)})
        if wanted.high is not None and converted > wanted.high:
            message = f"Input should be less than or equal to {wanted.high:g}"
            yield Issue("less_than_equal", loc, message, given, {"le": float(wanted.high)})
    if isinstance(converted, list | str) and len(converted) < wanted.at_least:
        kind = "List" if isinstance(converted, list) else "Value"
        plural = "item" if wanted.at_least == 1 else "items"
        message = f"{kind} should have at least {wanted.at_least} {plural} after validation, not {len(converted)}"
        context = {"field_type": kind, "min_length": wanted.at_least, "actual_length": len(converted)}
        yield Issue("too_short", loc, message, given, context)


_Converted: TypeAlias = tuple[object, Issue | None]


def _text(value: Any, loc: Location) -> _Converted:  # noqa: ANN401
    if isinstance(value, str):
        return value, None
    return value, Issue("string_type", loc, "Input should be a valid string", value)


def _whole(value: Any, loc: Location) -> _Converted:  # noqa: ANN401
    if isinstance(value, bool | int):
        return int(value), None
    if isinstance(value, float):
        if value.is_integer():
            return int(value), None
        message = "Input should be a valid integer, got a number with a fractional part"
        return value, Issue("int_from_float", loc, message, value)
    if isinstance(value, str):
        try:
            return int(value), None
        except ValueError:
            message = "Input should be a valid integer, unable to parse string as an integer"
            return value, Issue("int_parsing", loc, message, value)
    return value, Issue("int_type", loc, "Input should be a valid integer", value)


def _number(value: Any, loc: Location) -> _Converted:  # noqa: ANN401
    if isinstance(value, int | float):
        return float(value), None
    if isinstance(value, str):
        try:
            return float(value), None
        except ValueError:
            message = "Input should be a valid number, unable to parse string as a number"
            return value, Issue("float_parsing", loc, message, value)
    return value, Issue("float_type", loc, "Input should be a valid number", value)


_YES = ("true", "t", "yes", "y", "on", "1")
_NO = ("false", "f", "no", "n", "off", "0")


def _flag(value: Any, loc: Location) -> _Converted:  # noqa: ANN401
    if isinstance(value, bool):
        return value, None
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value), None
    if isinstance(value, str) and value.lower() in (*_YES, *_NO):
        return value.lower() in _YES, None
    if isinstance(value, str | int | float):
        message = "Input should be a valid boolean, unable to interpret input"
        return value, Issue("bool_parsing", loc, message, value)
    return value, Issue("bool_type", loc, "Input should be a valid boolean", value)


def _list(value: Any, loc: Location) -> _Converted:  # noqa: ANN401
    if isinstance(value, list):
        return value, None
    return value, Issue("list_type", loc, "Input should be a valid list", value)


def _object(value: Any, loc: Location) -> _Converted:  # noqa: ANN401
    if isinstance(value, dict):
        return value, None
    message = "Input should be a valid dictionary or object to extract fields from"
    return value, Issue("model_attributes_type", loc, message, value)


def _any(value: Any, loc: Location) -> _Converted:  # noqa: ANN401, ARG001
    return value, None


_CONVERT: Mapping[Kind, Callable[[Any, Location], _Converted]] = {
    Kind.TEXT: _text,
    Kind.WHOLE: _whole,
    Kind.NUMBER: _number,
    Kind.FLAG: _flag,
    Kind.LIST: _list,
    Kind.OBJECT: _object,
    Kind.ANY: _any,
}


def is_finite(value: object) -> bool:
    """False for NaN and the infinities."""
    return not isinstance(value, float) or math.isfinite(value)
