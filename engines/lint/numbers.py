"""Numbers as flags and engine arguments have them."""

import re
from typing import Final

_UNITS: Final = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_AMOUNT: Final = re.compile(r"(-?\d+(?:\.\d+)?)([kKmMgGtT]?)(iB|B)?", re.ASCII)

SAMPLES: Final = (0.1, 0.5)
"""Shares of a GPU's memory that samples of Triton's vLLM backend set, so that they start anywhere."""


def number_of(value: object) -> float | None:
    """A number, or text with one such as `8k`; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(match[1]) * _UNITS.get(match[2], 1) if match else None


_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.ASCII | re.IGNORECASE)


def container_size(text: str) -> float | None:
    """Bytes, as Docker and compose write them: `64m`, `4gb`, in powers of 1024."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    power = "kmgt".index(match[2].lower()) + 1 if match[2] else 0
    return float(match[1]) * 1024.0**power


def shown(number: float) -> str:
    """A share or a count without needless digits."""
    return f"{number:.4g}" if number < 1000 else f"{number:.0f}"
