"""Each phase of an attempt has its own limit, and the engine's request ends with it."""

import asyncio
import json

import pytest

from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer, error_in
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, completion, deltas
from tests.support.scripted import ScriptedEngine, Talk, reply, silent, stream, stream_head
from tests.support.serving import Serving
from tests.support.waiting import until

EVENTS = deltas("a", "b", model="m")
LATE = 0.8
"""Seconds by which a limit may be overrun on a busy machine; the wheel's own tick is 0.1 s."""


async def timed(serving: Serving, body: Json) -> tuple[Answer, float]:
    begun = serving.plane.loop.time()
    async with await serving.connect() as client:
        await client.post(CHAT, body)
        answer = await client.answer()
    return answer, serving.plane.loop.time() - begun


async def pause(serving: Serving, seconds: float) -> None:
    """Lets the gateway's clock go on."""
    end = serving.plane.loop.time() + seconds
    await until(lambda: serving.plane.loop.time() >= end)


@pytest.mark.parametrize("body", [HELLO, STREAM], ids=["whole", "streamed"])
async def test_no_answer_in_time(gateway: Gateway, engine: ScriptedEngine, body: Json) -> None:
    serving = await gateway(one_engine(engine, timeouts={"first_token": 0.3}))
    engine.answer(silent)
    answer, spent = await timed(serving, body)

    assert answer.status == 504
    assert (answer.error["type"], answer.error["code"]) == ("server_error", "engine_timeout")
    assert "0.3 s" in answer.error["message"]
    assert 0.3 <= spent < 0.3 + LATE
    await until((await engine.request()).left.is_set, 1.0, "the end of the engine's request")
    await serving.settled()
    assert serving.outcomes() == {"timed_out": 1}
    assert len(engine.requests) == 1


async def test_a_head_is_no_token(gateway: Gateway, engine: ScriptedEngine) -> None:
    """Headers at once and then nothing: the limit for the first token still holds (cases D47)."""

    async def head_only(talk: Talk) -> None:
        await talk.send(stream_head())
        await talk.stall()

    serving = await gateway(one_engine(engine, timeouts={"first_token": 0.3}))
    engine.answer(head_only)
    answer, spent = await timed(serving, STREAM)

    assert answer.status == 504
    assert 0.3 <= spent < 0.3 + LATE
    await serving.settled()


async def test_comments_are_no_token(gateway: Gateway, engine: ScriptedEngine) -> None:
    async def pings(talk: Talk) -> None:
        await talk.send(stream_head())
        while not talk.left.is_set():
            await talk.chunk(b": ping\n\n")
            await pause(serving, 0.02)

    serving = await gateway(one_engine(engine, timeouts={"first_token": 0.3}))
    engine.answer(pings)
    answer, spent = await timed(serving, STREAM)

    assert answer.status == 504
    assert spent < 0.3 + LATE
    await serving.settled()


async def test_the_first_token_may_take_longer_than_a_pause(gateway: Gateway, engine: ScriptedEngine) -> None:
    """A reasoning model thinks before it speaks (cases D49)."""

    async def thinks(talk: Talk) -> None:
        await talk.send(stream_head())
        await pause(serving, 0.6)
        await talk.chunk(*EVENTS, DONE)
        await talk.end_chunks()

    serving = await gateway(one_engine(engine, timeouts={"first_token": 5, "idle": 0.2}))
    engine.answer(thinks)
    answer, _ = await timed(serving, STREAM)

    assert answer.events[-1] == b"[DONE]"


async def test_silence_in_the_middle_ends_the_stream(gateway: Gateway, engine: ScriptedEngine) -> None:
    async def falls_silent(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*EVENTS[:3])
        await talk.stall()

    serving = await gateway(one_engine(engine, timeouts={"idle": 0.3}))
    engine.answer(falls_silent)
    answer, spent = await timed(serving, STREAM)

    assert answer.status == 200
    assert not answer.whole
    *events, last = answer.events
    assert events == [one[6:-2] for one in EVENTS[:3]]
    error = error_in(json.loads(last))
    assert (error["type"], error["code"]) == ("server_error", "engine_timeout")
    assert 0.3 <= spent < 0.3 + LATE
    await until((await engine.request()).left.is_set, 1.0, "the end of the engine's request")
    await serving.settled()
    assert serving.outcomes() == {"truncated": 1}


async def test_silence_after_a_client_paused_ends_the_stream(gateway: Gateway, engine: ScriptedEngine) -> None:
    """The clock for silence starts anew when the client reads again."""

    async def falls_silent(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*EVENTS[:2], *[b"data: {%s}\n\n" % (b'"x":"%s"' % (b"y" * 60_000))] * 300)
        await talk.stall()

    serving = await gateway(one_engine(engine, timeouts={"idle": 0.4}))
    engine.answer(falls_silent)
    async with await serving.connect(receive=16_384) as client:
        await client.post(CHAT, STREAM)
        client.stop_reading()
        talk = await engine.request()
        await until(lambda: not talk.line.drained.is_set(), what="back-pressure at the engine")
        await pause(serving, 0.6)
        client.go_on_reading()
        answer = await client.answer()

    assert error_in(json.loads(answer.events[-1]))["code"] == "engine_timeout"
    assert len(answer.events) == 303
    await serving.settled()


async def test_a_stream_that_keeps_talking_is_not_idle(gateway: Gateway, engine: ScriptedEngine) -> None:
    async def slow(talk: Talk) -> None:
        await talk.start_stream()
        for event in [*EVENTS[:3], *EVENTS[2:3] * 8, *EVENTS[3:], DONE]:
            await talk.chunk(event)
            await pause(serving, 0.1)
        await talk.end_chunks()

    serving = await gateway(one_engine(engine, timeouts={"idle": 0.5}))
    engine.answer(slow)
    answer, spent = await timed(serving, STREAM)

    assert answer.whole
    assert spent > 1.0


@pytest.mark.parametrize("committed", [False, True], ids=["whole", "streamed"])
async def test_the_total_limit_ends_even_a_lively_answer(
    gateway: Gateway, engine: ScriptedEngine, committed: bool
) -> None:
    async def endless(talk: Talk) -> None:
        if not committed:
            await talk.stall()
        await talk.start_stream()
        await talk.chunk(EVENTS[0])
        while not talk.left.is_set():
            await talk.chunk(EVENTS[1])
            await pause(serving, 0.02)

    serving = await gateway(one_engine(engine, timeouts={"total": 0.5}))
    engine.answer(endless)
    answer, spent = await timed(serving, STREAM if committed else HELLO)

    assert 0.5 <= spent < 0.5 + LATE
    if committed:
        assert not answer.whole
        assert error_in(json.loads(answer.events[-1]))["code"] == "engine_timeout"
    else:
        assert answer.status == 504
    await until((await engine.request()).left.is_set, 1.0, "the end of the engine's request")
    await serving.settled()


async def test_a_whole_answer_may_take_its_time_between_bytes(gateway: Gateway, engine: ScriptedEngine) -> None:
    """The limit on silence is for streams; a whole answer has until the first-token and total limits."""

    async def in_two_parts(talk: Talk) -> None:
        body = json.dumps(completion()).encode()
        await talk.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body), body[:20])
        await pause(serving, 0.5)
        await talk.send(body[20:])

    serving = await gateway(one_engine(engine, timeouts={"idle": 0.2}))
    engine.answer(in_two_parts)
    answer, _ = await timed(serving, HELLO)

    assert answer.status == 200


async def test_no_connection_in_time(gateway: Gateway, full_listener: int) -> None:
    serving = await gateway(
        {
            "engines": {
                "e": {"kind": "vllm", "urls": [f"http://127.0.0.1:{full_listener}"], "timeouts": {"connect": 0.3}}
            },
            "models": {"m": {"engine": "e"}},
        }
    )
    answer, spent = await timed(serving, HELLO)

    assert answer.status == 503
    assert answer.error["code"] == "engine_unavailable"
    assert int(answer.header("retry-after") or "") >= 1
    assert 0.3 <= spent < 0.3 + LATE
    await serving.settled()


async def test_another_replica_serves_when_one_takes_no_connection(
    gateway: Gateway, engine: ScriptedEngine, full_listener: int
) -> None:
    settings = one_engine(engine, timeouts={"connect": 0.3})
    settings["engines"]["e"]["urls"] = [f"http://127.0.0.1:{full_listener}", engine.url]
    serving = await gateway(settings)
    engine.answer(stream(*EVENTS, DONE))
    for _ in range(2):
        answer, _ = await timed(serving, STREAM)
        assert answer.events[-1] == b"[DONE]"
    await serving.settled()
    assert serving.outcomes() == {"served": 2}


async def test_a_slow_first_token_is_not_tried_elsewhere(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """The work may still go on there, and the client has waited long enough (CONTRACT, section 5)."""
    settings = one_engine(engine, timeouts={"first_token": 0.3})
    settings["engines"]["e"]["urls"].append(other.url)
    serving = await gateway(settings)
    engine.answer(silent)
    other.answer(silent)
    answer, _ = await timed(serving, HELLO)

    assert answer.status == 504
    assert len(engine.requests) + len(other.requests) == 1


async def test_many_requests_time_out_independently(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, timeouts={"first_token": 0.4}))
    release = asyncio.Event()

    async def some(talk: Talk) -> None:
        if talk.request.json["n"] % 2:
            await talk.stall()
        await release.wait()
        await reply(completion())(talk)

    engine.answer(some)

    async def one(number: int) -> int:
        return (await timed(serving, HELLO | {"n": number}))[0].status

    tasks = [asyncio.ensure_future(one(number)) for number in range(20)]
    await engine.request(20)
    release.set()
    statuses = await asyncio.gather(*tasks)

    assert statuses == [200, 504] * 10
    await serving.settled()


async def test_the_gateway_still_keeps_time_afterwards(gateway: Gateway, engine: ScriptedEngine) -> None:
    """The wheel stops when nobody waits, and starts again."""
    serving = await gateway(one_engine(engine, timeouts={"first_token": 0.2}))
    engine.answer(silent)
    for _ in range(2):
        answer, spent = await timed(serving, HELLO)
        assert answer.status == 504
        assert spent < 0.2 + LATE
        await pause(serving, 0.3)


async def test_a_whole_answer_may_take_as_long_as_total_unless_a_first_token_limit_is_set(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    """What is not streamed has its first byte when it is complete; the default for first tokens is not for it."""
    serving = await gateway(one_engine(engine))
    limits = serving.plane.asked["m"].destinations["e"].limits
    assert (limits.first_token, limits.total, limits.whole) == (60.0, 900.0, False)

    serving = await gateway(one_engine(engine, timeouts={"first_token": 60, "total": 0.4}))
    assert serving.plane.asked["m"].destinations["e"].limits.whole
    engine.answer(silent)
    answer, spent = await timed(serving, HELLO)
    assert answer.status == 504
    assert "0.4 s" in answer.error["message"]
    assert spent < 0.4 + LATE
