"""The days and months of budgets, UTC, without a calendar library: the proleptic Gregorian calendar is arithmetic."""

from dataclasses import dataclass
from typing import Final

DAY: Final = 86_400
_ERA_DAYS: Final = 146_097
"""400 years, after which the calendar repeats."""
_TO_MARCH_OF_YEAR_0: Final = 719_468
"""Days from 0000-03-01 to 1970-01-01; years that begin in March have their odd day at the end."""


@dataclass(frozen=True, slots=True)
class Today:
    """A day and its month. ``day`` counts from 1970-01-01, ``month`` from year 0; the ends are Unix seconds."""

    day: int
    month: int
    day_ends: float
    month_ends: float
    date: str


def today(now: float) -> Today:
    """The day that the Unix second ``now`` is in."""
    day = int(now // DAY)
    year, month, of_month = civil(day)
    following = first_of(year + month // 12, month % 12 + 1)
    return Today(
        day, year * 12 + month - 1, (day + 1.0) * DAY, float(following * DAY), f"{year:04}-{month:02}-{of_month:02}"
    )


def civil(day: int) -> tuple[int, int, int]:
    """Year, month and day of the month of a day counted from 1970-01-01."""
    shifted = day + _TO_MARCH_OF_YEAR_0
    era, of_era = divmod(shifted, _ERA_DAYS)
    year_of_era = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    march_month = (5 * of_year + 2) // 153
    of_month = of_year - (153 * march_month + 2) // 5 + 1
    month = march_month + 3 if march_month < 10 else march_month - 9
    return year_of_era + era * 400 + (month <= 2), month, of_month


def first_of(year: int, month: int) -> int:
    """The first day of a month, counted from 1970-01-01."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5
    return era * _ERA_DAYS + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + of_year - _TO_MARCH_OF_YEAR_0
