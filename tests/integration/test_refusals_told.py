"""What every refusal tells beside its body: how many attempts there were, and which engine was asked last."""

import asyncio

import pytest

from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.keys import KEY, bearer, key_entry
from tests.support.named_bytes import MESSAGES, TELL
from tests.support.openai_bytes import CHAT, EMBEDDINGS, HELLO, STREAM, completion, vllm_error
from tests.support.scripted import ScriptedEngine, Talk, reply
from tests.support.serving import Serving
from tests.support.waiting import until

NO_KEY: list[tuple[str, str]] = []
ATTEMPTS = "x-turnout-attempts"
ENGINE = "x-turnout-engine"

REFUSED: dict[str, tuple[str, Json, list[tuple[str, str]], int]] = {
    "no JSON": (CHAT, b"{", bearer(), 400),
    "another type": (CHAT, HELLO, [*bearer(), ("content-encoding", "gzip")], 400),
    "wrong task": (EMBEDDINGS, {"model": "m", "input": "x"}, bearer(), 400),
    "no key": (CHAT, HELLO, NO_KEY, 401),
    "a model that is not the key's": (CHAT, HELLO, bearer("sk-narrow"), 403),
    "unknown model": (CHAT, HELLO | {"model": "nope"}, bearer(), 404),
    "too large": (CHAT, b"[" + b" " * 5000, bearer(), 413),
    "over the limit": (CHAT, HELLO, bearer("sk-spent"), 429),
    "no replica": (CHAT, HELLO | {"model": "drained"}, bearer(), 503),
    "no replica for a stream": (CHAT, STREAM | {"model": "drained"}, bearer(), 503),
}


@pytest.fixture
async def guarded(gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine) -> Serving:
    """A gateway that has a reason for every refusal; nothing is left of the limit of `sk-spent`."""
    engine.answer(reply(completion()))
    settings = one_engine(engine, server={"max_body": 4096})
    settings["engines"]["d"] = {"kind": "vllm", "urls": [other.url]}
    settings["models"]["drained"] = {"engine": "d"}
    keys = [
        key_entry("team-a"),
        key_entry("narrow", "sk-narrow", models=["same"]),
        key_entry("spent", "sk-spent", limits={"rpm": 1}),
    ]
    serving = await gateway(settings | {"keys": keys})
    serving.plane.engines["d"].engine.drain(serving.plane.loop.time())
    assert (await ask(serving, CHAT, HELLO, bearer("sk-spent"))).status == 200
    return serving


async def ask(serving: Serving, path: str, body: Json, headers: list[tuple[str, str]]) -> Answer:
    async with await serving.connect() as client:
        await client.post(path, body, headers)
        return await client.answer()


@pytest.mark.parametrize(("path", "body", "headers", "status"), REFUSED.values(), ids=REFUSED)
async def test_a_refusal_by_the_gateway_says_that_no_engine_was_asked(
    guarded: Serving, path: str, body: Json, headers: list[tuple[str, str]], status: int
) -> None:
    answer = await ask(guarded, path, body, headers)

    assert answer.status == status
    assert answer.header(ATTEMPTS) == "0"
    assert answer.header(ENGINE) is None
    assert answer.header("x-request-id")
    assert answer.header("openai-processing-ms")


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [(TELL, NO_KEY, 401), (b"[" + b" " * 5000, bearer(), 413), (TELL | {"model": "nope"}, bearer(), 404)],
)
async def test_anthropics_clients_find_the_id_of_a_refusal_where_they_look_for_it(
    guarded: Serving, body: Json, headers: list[tuple[str, str]], status: int
) -> None:
    answer = await ask(guarded, MESSAGES, body, [*headers, ("x-request-id", "mine")])

    assert answer.status == status
    assert answer.header("request-id") == answer.header("x-request-id") == "mine"
    assert answer.json["request_id"] == "mine"
    assert answer.header(ATTEMPTS) == "0"


@pytest.mark.parametrize(("status", "told"), [(500, 502), (400, 400), (429, 429)])
async def test_an_error_after_attempts_names_the_engine_that_was_asked_last(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine, status: int, told: int
) -> None:
    settings = one_engine(engine)
    settings["engines"]["f"] = {"kind": "vllm", "urls": [other.url]}
    settings["models"]["both"] = {"targets": [{"engine": "e"}, {"engine": "f"}], "policy": "round_robin"}
    for one in (engine, other):
        one.answer(reply(vllm_error("no", status), status=status))
    answer = await ask(await gateway(settings), CHAT, HELLO | {"model": "both"}, NO_KEY)

    asked = {"e": len(engine.requests), "f": len(other.requests)}
    assert answer.status == told
    assert answer.header(ATTEMPTS) == str(sum(asked.values()))
    assert answer.header(ENGINE) in [name for name, count in asked.items() if count]


async def test_who_found_no_place_in_the_queue_was_not_tried(gateway: Gateway, engine: ScriptedEngine) -> None:
    release = asyncio.Event()

    async def held(talk: Talk) -> None:
        await release.wait()
        await reply(completion())(talk)

    engine.answer(held)
    settings = one_engine(engine, max_in_flight=1) | {"admission": {"queue": 0, "wait": "10s"}}
    serving = await gateway(settings)
    async with await serving.connect() as first:
        await first.post(CHAT, HELLO)
        await until(lambda: len(engine.requests) == 1, what="the first request")
        answer = await ask(serving, CHAT, HELLO, NO_KEY)
        release.set()
        assert (await first.answer()).header(ATTEMPTS) == "1"

    assert answer.status == 503
    assert answer.header(ATTEMPTS) == "0"
    assert answer.header(ENGINE) is None


async def test_what_is_not_http_was_not_tried(guarded: Serving) -> None:
    async with await guarded.connect() as client:
        await client.send(b"POST " + CHAT.encode() + b" HTTP/1.1\r\nbad header\r\n\r\n")
        answer = await client.answer()

    assert answer.status == 400
    assert answer.header(ATTEMPTS) == "0"
    assert KEY.encode() not in answer.body
