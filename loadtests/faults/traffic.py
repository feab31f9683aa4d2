"""The load of a fault scenario: chats at random moments, three of four streamed, each with a number of its own."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator
from random import Random
from time import perf_counter
from typing import Final

from loadtests.client import Client
from loadtests.faults.judge import Asked
from loadtests.sample import Sample

SEED: Final = 20240607
GRACE: Final = 12.0
"""Seconds that the last answers may take; what is open then has not ended."""

LOOK: Final = 0.02

LIMIT: Final = 100_000
"""Requests that one scenario may send."""

PLAIN: Final = 4
"""Every fourth answer is not streamed."""


def chat(number: int, *, stream: bool, tokens: int = 20, bulky: bool = False) -> bytes:
    """A request, head and body. `bulky`: its answer is about 4 KB per token."""
    body: dict[str, object] = {
        "model": "m",
        "messages": [{"role": "user", "content": f"Request {number}. Tell me a story."}],
        "max_tokens": tokens,
        "ignore_eos": True,
        "stream": stream,
    }
    if bulky:
        body |= {"logprobs": True, "top_logprobs": 20, "n": 4}
    text = json.dumps(body).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(text)}\r\n\r\n".encode() + text


def moments(per_second: float, every: float | None, seed: int) -> Iterator[float]:
    """When requests are due, in seconds from the start, without end: at random, or in bursts."""
    rng, at = Random(seed), 0.0
    while every is None:
        yield (at := at + rng.expovariate(per_second))
    for burst in itertools.count():
        yield from itertools.repeat(burst * every, max(1, round(per_second * every)))


class Traffic:
    """Sends numbered requests to one address, whether or not earlier ones are answered: an open loop."""

    def __init__(self, address: tuple[str, int], numbers: Callable[[], int], tokens: int) -> None:
        """`numbers` gives a new one each time; each answer has so many tokens."""
        self._tokens = tokens
        self._address = address
        self._numbers = numbers
        self._client = Client(lambda _: None)
        self.asked: list[Asked] = []

    async def run(self, per_second: float, every: float | None) -> None:
        """Sends requests when they are due, until it is cancelled, or `LIMIT` of them."""
        began = perf_counter()
        for at in itertools.islice(moments(per_second, every, SEED), LIMIT):
            if (wait := began + at - perf_counter()) > 0:
                await asyncio.sleep(wait)
            self._ask(began + at)

    def _ask(self, due: float) -> None:
        number = self._numbers()
        stream = number % PLAIN != 0
        sample = Sample("streamed" if stream else "plain", due)
        self.asked.append(Asked(number, sample))
        self._client.ask(self._address, chat(number, stream=stream, tokens=self._tokens), sample)

    async def end(self) -> None:
        """Waits for the answers, and leaves what takes too long."""
        for _ in range(round(GRACE / LOOK)):
            if not self._client.running:
                break
            await asyncio.sleep(LOOK)
        await self._client.close()
