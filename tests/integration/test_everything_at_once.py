"""Everything that counts requests, under everything that can happen to them: in the end nothing is counted any more."""

import asyncio
import random
from collections.abc import Sequence

from tests.integration.conftest import Gateway
from tests.support.json_type import Json
from tests.support.keys import bearer, key_entry
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, completion, deltas, vllm_error
from tests.support.scripted import Script, ScriptedEngine, Talk, hang_up, reply, reset, silent
from tests.support.serving import Serving
from tests.support.waiting import until

ROUNDS = 240
AT_ONCE = 12
LATE = 12


async def answers(talk: Talk) -> None:
    """Whole or streamed, as it is asked."""
    if not talk.request.json.get("stream"):
        await reply(completion())(talk)
        return
    await talk.start_stream()
    await talk.chunk(*deltas("a", "b"), DONE)
    await talk.end_chunks()


async def breaks(talk: Talk) -> None:
    """In the middle of a stream, or of the head of an answer."""
    await talk.start_stream()
    await talk.chunk(*deltas("a", finish=None))
    talk.reset()


class Moody:
    """Engines that mostly answer, at times only when many others have been asked since, and at times not at all."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._asked = 0
        self._moved = asyncio.Condition()
        self._moods: Sequence[Script] = [answers] * 6 + [self.late] * 4 + [silent] * 2 + [hang_up, reset, breaks]
        self._moods = [
            *self._moods,
            reply(vllm_error("no"), status=500),
            reply(vllm_error("bad"), status=400),
            reply(vllm_error("busy"), status=503),
        ]

    async def late(self, talk: Talk) -> None:
        """When so many others have been asked."""
        enough = self._asked + LATE
        async with self._moved:
            await self._moved.wait_for(lambda: self._asked >= enough)
        await answers(talk)

    async def __call__(self, talk: Talk) -> None:
        async with self._moved:
            self._asked += 1
            self._moved.notify_all()
        await self._draw.choice(self._moods)(talk)


def settings(one: ScriptedEngine, other: ScriptedEngine, *, turned: bool) -> dict[str, Json]:
    pair = [one.url, other.url]
    return {
        "engines": {
            "e": {
                "kind": "vllm",
                "urls": pair[::-1] if turned else pair,
                "max_in_flight": 4,
                "health": {"interval": "1h"},
            },
            "f": {"kind": "triton", "urls": [other.url], "health": {"interval": "1h"}},
        },
        "models": {
            "m": {
                "targets": [{"engine": "e"}, {"engine": "f"}],
                "hedge": "p95",
                "max_in_flight": 8,
                "fallbacks": ["spare"],
                "timeouts": {"first_token": "1s", "total": "2s"},
            },
            "spare": {"engine": "f", "timeouts": {"total": "2s"}, "limits": {"parallel": 3}},
        },
        "keys": [key_entry("team-a", "sk-a", limits={"parallel": 10, "tpm": 10_000_000})],
        "admission": {"queue": 4, "wait": "500ms"},
        "retry": {"on_timeout": turned},
    }


async def one_client(serving: Serving, draw: random.Random) -> None:
    body = dict(draw.choice([HELLO, STREAM, STREAM, HELLO | {"n": 2}, STREAM | {"n": 2}]))
    body["model"] = draw.choice(["m", "m", "spare"])
    async with await serving.connect() as client:
        await client.post(CHAT, body, bearer("sk-a"))
        if draw.random() < 0.3:
            return
        await client.head()


async def test_nothing_stays_counted(gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine) -> None:
    """Hedges, retries, fallbacks, parts, queues, limits, clients that leave, deadlines, and new configurations."""
    draw = random.Random(7)
    moody = Moody(draw)
    for one in (engine, other):
        one.answer(moody)
    serving = await gateway(settings(engine, other, turned=False), whole=True)
    first_tokens = serving.plane.asked["m"].hedge
    assert first_tokens is not None
    for _ in range(20):
        first_tokens.note(0.02)
    slots = asyncio.Semaphore(AT_ONCE)

    async def client(number: int) -> None:
        async with slots:
            await one_client(serving, draw)
        if number % 20 == 0:
            serving.apply(settings(engine, other, turned=number % 40 == 0))

    await asyncio.gather(*(client(number) for number in range(ROUNDS)))
    plane = serving.plane
    assert plane.guard is not None
    accounts = list(plane.guard.limiter.accounts)
    await until(lambda: not any(account.running for account in accounts), what="the end of all permits")
    await serving.settled()
    assert [account.running for account in accounts] == [0] * len(accounts)
    assert [(queue.waiting, queue.gate.inside) for queue in plane.queues.values()] == [(0, 0)] * len(plane.queues)
    assert sum(row.requests for row in serving.meters.usage) > 0
    retried = [serving.retries("m", name) for name in ("e", "f")]
    assert any("hedge" in one for one in retried)
    assert any("died" in one for one in retried)
