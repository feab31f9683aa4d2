"""Limits in one process: who passes, what it is told, and that the counts are right however a request ends."""

import asyncio
import json
import re

import pytest

from gateway.proxy.limiter import Limiter
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.keys import KEY, bearer, key_entry
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, completion, deltas, event
from tests.support.scripted import ScriptedEngine, Talk, hang_up, reply, silent, stream
from tests.support.serving import Serving
from tests.support.waiting import until

OTHER = "sk-other"
USAGE = {"prompt_tokens": 300, "completion_tokens": 200, "total_tokens": 500}


def limited(engine: ScriptedEngine, own: Json, **more: Json) -> dict[str, Json]:
    return one_engine(engine) | {"keys": [key_entry("team-a", limits=own), key_entry("b", OTHER)]} | more


async def ask(serving: Serving, body: Json = HELLO, key: str = KEY, path: str = CHAT) -> Answer:
    async with await serving.connect() as client:
        await client.post(path, body, bearer(key))
        return await client.answer()


def limiter(serving: Serving) -> Limiter:
    assert serving.plane.guard is not None
    return serving.plane.guard.limiter


def owed(serving: Serving, name: str = "key 'team-a'", *, per_minute: int) -> float:
    """The tokens that an account owes, those of the time that has passed since included."""
    seconds: float = limiter(serving)._accounts[name].tokens_until - serving.plane.loop.time()
    return seconds * per_minute / 60


async def test_requests_per_minute_end_in_a_429_that_says_when_to_come_again(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    engine.answer(reply(completion()))
    serving = await gateway(limited(engine, {"rpm": 3}))

    answers = [await ask(serving) for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429]
    assert [answer.header("x-ratelimit-remaining-requests") for answer in answers] == ["2", "1", "0", "0"]
    assert {answer.header("x-ratelimit-limit-requests") for answer in answers} == {"3"}
    refused = answers[-1]
    assert (refused.error["type"], refused.error["code"]) == ("rate_limit_error", "rate_limit_exceeded")
    assert "key 'team-a' on requests per minute: limit 3" in str(refused.error["message"])
    assert refused.header("retry-after") == "20"
    assert 19_000 < int(refused.header("retry-after-ms") or 0) <= 20_000
    assert refused.header("x-should-retry") == "true"
    assert re.fullmatch(r"(59\.\d+|1m0)s", refused.header("x-ratelimit-reset-requests") or "")
    assert len(engine.requests) == 3
    assert (await ask(serving, key=OTHER)).status == 200


async def test_a_burst_says_how_much_may_come_at_once(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion()))
    serving = await gateway(limited(engine, {"rpm": 120, "burst": "1s"}))

    assert [(await ask(serving)).status for _ in range(3)] == [200, 200, 429]


async def test_tokens_are_settled_with_what_the_engine_counted(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion(usage=USAGE)))
    serving = await gateway(limited(engine, {"tpm": 1_000}))

    first = await ask(serving, HELLO | {"max_tokens": 5})
    second = await ask(serving, HELLO | {"max_tokens": 5})
    third = await ask(serving, HELLO | {"max_tokens": 5})
    assert [first.status, second.status, third.status] == [200, 200, 429]
    assert int(first.header("x-ratelimit-remaining-tokens") or 0) > 900
    assert int(second.header("x-ratelimit-remaining-tokens") or 0) < 500
    assert "tokens per minute" in str(third.error["message"])


async def test_requests_at_once_do_not_pass_before_their_usage_is_known(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    """What is reserved counts at once: of ten requests of 256 tokens each at the same time, three fit into 1000."""
    engine.answer(silent)
    serving = await gateway(limited(engine, {"tpm": 1_000}))

    async with asyncio.TaskGroup() as group:
        clients = [await serving.connect() for _ in range(10)]
        for client in clients:
            group.create_task(client.post(CHAT, HELLO, bearer()))
    await engine.request(3)
    refused = [client for client in clients if client.reader._buffer]  # type: ignore[attr-defined]
    await until(lambda: sum(bool(client.reader._buffer) for client in clients) == 7)  # type: ignore[attr-defined]
    assert len(engine.requests) == 3
    assert refused is not None
    for client in clients:
        client.reset()
    await serving.settled()


async def test_parallel_requests_never_pass_their_number(gateway: Gateway, engine: ScriptedEngine) -> None:
    go_on = asyncio.Event()

    async def wait(talk: Talk) -> None:
        await go_on.wait()
        await reply(completion())(talk)

    engine.answer(wait)
    serving = await gateway(limited(engine, {"parallel": 3}))
    waiting = [asyncio.ensure_future(ask(serving)) for _ in range(20)]
    await until(lambda: sum(one.done() for one in waiting) == 17)
    assert len(engine.requests) == 3
    go_on.set()
    answers = await asyncio.gather(*waiting)

    assert sorted(answer.status for answer in answers) == [200] * 3 + [429] * 17
    refused = next(answer for answer in answers if answer.status == 429)
    assert (refused.header("retry-after"), refused.error["code"]) == ("1", "rate_limit_exceeded")
    assert (await ask(serving)).status == 200


@pytest.mark.parametrize("ending", ["client leaves", "engine dies", "engine refuses", "stream", "stream breaks"])
async def test_a_place_is_free_again_however_a_request_ends(
    gateway: Gateway, engine: ScriptedEngine, ending: str
) -> None:
    events = deltas("a", "b")

    async def broken(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*events[:2])
        talk.reset()

    scripts = {
        "client leaves": silent,
        "engine dies": hang_up,
        "engine refuses": reply(b'{"error": {"message": "no", "code": 400}}', status=400),
        "stream": stream(*events, DONE),
        "stream breaks": broken,
    }
    engine.answer(scripts[ending])
    serving = await gateway(limited(engine, {"parallel": 1, "tpm": 1_000_000}) | {"retry": {"attempts": 1}})
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM if "stream" in ending else HELLO, bearer())
        await engine.request()
        if ending == "client leaves":
            client.reset()
        else:
            await client.answer()
    await serving.settled()

    await until(lambda: limiter(serving)._accounts["key 'team-a'"].running == 0)
    engine.answer(reply(completion()))
    assert (await ask(serving)).status == 200
    refunded = ending in ("engine dies", "engine refuses")
    assert owed(serving, per_minute=1_000_000) < (6 if refunded else 60)


async def test_streams_are_settled_by_their_usage_or_else_by_their_events(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    serving = await gateway(limited(engine, {"tpm": 6_000}))
    usage = event({"id": "x", "object": "chat.completion.chunk", "model": "org/m", "choices": [], "usage": USAGE})
    engine.answer(stream(*deltas("a", "b"), usage, DONE))
    await ask(serving, STREAM | {"stream_options": {"include_usage": True}})
    counted = next(iter(serving.meters.usage))
    assert (counted.prompt_tokens, counted.answer_tokens, counted.estimated) == (300, 200, 0)

    engine.answer(stream(*deltas(*"abcdefghij"), DONE))
    await ask(serving, STREAM)
    assert counted.requests == 2
    assert counted.estimated == 1
    assert 10 <= counted.answer_tokens - 200 <= 14
    assert counted.prompt_tokens - 300 == len(json.dumps(STREAM)) // 4


async def test_a_spent_budget_is_a_quota_that_no_retry_mends(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion(usage=USAGE)))
    serving = await gateway(limited(engine, {"tokens_per_day": 1_000}))

    answers = [await ask(serving) for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert answers[-1].error["code"] == "insufficient_quota"
    assert answers[-1].header("x-should-retry") == "false"
    assert 0 < int(answers[-1].header("retry-after") or 0) <= 86_400


async def test_a_budget_smaller_than_a_request_may_use_lets_it_pass(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion(usage=USAGE)))
    serving = await gateway(limited(engine, {"tokens_per_day": 150}))

    answers = [await ask(serving, HELLO | {"max_tokens": 4_096}) for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 429, 429]


async def test_models_and_everybody_have_limits_too(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion()))
    settings = limited(engine, {}, limits={"overall": {"rpm": 4}})
    settings["models"]["m"]["limits"] = {"rpm": 2}
    serving = await gateway(settings)

    asked = [("m", KEY), ("gpt-4o", OTHER), ("m", OTHER), ("same", KEY), ("same", KEY), ("same", KEY)]
    answers = [await ask(serving, HELLO | {"model": model}, key) for model, key in asked]
    assert [answer.status for answer in answers] == [200, 200, 429, 200, 200, 429]
    assert "model 'm'" in str(answers[2].error["message"])
    assert "this gateway" in str(answers[5].error["message"])
    assert answers[0].header("x-ratelimit-limit-requests") == "2"
    assert answers[3].header("x-ratelimit-limit-requests") == "4"


async def test_without_keys_limits_hold_for_all_callers_together(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion()))
    serving = await gateway(one_engine(engine) | {"limits": {"rpm": 2}})

    assert [(await ask(serving, key=key)).status for key in ("a", "b", "c")] == [200, 200, 429]


async def test_keys_without_limits_of_their_own_get_the_default(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion()))
    serving = await gateway(limited(engine, {"rpm": 1}, limits={"rpm": 2}))

    assert [(await ask(serving, key=key)).status for key in (KEY, KEY, OTHER, OTHER, OTHER)] == [
        200,
        429,
        200,
        200,
        429,
    ]


async def test_a_new_configuration_keeps_what_is_owed_and_changes_what_may_be(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    engine.answer(reply(completion()))
    serving = await gateway(limited(engine, {"rpm": 2}), whole=True)
    assert [(await ask(serving)).status for _ in range(3)] == [200, 200, 429]
    serving.apply(limited(engine, {"rpm": 2, "tpm": 1_000_000}))
    assert (await ask(serving)).status == 429
    serving.apply(limited(engine, {"rpm": 120}))
    assert (await ask(serving)).status == 200


async def test_a_refused_stream_is_told_so_in_plain_json(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(stream(*deltas("a"), DONE))
    serving = await gateway(limited(engine, {"rpm": 1}))
    await ask(serving, STREAM)

    refused = await ask(serving, STREAM)
    assert (refused.status, refused.header("content-type")) == (429, "application/json")


async def test_anthropics_clients_are_limited_in_their_own_words(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.on("/v1/messages", reply(b'{"id": "msg_1", "type": "message", "model": "org/m", "content": []}'))
    serving = await gateway(limited(engine, {"rpm": 1}))

    answers = [await ask(serving, HELLO | {"max_tokens": 5}, path="/v1/messages") for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 429]
    assert answers[1].json["error"]["type"] == "rate_limit_error"


async def test_what_several_processes_may_is_divided_among_them(gateway: Gateway, engine: ScriptedEngine) -> None:
    """A gateway of four processes without Redis: each has a quarter."""
    engine.answer(reply(completion()))
    serving = await gateway(limited(engine, {"rpm": 8}) | {"server": {"workers": 4}})

    assert [(await ask(serving)).status for _ in range(3)] == [200, 200, 429]
