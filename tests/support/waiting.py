"""Waiting for what must happen, never for time to pass."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 10.0
"""Seconds after which something that has not happened is a failure."""


async def within(awaited: Awaitable[T], seconds: float = PATIENCE, what: str = "it") -> T:
    """The result, or a failure that says what did not happen."""
    try:
        async with asyncio.timeout(seconds):
            return await awaited
    except TimeoutError:
        raise AssertionError(f"{what} did not happen within {seconds:g} s") from None


async def until(condition: Callable[[], bool], seconds: float = PATIENCE, what: str = "the condition") -> None:
    """Returns when the condition holds; it is asked again and again."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not condition():
        assert loop.time() < end, f"{what} did not come true within {seconds:g} s"
        await asyncio.sleep(0.002)


async def until_told(question: Callable[[], Awaitable[object]], seconds: float = PATIENCE, what: str = "it") -> None:
    """Returns when the answer of something outside is true; it is asked again and again."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not await question():
        assert loop.time() < end, f"{what} was not told within {seconds:g} s"
        await asyncio.sleep(0.02)
