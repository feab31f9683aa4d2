"""How days are written where usage is asked for, and what a spreadsheet may be given of it."""

import re
from datetime import date
from typing import Final

DAY_HELP: Final = "expected a day, such as 2026-12-31"
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def day_of(text: str) -> str:
    """The text, if it is a day of the calendar in ISO 8601's long form. Raises ValueError."""
    if not _DAY.fullmatch(text):
        raise ValueError(DAY_HELP)
    try:
        date.fromisoformat(text)
    except ValueError:
        raise ValueError(DAY_HELP) from None
    return text


def harmless(cell: object) -> object:
    """A cell that no spreadsheet takes for a formula: names are their owners', who may have thought of that."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in {"=", "+", "-", "@"} else cell
