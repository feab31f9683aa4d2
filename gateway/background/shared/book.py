"""The common book of usage: one hash per day in Redis."""

import asyncio
import time
from collections.abc import Mapping
from typing import Final

from gateway.background.shared.client import Client, RedisFault
from gateway.balance.limits.windows import DAY, today
from gateway.errors import UsageUnavailable
from gateway.usage import KEPT_DAYS, UsageBook, UsageRow

PATIENCE: Final = 2.0
"""Seconds that an operator waits for the usage."""

_NUMBERS: Final = ("requests", "prompt", "answer", "estimated")


async def read_usage(client: Client, base: str, since: str, until: str) -> list[UsageRow]:
    """The rows of these days, both included.

    Raises:
        UsageUnavailable: Redis does not answer.
    """
    found: list[UsageRow] = []
    try:
        async with asyncio.timeout(PATIENCE):
            for day in last_days(time.time(), KEPT_DAYS):
                if since <= day <= until:
                    found += rows_of(day, await client.execute_command("HGETALL", f"{base}:u:{day}"))
    except (RedisFault, TimeoutError):
        raise UsageUnavailable("Redis, which keeps the usage, does not answer.", retry_after=1.0) from None
    return UsageBook(found).sorted()


def last_days(now: float, count: int) -> list[str]:
    """The dates of the last days up to the Unix second ``now``, in their order."""
    return [today(now - back * DAY).date for back in reversed(range(count))]


def rows_of(day: str, found: Mapping[bytes, bytes]) -> list[UsageRow]:
    """The rows that a day's hash holds: a field for each key, model and number."""
    rows: dict[tuple[str, str], dict[str, int]] = {}
    for field, value in found.items():
        key, model, what = field.decode().split("\x1f")
        rows.setdefault((key, model), {})[what] = int(value)
    return [UsageRow(day, key, model, *(row.get(what, 0) for what in _NUMBERS)) for (key, model), row in rows.items()]
