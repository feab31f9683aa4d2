"""The types of single launch settings: what each accepts, as pydantic annotations, and how it is written.

Whole numbers may be written as vLLM's command line takes them: `8k` is 8000, `8K` is 8192. Every rejection says what is
expected, never what was given.
"""

import math
import re
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BeforeValidator

from engines.section import UnfitValueError
from engines.written import VARIABLE, Written, any_of, matching, one_of, whole

_DECIMAL: Final = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY: Final = {name.upper(): 2 ** (10 * power) for power, name in enumerate(_DECIMAL, 1)}
_UNITS: Final = _DECIMAL | _BINARY
_AMOUNT: Final = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,6}))?\s*([kKmMgGtT]?)(iB|B)?")
_COUNT_HELP: Final = "a whole number such as 8192, 8k (8000) or 8K (8192)"
_BYTES_HELP: Final = "a number of bytes such as 4GiB, 4GB or 4G (4 x 1024 x 1024 x 1024)"
_AUTO: Final = -1


@dataclass(frozen=True, slots=True)
class Option:
    """How a setting reaches the engine, and what is known about it; metadata of a field.

    `flag` stands on the command line, `variable` in the environment, `member` in a file of settings (dots go deeper).
    `default` is what the engine does without it, in words; `since` the first version that has it, if not all have.
    """

    flag: str = ""
    variable: str = ""
    member: str = ""
    default: str = ""
    unit: str = ""
    bounds: str = ""
    source: str = ""
    since: str = ""


def _count(value: object) -> int:
    number = _amount(value, in_bytes=False)
    if number is None or number < 1:
        raise UnfitValueError(f"expected {_COUNT_HELP}")
    return number


def _context(value: object) -> int:
    if value == _AUTO or (isinstance(value, str) and value.strip().lower() in {"auto", "-1"}):
        return _AUTO
    number = _amount(value, in_bytes=False)
    if number is None or number < 1:
        raise UnfitValueError(f"expected {_COUNT_HELP}, or auto")
    return number


def _bytes(value: object) -> int:
    number = _amount(value, in_bytes=True)
    if number is None or number < 1:
        raise UnfitValueError(f"expected {_BYTES_HELP}")
    return number


def _amount(value: object, *, in_bytes: bool) -> int | None:
    """`4k`, `4K`, and among bytes `4kB`, `4KiB`: a B alone makes the unit decimal, as people write it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or (match[4] and not in_bytes) or (match[4] == "iB" and not match[3]):
        return None
    unit = {"iB": match[3].upper(), "B": match[3].lower()}.get(match[4] or "", match[3])
    fraction = match[2] or ""
    amount, rest = divmod(int(match[1] + fraction) * _UNITS.get(unit, 1), int("1" + "0" * len(fraction)))
    return None if rest else amount


def _from(least: int, most: int | None = None) -> BeforeValidator:
    wanted = f"from {least} to {most}" if most is not None else f"of at least {least}"

    def check(value: object) -> int:
        text = str(value).strip() if isinstance(value, int | str) and not isinstance(value, bool) else ""
        number = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else least - 1
        if number < least or (most is not None and number > most):
            raise UnfitValueError(f"expected a whole number {wanted}")
        return number

    return BeforeValidator(check)


def _fraction(value: object) -> float:
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except ValueError:
        number = math.nan
    if not 0 < number <= 1:
        raise UnfitValueError("expected a number above 0 and up to 1, such as 0.9")
    return number


def _text(value: object) -> str:
    if isinstance(value, bool | int | float):
        raise UnfitValueError("expected text", "put it in quotes")
    if not isinstance(value, str) or not value.strip() or value != value.strip() or not value.isprintable():
        raise UnfitValueError("expected a text in one line, without blanks around it")
    return value


def _model(value: object) -> str:
    text = _text(value)
    if text.startswith("-") or " " in text:
        raise UnfitValueError("expected a model's name on Hugging Face, such as Qwen/Qwen3-8B, or a folder")
    return text


def _word(value: object) -> str:
    """Text, or a number that stands for itself: arguments and values of variables."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value or "\n" in value or "\0" in value:
        raise UnfitValueError("expected a text in one line", "put it in quotes")
    return value


def _device(value: object) -> str:
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not re.fullmatch(r"[0-9]{1,3}|(GPU|MIG)-[A-Za-z0-9/-]{4,80}", text):
        raise UnfitValueError("expected the number of a GPU, or its UUID (GPU-…)")
    return text


def _mount(value: object) -> str:
    text = _text(value)
    if not re.fullmatch(r"[^:]+:/[^:]*(:(ro|rw))?", text):
        raise UnfitValueError("expected SOURCE:/TARGET or SOURCE:/TARGET:ro", "./models:/models:ro")
    return text


def _variable_name(value: object) -> str:
    text = _text(value)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise UnfitValueError("expected the name of an environment variable")
    return text


def _key_file(value: object) -> str:
    text = _text(value)
    if not text.startswith("/"):
        raise UnfitValueError("expected the absolute path of a file", "/run/secrets/engine_key")
    return text


def _host(value: object) -> str:
    text = _text(value)
    if not re.fullmatch(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+", text):
        raise UnfitValueError("expected an address or a name to listen at, such as 0.0.0.0")
    return text


def bytes_text(size: object) -> str:
    """Bytes in the largest power of 1024 that leaves a whole number: `4GiB`."""
    number = int(str(size))
    units = [(factor, f"{unit}iB") for unit, factor in _BINARY.items() if number and number % factor == 0]
    factor, unit = max(units, default=(1, ""))
    return f"{number // factor}{unit}"


_COUNT_TEXT: Final = r"^\s*[0-9]{1,15}(\.[0-9]{1,6})?\s*[kKmMgGtT]?\s*$"
_BYTES_TEXT: Final = r"^\s*[0-9]{1,15}(\.[0-9]{1,6})?\s*([kKmMgGtT]?(i?B)?)\s*$"
_ABOVE_ZERO: Final = {"type": "integer", "minimum": 1}
_LINE: Final = {"type": "string", "pattern": r"^\S(.*\S)?$"}

Count = Annotated[
    int,
    BeforeValidator(_count),
    Written(any_of(_ABOVE_ZERO, {"type": "string", "pattern": _COUNT_TEXT}, VARIABLE, expected=_COUNT_HELP)),
]
ContextLength = Annotated[
    int,
    BeforeValidator(_context),
    Written(
        any_of(
            {"enum": [_AUTO, "-1", "auto"]},
            _ABOVE_ZERO,
            {"type": "string", "pattern": _COUNT_TEXT},
            VARIABLE,
            expected=f"{_COUNT_HELP}, or auto",
        )
    ),
]
Bytes = Annotated[
    int,
    BeforeValidator(_bytes),
    Written(
        any_of(_ABOVE_ZERO, {"type": "string", "pattern": _BYTES_TEXT}, VARIABLE, expected=_BYTES_HELP), bytes_text
    ),
]
Fraction = Annotated[
    float,
    BeforeValidator(_fraction),
    Written(
        any_of(
            {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
            {"type": "string", "pattern": r"^\s*(0?\.[0-9]+|1(\.0+)?)\s*$"},
            VARIABLE,
        )
    ),
]
Number = Annotated[int, _from(1), whole(1)]
NumberOrNone = Annotated[int, _from(0), whole(0)]
Port = Annotated[int, _from(1, 65535), whole(1, 65535)]
Text = Annotated[str, BeforeValidator(_text), Written(_LINE)]
ModelName = Annotated[str, BeforeValidator(_model), Written({"type": "string", "pattern": r"^[^\s-]\S*$"})]
Word = Annotated[
    str, BeforeValidator(_word), Written(any_of({"type": "string", "minLength": 1}, {"type": "number"}, VARIABLE))
]
Host = Annotated[str, BeforeValidator(_host), Written(matching(r"^[A-Za-z0-9._:-]+$", "an address to listen at"))]
Device = Annotated[
    str,
    BeforeValidator(_device),
    Written(
        any_of(
            {"type": "integer", "minimum": 0, "maximum": 999},
            {"type": "string", "pattern": "^([0-9]{1,3}|(GPU|MIG)-[A-Za-z0-9/-]{4,80})$"},
            VARIABLE,
        )
    ),
]
Mount = Annotated[str, BeforeValidator(_mount), Written(matching(r"^[^:]+:/[^:]*(:(ro|rw))?$", "SOURCE:/TARGET"))]
VariableName = Annotated[str, BeforeValidator(_variable_name)]
KeyFile = Annotated[str, BeforeValidator(_key_file), Written(matching("^/.", "the absolute path of a file"))]


def named(*names: str) -> Written:
    """Names that editors offer; plug-ins and newer versions have more."""
    return Written(one_of(names, others=True))
