"""Durations, sizes and counts as people write them.

Each parser takes what a YAML file or an environment variable can hold and raises ValueError for everything else. The
error says only what is expected: the rejected text may be a secret that ended up in the wrong place.
"""

import math
import re
from typing import Final

DURATION_HELP: Final = "a duration such as 500ms, 10s, 15m or 1h (a bare number means seconds)"
SIZE_HELP: Final = "a size such as 64MiB, 1GB or a whole number of bytes"
SHARE_HELP: Final = "a share from 0% to 100%, such as 20%"
COUNT_HELP: Final = "a count such as 600, 200k or 1M"

_NUMBER: Final = r"[0-9]{1,18}(?:\.[0-9]{1,9})?"
_DURATION_PART: Final = re.compile(rf"({_NUMBER})\s*(ms|s|m|h|d)")
_DURATION: Final = re.compile(rf"(?:{_DURATION_PART.pattern}\s*)+")
_AMOUNT: Final = re.compile(rf"({_NUMBER})\s*([A-Za-z]*)")

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES: Final = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_SPELT: Final = {name: name.upper().replace("I", "i").replace("KB", "kB") for name in _BYTES}
# Upper and lower case of one letter mean the same: 1m can only be a million where a count is expected.
_COUNTS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def parse_duration(value: object) -> float:
    """Seconds, from `500ms`, `10s`, `15m`, `1h`, `2d`, `1h30m` or a bare number of seconds; never negative."""
    if isinstance(value, str):
        return _seconds(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(DURATION_HELP)
    return float(value)


def parse_size(value: object) -> int:
    """Bytes, from `64MiB` (powers of 1024), `1GB` (powers of 1000) or a bare number; a whole number of bytes."""
    return _amount(value, _BYTES, SIZE_HELP)


def parse_count(value: object) -> int:
    """A whole number, from `200k`, `1M`, `1.5M` or a bare number; never negative."""
    return _amount(value, _COUNTS, COUNT_HELP)


def parse_share(value: object) -> float:
    """A part of the whole from 0 to 1, written as `20%` or `0.2`."""
    text = str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    match = re.fullmatch(rf"({_NUMBER})\s*(%?)", text)
    if match is None:
        raise ValueError(SHARE_HELP)
    share = float(match[1]) / (100.0 if match[2] else 1.0)
    if share > 1:
        raise ValueError(SHARE_HELP)
    return share


def duration_text(seconds: object) -> str:
    """Seconds in the largest unit that leaves a whole number: 900 as `15m`, 60 as `60s`, 0.25 as `250ms`."""
    number = float(str(seconds))
    if 0 < number < 1:
        return f"{number * 1000:g}ms"
    for unit, least in (("d", 2), ("h", 1), ("m", 2)):
        if number >= least * _SECONDS[unit] and number % _SECONDS[unit] == 0:
            return f"{number / _SECONDS[unit]:g}{unit}"
    return f"{number:.12g}s"


def size_text(size: object) -> str:
    """Bytes in the largest power of 1024, or of 1000, that leaves a whole number: `64MiB`, `1GB`."""
    number = int(str(size))
    units = ((factor, name) for name, factor in _BYTES.items() if factor > 1 and number and number % factor == 0)
    factor, name = max(units, default=(1, ""))
    return f"{number // factor}{_SPELT.get(name, '')}"


def share_text(share: object) -> str:
    """A share as a percentage: 0.2 as `20%`."""
    return f"{float(str(share)) * 100:.12g}%"


def count_text(count: object) -> str:
    """A count with `k` or `M` where that is exact: 200000 as `200k`."""
    number = int(str(count))
    for factor, unit in ((10**6, "M"), (10**3, "k")):
        if number and number % factor == 0:
            return f"{number // factor}{unit}"
    return str(number)


def _seconds(text: str) -> float:
    if re.fullmatch(_NUMBER, text):
        return float(text)
    if not _DURATION.fullmatch(text):
        raise ValueError(DURATION_HELP)
    return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(text))


def _amount(value: object, factors: dict[str, int], expected: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(expected)
    factor = factors.get(match[2].lower())
    if factor is None:
        raise ValueError(expected)
    whole, _, fraction = match[1].partition(".")
    scaled = int(whole + fraction) * factor
    amount, rest = divmod(scaled, int("1" + "0" * len(fraction)))
    if rest:
        raise ValueError(expected)
    return amount
