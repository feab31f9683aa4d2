"""Streams: framing of every kind in, one kind out, and exactly one of two ends."""

import asyncio
import json

import pytest

from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Client, error_in, events_of
from tests.support.openai_bytes import (
    CHAT,
    COMPLETIONS,
    DONE,
    STREAM,
    compact,
    delta,
    deltas,
    event,
    vllm_error,
)
from tests.support.scripted import (
    Script,
    ScriptedEngine,
    Talk,
    chunked,
    gzipped,
    hang_up,
    packets,
    reply,
    reset,
    stream,
    stream_head,
)
from tests.support.serving import SERVERS, Serving
from tests.support.waiting import until

EVENTS = deltas("北", "😀", model="same")
"""A stream with characters of three and four bytes, which needs no change."""
SAME = STREAM | {"model": "same"}
ENDLESS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
"""The head of a stream that ends with its connection."""


@pytest.fixture(params=list(SERVERS))
def carrier(request: pytest.FixtureRequest) -> str:
    """What carries the exchanges: other ASGI servers too."""
    return str(request.param)


async def streamed(client: Client, body: object = SAME) -> bytes:
    await client.post(CHAT, compact(body))
    answer = await client.answer()
    assert answer.status == 200, answer.body
    assert answer.whole
    return answer.body


async def broken(client: Client, body: object = SAME) -> tuple[list[bytes], dict[str, object]]:
    """The events of a stream that broke, and the error in the last of them; the connection must end without the end."""
    await client.post(CHAT, compact(body))
    answer = await client.answer()
    assert answer.status == 200, answer.body
    assert not answer.whole
    assert await client.closed()
    *events, last = events_of(answer.body)
    assert b"[DONE]" not in events
    return events, error_in(json.loads(last))


async def test_the_place_of_a_split_does_not_matter(serving: Serving, engine: ScriptedEngine) -> None:
    """Every single position: inside a character, inside CRLF, inside ``data:``, inside a chunk's size."""
    comment = b": ping\r\n\r\n"
    sent = stream_head() + b"".join(map(chunked, [EVENTS[0], comment + EVENTS[1], *EVENTS[2:], DONE])) + b"0\r\n\r\n"
    expected = b"".join([*EVENTS, DONE])
    async with await serving.connect() as client:
        for at in range(1, len(sent)):
            engine.answer(packets(sent[:at], sent[at:]))
            assert await streamed(client) == expected, at
    assert engine.accepted == 1
    await serving.settled()


async def test_every_byte_may_be_a_chunk_of_its_own(client: Client, engine: ScriptedEngine) -> None:
    data = b"".join([*deltas("北", "😀"), DONE])
    engine.answer(
        packets(stream_head() + b"".join(chunked(data[at : at + 1]) for at in range(len(data))) + b"0\r\n\r\n")
    )

    assert await streamed(client, STREAM) == b"".join([*deltas("北", "😀", model="m"), DONE])


def crlf(events: list[bytes]) -> list[bytes]:
    return [one.replace(b"\n", b"\r\n") for one in events]


SPELLINGS = {
    "CRLF": [*crlf(EVENTS), b"data: [DONE]\r\n\r\n"],
    "CR": [one.replace(b"\n", b"\r") for one in [*EVENTS, DONE]],
    "no blank after the colon": [one.replace(b"data: ", b"data:") for one in [*EVENTS, DONE]],
    "comments": [b": hello\n\n", *(b": ping\n" + one for one in EVENTS), b":\n\n", DONE],
    "a comment glued to an event": [EVENTS[0], b": OPENROUTER PROCESSING\n\n" + EVENTS[1], *EVENTS[2:], DONE],
    "ids and retries": [b"retry: 10\n\n", *(b"id: %d\n%s" % (at, one) for at, one in enumerate(EVENTS)), DONE],
    "two [DONE]": [*EVENTS, DONE, DONE],
    "no [DONE]": EVENTS,
    "[DONE] without blank line": [*EVENTS, DONE.rstrip()],
    "bytes after [DONE]": [*EVENTS, DONE, event(delta("late")), b"garbage"],
    "a byte order mark": [b"\xef\xbb\xbf" + EVENTS[0], *EVENTS[1:], DONE],
    "empty events": [b"\n\n", EVENTS[0], b"data:\n\n", b"\n", *EVENTS[1:], DONE],
    "all at once": [b"".join([*EVENTS, DONE])],
}


@pytest.mark.parametrize("events", SPELLINGS.values(), ids=SPELLINGS)
async def test_clients_see_one_spelling(client: Client, engine: ScriptedEngine, events: list[bytes]) -> None:
    """But for the blank after the colon, which may stay away."""
    engine.answer(stream(*events))

    assert (await streamed(client)).replace(b"data:{", b"data: {") == b"".join([*EVENTS, DONE])


async def test_event_lines_stay_with_their_data(client: Client, engine: ScriptedEngine) -> None:
    odd = b"event: note\n" + event({"anything": [1]})
    engine.answer(stream(*EVENTS[:2], odd, *EVENTS[2:], DONE))

    assert b"event: note\ndata: " in await streamed(client)


async def test_a_stream_that_ends_with_its_connection_is_whole_when_it_says_so(
    client: Client, engine: ScriptedEngine
) -> None:
    engine.answer(packets(ENDLESS, *EVENTS, DONE, fin=True))

    assert await streamed(client) == b"".join([*EVENTS, DONE])


@pytest.mark.parametrize("death", ["fin", "reset"])
async def test_only_the_end_of_the_body_missing_is_no_error(
    client: Client, engine: ScriptedEngine, serving: Serving, death: str
) -> None:
    """After ``[DONE]`` there is nothing that a client could miss."""

    async def script(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*EVENTS, DONE)
        await said.wait()
        talk.fin() if death == "fin" else talk.reset()

    said = asyncio.Event()
    engine.answer(script)
    await client.post(CHAT, SAME)
    answer = await client.head()
    while not answer.body.endswith(DONE):
        answer.body += await client.chunk()
    said.set()

    assert await client.chunk() == b""
    assert answer.body == b"".join([*EVENTS, DONE])
    await serving.settled()
    assert serving.outcomes("same") == {"served": 1}


async def test_the_first_event_comes_before_the_second_is_there(client: Client, engine: ScriptedEngine) -> None:
    """Nothing is buffered for longer than needed."""
    more = asyncio.Event()

    async def script(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*EVENTS[:2])
        await more.wait()
        await talk.chunk(*EVENTS[2:], DONE)
        await talk.end_chunks()

    engine.answer(script)
    await client.post(CHAT, SAME)
    answer = await client.head()
    while EVENTS[1] not in answer.body:
        answer.body += await client.chunk()
    assert answer.body == EVENTS[0] + EVENTS[1]
    more.set()
    assert (await client.body(answer)).body == b"".join([*EVENTS, DONE])


# ---- compression


@pytest.mark.parametrize("coding", [b"gzip", b"x-gzip", b"GZIP"])
async def test_a_gzip_stream_with_a_flush_per_event(client: Client, engine: ScriptedEngine, coding: bytes) -> None:
    engine.answer(stream(*gzipped(*EVENTS, DONE), headers=[b"content-encoding: " + coding]))
    await client.post(CHAT, SAME, [("accept-encoding", "gzip, br, zstd")])
    answer = await client.answer()

    assert answer.body == b"".join([*EVENTS, DONE])
    assert answer.header("content-encoding") is None
    assert engine.requests[0].header("accept-encoding") == b"identity"


async def test_a_gzip_member_per_event(client: Client, engine: ScriptedEngine) -> None:
    members = [b"".join(gzipped(one)) for one in [*EVENTS, DONE]]
    engine.answer(stream(*members, headers=[b"content-encoding: gzip"]))

    assert await streamed(client) == b"".join([*EVENTS, DONE])


async def test_bytes_that_are_no_gzip_are_an_error_of_the_engine(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(stream(*EVENTS, DONE, headers=[b"content-encoding: gzip"]))
    await client.post(CHAT, SAME)
    answer = await client.answer()

    assert answer.status == 502
    assert answer.error["code"] == "engine_error"


async def test_an_unknown_coding_is_an_error_of_the_engine(
    client: Client, engine: ScriptedEngine, serving: Serving
) -> None:
    engine.answer(stream(*EVENTS, DONE, headers=[b"content-encoding: br"]))
    await client.post(CHAT, SAME)

    assert (await client.answer()).status == 502
    await serving.settled()


# ---- streams that break off


@pytest.mark.parametrize("death", ["fin", "reset"])
@pytest.mark.parametrize("where", ["between chunks", "inside a chunk", "inside a chunk's size", "inside an event"])
async def test_a_stream_cut_in_the_middle_ends_with_an_error_and_no_done(
    client: Client, engine: ScriptedEngine, serving: Serving, death: str, where: str
) -> None:
    last = {
        "between chunks": b"",
        "inside a chunk": chunked(EVENTS[2])[:-5],
        "inside a chunk's size": b"5",
        "inside an event": chunked(EVENTS[2][:-9]),
    }[where]
    cut = asyncio.Event()

    async def script(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*EVENTS[:2])
        await talk.send(last)
        await cut.wait()
        talk.fin() if death == "fin" else talk.reset()

    engine.answer(script)
    await client.post(CHAT, SAME)
    answer = await client.head()
    while EVENTS[1] not in answer.body:
        answer.body += await client.chunk()
    cut.set()
    await client.body(answer)

    assert not answer.whole
    assert await client.closed()
    *events, last_event = events_of(answer.body)
    assert events[:2] == [one[6:-2] for one in EVENTS[:2]]
    error = error_in(json.loads(last_event))
    assert (error["type"], error["code"]) == ("server_error", "stream_interrupted")
    await serving.settled()
    assert serving.outcomes("same") == {"truncated": 1}
    assert len(engine.requests) == 1


@pytest.mark.parametrize("ending", ["chunks", "connection"])
async def test_a_clean_end_without_finish_reason_is_an_interruption(
    client: Client, engine: ScriptedEngine, ending: str
) -> None:
    if ending == "chunks":
        engine.answer(stream(*EVENTS[:-1]))
    else:
        engine.answer(packets(ENDLESS, *EVENTS[:-1], fin=True))
    events, error = await broken(client)

    assert b"".join(b"data: %s\n\n" % one for one in events) == b"".join(EVENTS[:-1])
    assert error["code"] == "stream_interrupted"


async def test_one_finished_choice_of_two_is_an_interruption(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(stream(*EVENTS))
    _, error = await broken(client, SAME | {"n": 2})

    assert error["code"] == "stream_interrupted"


async def test_both_choices_finished_is_whole(client: Client, engine: ScriptedEngine) -> None:
    events = [*EVENTS, event(delta(finish="length", model="same", index=1))]
    engine.answer(stream(*events))

    assert await streamed(client, SAME | {"n": 2}) == b"".join([*events, DONE])


async def test_a_completion_has_a_choice_per_prompt(client: Client, engine: ScriptedEngine) -> None:
    def text(index: int, finish: str | None) -> bytes:
        choice = {"index": index, "text": "a", "finish_reason": finish}
        return event({"id": "cmpl-" + "0" * 32, "model": "same", "choices": [choice]})

    engine.answer(stream(text(0, None), text(1, None), text(0, "stop"), text(1, "stop")))
    await client.post(COMPLETIONS, {"model": "same", "prompt": ["x", "y"], "stream": True})
    answer = await client.answer()
    assert answer.whole
    assert answer.events[-1] == b"[DONE]"

    engine.answer(stream(text(0, None), text(0, "stop")))
    await client.post(COMPLETIONS, {"model": "same", "prompt": ["x", "y"], "stream": True})
    assert not (await client.answer()).whole


@pytest.mark.parametrize("number", ["9" * 30, "9" * 5000], ids=["30 digits", "5000 digits"])
async def test_an_absurd_number_of_choices_does_not_break_the_gateway(
    client: Client, engine: ScriptedEngine, serving: Serving, number: str
) -> None:
    engine.answer(stream(*EVENTS))
    await client.post(CHAT, compact(SAME)[:-1] + b',"n":' + number.encode() + b"}")
    answer = await client.answer()

    assert answer.status == 400 or not answer.whole
    await serving.settled()


@pytest.mark.parametrize(
    "events",
    [[], [b": ping\n\n"], [b"\n\n"], [DONE], [b": ping\n\n", DONE]],
    ids=["nothing", "a comment", "a blank line", "only [DONE]", "a comment and [DONE]"],
)
async def test_an_empty_stream_is_an_error_of_the_engine(
    client: Client, engine: ScriptedEngine, serving: Serving, events: list[bytes]
) -> None:
    engine.answer(stream(*events))
    await client.post(CHAT, SAME)
    answer = await client.answer()

    assert answer.status == 502
    assert answer.error["code"] == "engine_error"
    await serving.settled()


async def test_a_stream_that_was_not_asked_for_is_an_error_of_the_engine(
    client: Client, engine: ScriptedEngine
) -> None:
    engine.answer(stream(*EVENTS, DONE))
    await client.post(CHAT, SAME | {"stream": False})

    assert (await client.answer()).status == 502


async def test_a_whole_answer_instead_of_a_stream_is_an_error_of_the_engine(
    client: Client, engine: ScriptedEngine
) -> None:
    engine.answer(reply(b"{}"))
    await client.post(CHAT, SAME)

    assert (await client.answer()).status == 502


# ---- errors as events


@pytest.mark.parametrize(
    "before", [[], [b": ping\n\n"], EVENTS[:1]], ids=["first", "after a comment", "after the role"]
)
async def test_an_error_before_anything_was_said_is_an_http_error(
    client: Client, engine: ScriptedEngine, serving: Serving, before: list[bytes]
) -> None:
    error = event(vllm_error("shard-17 /opt/vllm/worker.py queue=93", 500, "InternalServerError"))
    engine.answer(stream(*before, error, DONE))
    await client.post(CHAT, SAME)
    answer = await client.answer()

    assert answer.status == 502
    assert answer.header("content-type") == "application/json"
    assert answer.error["code"] == "engine_error"
    assert b"shard-17" not in answer.body
    await serving.settled()


async def test_a_refusal_as_first_event_keeps_its_class(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(stream(event(vllm_error("'temperature' must be positive", 400)), DONE))
    await client.post(CHAT, SAME)
    answer = await client.answer()

    assert answer.status == 400
    assert answer.error["type"] == "invalid_request_error"


@pytest.mark.parametrize("packed", [False, True], ids=["apart", "in one packet"])
async def test_an_error_in_the_middle_ends_the_stream_without_done(
    client: Client, engine: ScriptedEngine, serving: Serving, packed: bool
) -> None:
    error = event(vllm_error("shard-17 <internal path> queue=93", 500, "InternalServerError"))
    parts = [*EVENTS[:2], error, DONE]
    engine.answer(stream(*([b"".join(parts)] if packed else parts)))
    events, told = await broken(client)

    assert events == [one[6:-2] for one in EVENTS[:2]]
    assert told["code"] == "engine_error"
    assert "shard-17" not in str(told)
    await serving.settled()
    assert serving.outcomes("same") == {"truncated": 1}


async def test_an_error_with_the_engine_still_talking_ends_its_request(client: Client, engine: ScriptedEngine) -> None:
    async def script(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*EVENTS[:2], event(vllm_error("x", 500)))
        await talk.stall()

    engine.answer(script)
    await broken(client)
    talk = await engine.request()
    await until(talk.left.is_set, 1.0, "the end of the engine's request")


# ---- another replica while nothing has been said


@pytest.mark.parametrize(
    "failing",
    [
        hang_up,
        reset,
        stream(),
        stream(EVENTS[0]),
        packets(stream_head() + chunked(EVENTS[0]), fin=True),
        stream(EVENTS[0], event(vllm_error("died", 500)), DONE),
        stream(event(vllm_error("died", 500)), DONE),
        stream(b": ping\n\n"),
        reply(b"", status=500),
        reply(b"<html>", status=502, content_type=b"text/html"),
        reply(vllm_error("busy", 503), status=503),
        reply(vllm_error("slow down", 429), status=429),
        packets(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 500\r\n\r\n", fin=True),
        packets(b"SSH-2.0-OpenSSH_9.6\r\n"),
        stream(*EVENTS, headers=[b"content-encoding: gzip"]),
    ],
    ids=[
        "hangs up",
        "resets",
        "an empty stream",
        "role, then a clean end",
        "role, then death",
        "role, then an error",
        "an error",
        "a comment only",
        "500",
        "502 in HTML",
        "503",
        "429",
        "a head and nothing else",
        "no HTTP",
        "no gzip",
    ],
)
async def test_another_replica_serves_when_one_fails_before_the_first_word(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine, failing: Script
) -> None:
    engine.answer(failing)
    other.answer(stream(*EVENTS, DONE))
    settings = one_engine(engine)
    settings["engines"]["e"]["urls"].append(other.url)
    settings["models"]["same"]["policy"] = "round_robin"
    serving = await gateway(settings)
    async with await serving.connect() as client:
        attempts = []
        for _ in range(2):
            await client.post(CHAT, SAME)
            answer = await client.answer()
            assert answer.body == b"".join([*EVENTS, DONE])
            assert answer.whole
            attempts.append(answer.header("x-turnout-attempts"))
    assert "2" in attempts
    await serving.settled()
    assert serving.outcomes("same") == {"served": 2}
    assert sum(serving.retries("same").values()) >= 1


async def test_no_other_replica_serves_once_something_was_said(gateway: Gateway, engine: ScriptedEngine) -> None:
    async with ScriptedEngine() as other:
        for one in (engine, other):
            one.answer(packets(stream_head() + chunked(EVENTS[0]) + chunked(EVENTS[1]), fin=True))
        settings = one_engine(engine)
        settings["engines"]["e"]["urls"].append(other.url)
        serving = await gateway(settings)
        async with await serving.connect() as client:
            events, _ = await broken(client)
        assert events == [one[6:-2] for one in EVENTS[:2]]
        assert len(engine.requests) + len(other.requests) == 1
        await serving.settled()
