"""Policies from the configuration, and what keeps requests together under the ones that want it."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from tests.integration.conftest import Gateway
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, COMPLETIONS, HELLO, completion
from tests.support.scripted import ScriptedEngine, Talk, reply
from tests.support.serving import Serving
from tests.support.waiting import until

Engines = Callable[[], Awaitable[ScriptedEngine]]
ANSWER = reply(completion())


async def several(
    gateway: Gateway, engines: Engines, count: int = 4, **model: Json
) -> tuple[Serving, list[ScriptedEngine]]:
    """A gateway in front of some replicas that answer."""
    replicas = [await engines() for _ in range(count)]
    for one in replicas:
        one.answer(ANSWER)
    urls = [one.url for one in replicas]
    serving = await gateway(
        {"engines": {"e": {"kind": "vllm", "urls": urls}}, "models": {"m": {"engine": "e", **model}}}
    )
    return serving, replicas


async def ask(
    serving: Serving, body: Mapping[str, Json], headers: Sequence[tuple[str, str]] = (), path: str = CHAT
) -> int:
    async with await serving.connect() as client:
        await client.post(path, dict(body), headers)
        return (await client.answer()).status


def served(replicas: Sequence[ScriptedEngine]) -> list[int]:
    return [len(one.requests) for one in replicas]


@pytest.mark.parametrize("policy", ["round_robin", "weighted", "least_requests", "power_of_two", "session_affinity"])
async def test_every_policy_uses_all_replicas(gateway: Gateway, engines: Engines, policy: str) -> None:
    serving, replicas = await several(gateway, engines, policy=policy)
    for _ in range(80):
        assert await ask(serving, HELLO) == 200

    assert sum(served(replicas)) == 80
    assert min(served(replicas)) >= 5


@pytest.mark.parametrize("where", ["header", "user", "prompt_cache_key"])
async def test_a_session_stays_where_it_is(gateway: Gateway, engines: Engines, where: str) -> None:
    """Each of the places that can hold a key; different keys spread."""
    serving, replicas = await several(
        gateway, engines, policy="session_affinity", affinity={"by": [where], "header": "X-Chat"}
    )
    for number in range(60):
        key = f"session-{number}"
        for _ in range(2):
            if where == "header":
                assert await ask(serving, HELLO, [("x-chat", key)]) == 200
            else:
                assert await ask(serving, HELLO | {where: key}) == 200

    seen: dict[str, set[int]] = {}
    for at, one in enumerate(replicas):
        for request in one.requests:
            # The header is the gateway's business and goes no further, so those requests are told apart by count.
            seen.setdefault(str(request.json.get(where, at)), set()).add(at)
    assert all(len(places) == 1 for places in seen.values())
    assert all(count % 2 == 0 for count in served(replicas))
    assert min(served(replicas)) > 0


async def test_the_first_place_that_has_a_key_counts(gateway: Gateway, engines: Engines) -> None:
    serving, replicas = await several(gateway, engines, policy="session_affinity")
    for number in range(12):
        assert await ask(serving, HELLO | {"user": f"u{number}"}, [("x-session-id", "same")]) == 200

    assert sorted(served(replicas)) == [0, 0, 0, 12]


async def test_only_the_real_member_is_a_session_key(gateway: Gateway, engines: Engines) -> None:
    """Text that looks like `"user": "x"` inside a prompt keeps nothing together (case L125)."""
    serving, replicas = await several(gateway, engines, policy="session_affinity")
    text = json.dumps({"user": "x", "prompt_cache_key": "x"})
    for _ in range(40):
        assert await ask(serving, {"model": "m", "messages": [{"role": "user", "content": text}]}) == 200

    assert max(served(replicas)) == 10


@pytest.mark.parametrize("value", [None, "", 7, {"a": 1}])
async def test_a_member_that_is_no_text_is_no_key(gateway: Gateway, engines: Engines, value: Json) -> None:
    serving, replicas = await several(gateway, engines, policy="session_affinity")
    for _ in range(8):
        assert await ask(serving, HELLO | {"prompt_cache_key": value}) == 200

    assert served(replicas) == [2, 2, 2, 2]


async def test_prompts_that_begin_alike_go_to_one_replica(gateway: Gateway, engines: Engines) -> None:
    serving, replicas = await several(gateway, engines, policy="prefix_affinity")
    for family in "abcdefgh":
        for number in range(4):
            messages = [
                {"role": "system", "content": f"You are {family}. " * 200},
                {"role": "user", "content": f"question {number}"},
            ]
            assert await ask(serving, {"model": "m", "messages": messages}) == 200

    homes = Counter(
        (request.json["messages"][0]["content"][8], at) for at, one in enumerate(replicas) for request in one.requests
    )
    assert set(homes.values()) == {4}


async def test_prompts_of_token_ids_spread(gateway: Gateway, engines: Engines) -> None:
    """A hundred prompts of the same length, as token ids (case L125)."""
    serving, replicas = await several(gateway, engines, policy="prefix_affinity")
    for number in range(100):
        prompt = [(number * 977 + at * 31) % 50_000 for at in range(128)]
        assert await ask(serving, {"model": "m", "prompt": prompt}, path=COMPLETIONS) == 200

    assert max(served(replicas)) <= 60
    assert min(served(replicas)) >= 3


async def test_a_shared_prefix_never_drowns_one_replica(gateway: Gateway, engines: Engines) -> None:
    """Two replicas, one prefix, nobody answers: the other takes what goes beyond the bound (case L124)."""
    serving, replicas = await several(gateway, engines, 2, policy="prefix_affinity", affinity={"factor": 1.25})
    go = asyncio.Event()

    async def held(talk: Talk) -> None:
        await go.wait()
        await ANSWER(talk)

    for one in replicas:
        one.answer(held)
    body = {"model": "m", "messages": [{"role": "system", "content": "the same long beginning " * 100}]}
    tasks = [asyncio.ensure_future(ask(serving, body)) for _ in range(40)]
    await until(lambda: sum(served(replicas)) == 40, what="all requests at the engines")
    most = max(served(replicas))
    go.set()

    assert await asyncio.gather(*tasks) == [200] * 40
    assert 20 <= most <= 26
    await serving.settled()


async def test_a_busy_replica_gets_less_by_power_of_two(gateway: Gateway, engines: Engines) -> None:
    """One replica holds on to its requests; of any two the freer one is taken."""
    serving, replicas = await several(gateway, engines, policy="power_of_two")
    go = asyncio.Event()

    async def held(talk: Talk) -> None:
        await go.wait()
        await ANSWER(talk)

    replicas[0].answer(held)
    tasks = [asyncio.ensure_future(ask(serving, HELLO)) for _ in range(40)]
    await until(lambda: sum(task.done() for task in tasks) >= 40 - len(replicas[0].requests), what="the others")
    held_back = len(replicas[0].requests)
    go.set()

    assert await asyncio.gather(*tasks) == [200] * 40
    assert held_back < 20


async def test_targets_share_by_weight(gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine) -> None:
    """A canary: one request in four."""
    for one in (engine, other):
        one.answer(ANSWER)
    serving = await gateway(
        {
            "engines": {"a": {"kind": "vllm", "urls": [engine.url]}, "b": {"kind": "trtllm", "urls": [other.url]}},
            "models": {"m": {"targets": [{"engine": "a", "weight": 3}, {"engine": "b", "weight": 1}]}},
        }
    )
    for _ in range(40):
        assert await ask(serving, HELLO) == 200

    assert served([engine, other]) == [30, 10]
