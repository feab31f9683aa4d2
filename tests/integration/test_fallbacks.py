"""Other models that stand in, and what the client is told about it."""

import asyncio
import json
from collections.abc import Mapping

import pytest

from tests.integration.conftest import Gateway
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, completion, deltas, vllm_error
from tests.support.scripted import ScriptedEngine, Talk, hang_up, reply, silent, stream
from tests.support.serving import Serving

TOO_LONG = reply(
    vllm_error("This model's maximum context length is 2048 tokens. However, you requested 3000 tokens."), status=400
)
BUSY = reply(vllm_error("busy", 503, "ServiceUnavailableError"), status=503, headers=[b"retry-after: 3"])


def two_models(
    engine: ScriptedEngine, other: ScriptedEngine, *, first: Mapping[str, Json] | None = None, **model: Json
) -> dict[str, Json]:
    """Model `m` on the first engine; `spare` on the second stands in for it."""
    return {
        "engines": {
            "e": {"kind": "vllm", "urls": [engine.url], **(first or {})},
            "f": {"kind": "trtllm", "urls": [other.url]},
        },
        "models": {
            "m": {"engine": "e", "aliases": ["gpt-4o"], "fallbacks": ["spare"], **model},
            "spare": {"engine": "f", "model": "org/spare"},
        },
    }


async def ask(serving: Serving, body: Mapping[str, Json] = HELLO) -> Answer:
    async with await serving.connect() as client:
        await client.post(CHAT, dict(body))
        return await client.answer()


def told(answer: Answer) -> tuple[str | None, str | None]:
    return answer.header("x-turnout-fallback"), answer.header("x-turnout-fallback-reason")


async def test_another_model_answers_when_no_engine_can_be_reached(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """Under the name that was asked for, with the truth in the headers."""
    await engine.stop()
    other.answer(reply(completion(model="org/spare")))
    serving = await gateway(two_models(engine, other))
    for name in ("m", "gpt-4o"):
        answer = await ask(serving, HELLO | {"model": name})
        assert answer.status == 200
        assert answer.json["model"] == name
        assert answer.header("x-turnout-engine") == "f"
        assert told(answer) == ("spare", "engine_loss")

    assert [request.json["model"] for request in other.requests] == ["org/spare"] * 2
    await serving.settled()
    assert serving.outcomes("spare", "f") == {"served": 2}


@pytest.mark.parametrize("script", [hang_up, reply(b"", status=500), BUSY], ids=["dies", "fails", "busy"])
async def test_another_model_answers_after_the_first_has_failed(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine, script: object
) -> None:
    engine.answer(script)  # type: ignore[arg-type]  # a script
    other.answer(stream(*deltas("a", model="org/spare"), DONE))
    serving = await gateway(two_models(engine, other))
    answer = await ask(serving, STREAM)

    assert answer.events[-1] == b"[DONE]"
    assert {json.loads(event)["model"] for event in answer.events[:-1]} == {"m"}
    assert told(answer) == ("spare", "overload" if script is BUSY else "engine_loss")
    assert answer.header("x-turnout-attempts") == "2"
    await serving.settled()


async def test_another_model_answers_when_all_replicas_are_full(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """At once, without a wait in the queue."""
    go = asyncio.Event()

    async def held(talk: Talk) -> None:
        await go.wait()
        await reply(completion())(talk)

    engine.answer(held)
    other.answer(reply(completion()))
    serving = await gateway(two_models(engine, other, first={"max_in_flight": 1}))
    first = asyncio.ensure_future(ask(serving))
    await engine.request()
    second = await ask(serving)
    go.set()

    assert (await first).header("x-turnout-fallback") is None
    assert told(second) == ("spare", "overload")
    await serving.settled()


@pytest.mark.parametrize("opted_in", [True, False])
async def test_a_prompt_that_is_too_long_goes_elsewhere_only_if_wanted(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine, opted_in: bool
) -> None:
    engine.answer(TOO_LONG)
    other.answer(reply(completion()))
    more: dict[str, Json] = {"fallback_on": ["context_length"]} if opted_in else {}
    serving = await gateway(two_models(engine, other, **more))
    answer = await ask(serving)

    if opted_in:
        assert answer.status == 200
        assert told(answer) == ("spare", "context_length")
    else:
        assert (answer.status, answer.error["code"]) == (400, "context_length_exceeded")
        assert other.requests == []
    await serving.settled()


async def test_a_longer_model_may_run_on_the_same_engine(gateway: Gateway, engine: ScriptedEngine) -> None:
    """The endpoint that refused the prompt is asked again, for another model."""

    async def by_model(talk: Talk) -> None:
        await (TOO_LONG if talk.request.json["model"] == "short" else reply(completion()))(talk)

    engine.answer(by_model)
    serving = await gateway(
        {
            "engines": {"e": {"kind": "vllm", "urls": [engine.url]}},
            "models": {
                "short": {"engine": "e", "fallbacks": ["long"], "fallback_on": ["context_length"]},
                "long": {"engine": "e"},
            },
        }
    )
    answer = await ask(serving, HELLO | {"model": "short"})

    assert answer.status == 200
    assert answer.json["model"] == "short"
    assert told(answer) == ("long", "context_length")


async def test_the_first_model_that_can_stands_in(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """In their order; one that is away is passed over, and the error is the first model's if all are."""
    await engine.stop()
    settings = two_models(engine, other, fallbacks=["away", "spare"])
    settings["models"]["away"] = {"engine": "e", "model": "x"}
    serving = await gateway(settings)
    other.answer(reply(completion()))
    assert told(await ask(serving)) == ("spare", "engine_loss")

    other.answer(reply(b"", status=500))
    answer = await ask(serving)
    assert answer.status == 502
    assert told(answer) == ("spare", "engine_loss")
    await serving.settled()


async def test_models_that_stand_in_for_each_other_are_asked_once_each(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    settings = two_models(engine, other)
    settings["models"]["spare"]["fallbacks"] = ["m"]
    serving = await gateway(settings)
    for one in (engine, other):
        one.answer(reply(b"", status=500))
    answer = await ask(serving)

    assert answer.status == 502
    assert (len(engine.requests), len(other.requests)) == (1, 1)
    await serving.settled()


async def test_a_mistake_of_the_client_calls_for_no_other_model(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    engine.answer(reply(vllm_error("'temperature' must be at most 2"), status=400))
    serving = await gateway(two_models(engine, other))

    assert (await ask(serving)).status == 400
    assert other.requests == []


async def test_a_late_first_token_calls_for_no_other_model(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """The client has waited long enough, unless `retry.on_timeout` says otherwise."""
    engine.answer(silent)
    other.answer(reply(completion()))
    settings = two_models(engine, other, timeouts={"first_token": 0.2})
    serving = await gateway(settings)
    assert (await ask(serving)).status == 504
    assert other.requests == []

    patient = await gateway(settings | {"retry": {"on_timeout": True}})
    assert told(await ask(patient)) == ("spare", "engine_loss")
    await patient.settled()


async def test_fallbacks_are_counted(gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine) -> None:
    await engine.stop()
    other.answer(reply(completion()))
    serving = await gateway(two_models(engine, other))
    await ask(serving)

    counted = [
        sample.labels
        for metric in serving.meters.collect()
        for sample in metric.samples
        if sample.name == "turnout_fallbacks_total"
    ]
    assert counted == [{"model": "m", "fallback": "spare", "reason": "engine_loss"}]
