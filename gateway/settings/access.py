"""The types of values about keys, limits and shared state; see `values`."""

import math
import re
from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import BeforeValidator, SecretStr

from gateway.settings.redis_url import read_redis_url
from gateway.settings.units import COUNT_HELP, count_text, parse_count
from gateway.settings.values import RefusedValueError, as_text
from gateway.settings.written import VARIABLE, Written, any_of, matching


def _count_above_zero(value: object) -> int:
    try:
        count = parse_count(value)
    except ValueError as error:
        raise RefusedValueError(f"expected {error}") from None
    if count == 0:
        raise RefusedValueError("expected a count above 0")
    return count


def _number(value: object) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise RefusedValueError("expected a number")
    return number


def parse_instant(value: object) -> float:
    """Unix seconds; a date alone means its first moment, and what has no zone is UTC."""
    if isinstance(value, float) and math.isfinite(value):
        return value
    try:
        when = datetime.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise RefusedValueError("expected a date or a time such as 2027-01-31 or 2027-01-31T18:00:00Z") from None
    return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()


def _key_hash(value: object) -> str:
    text = as_text(value)
    if not re.fullmatch(r"sha256:[0-9a-fA-F]{64}", text):
        raise RefusedValueError(
            "expected sha256: and 64 hexadecimal digits, never the key itself", "turnout keys new NAME makes both"
        )
    return text.lower()


def _key_prefix(value: object) -> str:
    text = as_text(value)
    if not re.fullmatch(r"[A-Za-z0-9._:-]{1,64}", text):
        raise RefusedValueError("expected letters, digits, dots, dashes, colons and underscores, 64 at most")
    return text


def _redis_url(value: object) -> SecretStr:
    """The URL as a secret: it may hold a password."""
    if isinstance(value, SecretStr):
        return value
    text = as_text(value)
    if set(text) == {"*"}:
        return SecretStr(text)  # one that was hidden
    read_redis_url(text)
    return SecretStr(text)


COUNT: Final = Written(
    any_of(
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": r"^\s*[0-9]{1,18}(\.[0-9]{1,9})?\s*[kKmMgG]?\s*$"},
        VARIABLE,
        expected=COUNT_HELP,
    ),
    count_text,
)
NUMBER: Final = Written(
    any_of({"type": "number"}, {"type": "string", "pattern": r"^\s*[-+]?[0-9.eE+-]+\s*$"}, VARIABLE)
)
INSTANT: Final = Written(matching(r"^[0-9]{4}-?[0-9W]", "a date or a time such as 2027-01-31 or 2027-01-31T18:00:00Z"))
HASH: Final = Written(matching(r"^sha256:[0-9a-fA-F]{64}$", "sha256: and 64 hexadecimal digits"))
PREFIX: Final = Written(matching(r"^[A-Za-z0-9._:-]{1,64}$", "letters, digits, dots, dashes, colons, underscores"))
REDIS: Final = Written(
    matching(r"^(rediss?|unix|rediss?\+sentinel|rediss?\+cluster)://\S+$", "a URL such as redis://127.0.0.1:6379/0")
)

PositiveCount = Annotated[int, BeforeValidator(_count_above_zero), COUNT]
Number = Annotated[float, BeforeValidator(_number), NUMBER]
Instant = Annotated[float, BeforeValidator(parse_instant), INSTANT]
KeyHash = Annotated[str, BeforeValidator(_key_hash), HASH]
KeyPrefix = Annotated[str, BeforeValidator(_key_prefix), PREFIX]
RedisUrl = Annotated[SecretStr, BeforeValidator(_redis_url), REDIS]
