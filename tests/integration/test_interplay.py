"""Hedging, fallbacks, several engines and lists of inputs, where two of them meet in one request."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from gateway.balance import evidence
from gateway.balance.endpoint import EndpointState
from tests.integration.conftest import Gateway
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, DONE, STREAM, deltas
from tests.support.scripted import ScriptedEngine, Talk, reply, silent, stream
from tests.support.serving import Serving
from tests.support.waiting import until

PATIENCE = 0.2
ENOUGH = 20
"""Streams after which a first token can be late."""
QUICK = stream(*deltas("a"), DONE)


async def ask(serving: Serving, body: Mapping[str, Json] = STREAM, path: str = CHAT) -> Answer:
    async with await serving.connect() as client:
        await client.post(path, dict(body))
        return await client.answer()


def impatient(serving: Serving, model: str) -> None:
    """Lets the model know when a first token is late."""
    first_tokens = serving.plane.asked[model].hedge
    assert first_tokens is not None
    for _ in range(ENOUGH):
        first_tokens.note(PATIENCE)


async def outwait(serving: Serving) -> None:
    began = serving.plane.loop.time()
    await until(lambda: serving.plane.loop.time() > began + 2 * PATIENCE, what="more than the patience")


async def checked(serving: Serving, *engines: ScriptedEngine) -> None:
    """Waits for the first check of each, which is the last one for an hour."""
    await until(
        lambda: all(one.state is EndpointState.UP for one in serving.plane.endpoints), what="the first checks of health"
    )
    for one in engines:
        one.requests.clear()
        one.talks.clear()


async def find_dead(serving: Serving, engine: ScriptedEngine) -> None:
    """The checks say that it is dead, and whoever waits for it has heard so."""
    loop = serving.plane.loop
    for link in serving.plane.engines.values():
        for endpoint in link.engine.endpoints:
            if endpoint.url == engine.url:
                for _ in range(3):
                    evidence.check_failed(link.engine, endpoint, "a test says so", loop.time())
    heard = asyncio.Event()
    loop.call_soon(heard.set)
    await heard.wait()


async def test_a_fallback_model_that_does_not_hedge_is_not_hedged(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """The stream is one engine's from its first byte to its last, though the model that was asked for hedges."""
    serving = await gateway(
        {
            "engines": {"e": {"kind": "vllm", "urls": [engine.url, other.url]}},
            "models": {
                "m": {"engine": "e", "hedge": "p95", "max_in_flight": 1, "fallbacks": ["spare"]},
                "spare": {"engine": "e", "policy": "round_robin"},
            },
        }
    )
    impatient(serving, "m")
    go = asyncio.Event()

    async def held(talk: Talk) -> None:
        await talk.start_stream()
        first, *rest = deltas("a", "b", model="spare")
        await talk.chunk(first, rest[0])
        await go.wait()
        await talk.chunk(*rest[1:], DONE)
        await talk.end_chunks()

    async def late(talk: Talk) -> None:
        await go.wait()
        await QUICK(talk)

    for one in (engine, other):
        one.answer(held)
    full = asyncio.ensure_future(ask(serving))
    await until(lambda: len(engine.requests) + len(other.requests) == 1, what="the request that fills the model")
    for one in (engine, other):
        one.answer(late)
    asking = asyncio.ensure_future(ask(serving))
    await until(lambda: len(engine.requests) + len(other.requests) == 2, what="the request to the fallback")
    await outwait(serving)
    go.set()
    answer = await asking

    assert answer.header("x-turnout-fallback") == "spare"
    assert answer.header("x-turnout-attempts") == "1"
    assert answer.events[-1] == b"[DONE]"
    assert (await full).status == 200
    assert len(engine.requests) + len(other.requests) == 2
    await serving.settled()


async def test_merged_streams_say_nothing_of_how_long_a_first_token_takes(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    """Each of their parts is a first token of its own, and they are not hedged."""
    engine.answer(QUICK)
    serving = await gateway(
        {
            "engines": {"e": {"kind": "triton", "urls": [engine.url]}},
            "models": {"m": {"engine": "e", "hedge": "p95"}},
        }
    )
    for _ in range(ENOUGH):
        assert (await ask(serving, STREAM | {"n": 2})).status == 200
    first_tokens = serving.plane.asked["m"].hedge
    assert first_tokens is not None
    assert first_tokens.patience is None
    await serving.settled()


async def test_no_part_of_a_list_goes_where_the_whole_would_be_refused(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """Whichever of the engines had its turn: Triton gives every vector as it is."""
    vector = {"object": "embedding", "index": 0, "embedding": [0.5]}
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    for one in (engine, other):
        one.answer(reply({"object": "list", "model": "m", "data": [vector], "usage": usage}))
    serving = await gateway(
        {
            "engines": {
                "e": {"kind": "vllm", "urls": [engine.url], "max_batch": 1},
                "f": {"kind": "triton", "urls": [other.url], "embeddings": True},
            },
            "models": {
                "m": {"targets": [{"engine": "e"}, {"engine": "f"}], "task": "embedding", "policy": "round_robin"}
            },
        }
    )
    body = {"model": "m", "input": ["a", "b", "c"], "normalize": True}
    for _ in range(2):
        answer = await ask(serving, body, "/v1/embeddings")
        assert answer.status == 200, answer.body
    assert (len(engine.requests), len(other.requests)) == (6, 0)
    await serving.settled()


async def test_a_fallback_is_sent_its_own_request_after_a_move_that_was_not_made(
    gateway: Gateway, engines: Callable[[], Awaitable[ScriptedEngine]]
) -> None:
    """An endpoint is found dead; no retry is left for the model's other engine, but another model stands in."""
    first, second, spare = [await engines() for _ in range(3)]
    die = asyncio.Event()

    async def dies(talk: Talk) -> None:
        await die.wait()
        talk.reset()

    first.answer(dies)
    spare.answer(QUICK)
    serving = await gateway(
        {
            "engines": {
                name: {"kind": kind, "urls": [one.url], "health": {"interval": "1h"}}
                for name, kind, one in (("e", "vllm", first), ("f", "trtllm", second), ("g", "vllm", spare))
            },
            "models": {
                "m": {
                    "targets": [{"engine": "e", "model": "org/e"}, {"engine": "f", "model": "org/f"}],
                    "policy": "round_robin",
                    "fallbacks": ["spare"],
                },
                "spare": {"engine": "g", "model": "org/spare"},
            },
            "retry": {"attempts": 1},
        },
        whole=True,
    )
    await checked(serving, first, second, spare)
    asking = asyncio.ensure_future(ask(serving))
    await first.request()
    await find_dead(serving, first)
    die.set()
    answer = await asking

    assert answer.header("x-turnout-fallback") == "spare"
    assert [one.json["model"] for one in spare.requests] == ["org/spare"]
    await serving.settled()


async def test_a_death_that_the_checks_found_counts_beside_a_second_attempt_too(
    gateway: Gateway, engines: Callable[[], Awaitable[ScriptedEngine]]
) -> None:
    """A request under which two endpoints have died is not tried at a third."""
    three = [await engines() for _ in range(3)]
    die = asyncio.Event()

    async def dies(talk: Talk) -> None:
        await die.wait()
        talk.reset()

    for one in three:
        one.answer(dies)
    serving = await gateway(
        {
            "engines": {"e": {"kind": "vllm", "urls": [one.url for one in three], "health": {"interval": "1h"}}},
            "models": {"m": {"engine": "e", "hedge": "p95"}},
        },
        whole=True,
    )
    await checked(serving, *three)
    impatient(serving, "m")
    asking = asyncio.ensure_future(ask(serving))
    await until(lambda: sum(len(one.requests) for one in three) == 1, what="the first attempt")
    first = next(one for one in three if one.requests)
    await until(lambda: sum(len(one.requests) for one in three) == 2, what="the second attempt")
    await find_dead(serving, first)
    await until(first.talks[0].left.is_set, what="the end of the first attempt")
    die.set()

    assert (await asking).status == 502
    assert sum(len(one.requests) for one in three) == 2
    await serving.settled()


async def test_a_second_attempt_goes_where_the_call_can_be_served(
    gateway: Gateway, engines: Callable[[], Awaitable[ScriptedEngine]]
) -> None:
    """Whoever has its turn: an engine that would refuse the call is passed over, as for a first attempt."""
    fit, also_fit, unfit = [await engines() for _ in range(3)]
    asked: list[Talk] = []

    async def answer(talk: Talk) -> None:
        asked.append(talk)
        await (QUICK if len(asked) % 2 == 0 else silent)(talk)

    for one in (fit, also_fit, unfit):
        one.answer(answer)
    serving = await gateway(
        {
            "engines": {
                "e": {"kind": "vllm", "urls": [fit.url, also_fit.url]},
                "f": {"kind": "triton", "urls": [unfit.url]},
            },
            "models": {
                "m": {"targets": [{"engine": "e"}, {"engine": "f"}], "policy": "round_robin", "hedge": "p95"},
            },
        }
    )
    impatient(serving, "m")
    answers = [await ask(serving, STREAM | {"logit_bias": {"5": 1}}) for _ in range(4)]

    assert [answer.header("x-turnout-attempts") for answer in answers] == ["2"] * 4
    assert unfit.requests == []
    await serving.settled()
