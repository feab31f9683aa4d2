"""What applications must not notice: replicas that fail, fall silent or die, and time limits of a client's own."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from gateway.balance import evidence
from gateway.balance.endpoint import EndpointState
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, DONE, EMBEDDINGS, HELLO, STREAM, completion, deltas, vllm_error
from tests.support.scripted import ScriptedEngine, Talk, gzipped, packets, reply, reset, silent, stream, whole
from tests.support.serving import Serving
from tests.support.waiting import until

Engines = Callable[[], Awaitable[ScriptedEngine]]
ANSWER = reply(completion())
EVENTS = deltas("a", "b")
LATE = 0.8
"""Seconds by which a limit may be overrun on a busy machine."""


def two_replicas(engine: ScriptedEngine, other: ScriptedEngine, **settings: Json) -> dict[str, Json]:
    found = one_engine(engine, **settings)
    found["engines"]["e"]["urls"].append(other.url)
    return found


async def ask(
    serving: Serving, body: Mapping[str, Json] = HELLO, headers: Sequence[tuple[str, str]] = (), path: str = CHAT
) -> Answer:
    async with await serving.connect() as client:
        await client.post(path, dict(body), headers)
        return await client.answer()


async def pause(serving: Serving, seconds: float) -> None:
    """Lets the gateway's clock go on."""
    end = serving.plane.loop.time() + seconds
    await until(lambda: serving.plane.loop.time() >= end)


def take_down(serving: Serving, at: int) -> None:
    """What three failed health checks do."""
    link = serving.plane.engines["e"]
    endpoint = link.engine.endpoints[at]
    for _ in range(3):
        evidence.check_failed(link.engine, endpoint, "nobody listens", serving.plane.loop.time(), refused=True)
    assert endpoint.state is EndpointState.DOWN


# ---- failures before and after the commit


async def test_a_role_alone_commits_to_nothing(gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine) -> None:
    """The preamble is held back, so the replay shows one beginning and not two (case D43)."""

    async def role_then_reset(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(EVENTS[0])
        await pause(serving, 0.1)
        talk.reset()

    serving = await gateway(two_replicas(engine, other))
    engine.answer(role_then_reset)
    other.answer(stream(*EVENTS, DONE))
    answers = [await ask(serving, STREAM) for _ in range(2)]

    assert engine.requests
    for answer in answers:
        assert answer.whole
        assert answer.body.count(b'"role"') == 1
        assert answer.events[-1] == b"[DONE]"
    await serving.settled()


async def test_a_stream_that_breaks_is_never_replayed(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """A reset after some tokens ends the stream, is recorded as such, and nobody generates them again (case D44)."""

    async def breaks(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*EVENTS[:3])
        await pause(serving, 0.1)
        talk.reset()

    serving = await gateway(two_replicas(engine, other))
    for one in (engine, other):
        one.answer(breaks)
    answer = await ask(serving, STREAM)

    assert answer.status == 200
    assert not answer.whole
    assert b'"stream_interrupted"' in answer.events[-1]
    assert len(engine.requests) + len(other.requests) == 1
    await serving.settled()
    assert serving.outcomes() == {"truncated": 1}


async def test_an_error_inside_a_stream_is_one_that_clients_try_again(gateway: Gateway, engine: ScriptedEngine) -> None:
    """A timeout that the engine reports in the stream is no mistake of the client (case D45)."""
    error = b'data: {"error":{"message":"timed out","type":"TimeoutError","param":null,"code":"request_timeout"}}\n\n'
    engine.answer(stream(*EVENTS[:3], error))
    serving = await gateway(one_engine(engine))
    answer = await ask(serving, STREAM)

    assert not answer.whole
    assert b'"server_error"' in answer.events[-1]
    assert b"invalid_request_error" not in answer.body


async def test_silence_in_the_middle_of_a_stream_ends_it(gateway: Gateway, engine: ScriptedEngine) -> None:
    """Some tokens, then nothing for ever (case D48)."""

    async def falls_silent(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*EVENTS[:3])
        await talk.stall()

    engine.answer(falls_silent)
    serving = await gateway(one_engine(engine, timeouts={"idle": 0.3}))
    answer = await ask(serving, STREAM)

    assert b'"engine_timeout"' in answer.events[-1]
    await until((await engine.request()).left.is_set, 1.0, "the end of the engine's request")
    await serving.settled()


@pytest.mark.parametrize("body", [HELLO, STREAM], ids=["whole", "streamed"])
@pytest.mark.parametrize("begun", [False, True], ids=["nothing", "head"])
async def test_leaving_before_the_first_token_reaches_the_engine(
    gateway: Gateway, engine: ScriptedEngine, body: Json, begun: bool
) -> None:
    """In both modes, whether or not the engine has sent its head (cases D39, D40 and D41)."""

    async def slow(talk: Talk) -> None:
        if begun:
            await talk.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        await talk.stall()

    engine.answer(slow)
    serving = await gateway(one_engine(engine))
    async with await serving.connect() as client:
        await client.post(CHAT, body)
        talk = await engine.request()
        await pause(serving, 0.3)
        client.leave()
        await until(talk.left.is_set, 1.0, "the end of the engine's request")
    await serving.settled()
    assert serving.outcomes() == {"client_gone": 1}


async def test_every_attempt_has_an_id_of_its_own(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """Two clients with one id, and a retry: no engine sees an id twice (case D51)."""
    serving = await gateway(two_replicas(engine, other))
    for one in (engine, other):
        one.answer(reply(b"", status=500))
    for _ in range(2):
        answer = await ask(serving, headers=[("x-request-id", "mine")])
        assert answer.header("x-request-id") == "mine"

    ids = [request.header("x-request-id") for request in (*engine.requests, *other.requests)]
    assert len(ids) == len(set(ids)) == 4
    assert all(one is not None and len(one) < 64 for one in ids)


# ---- a replica that fails


async def test_a_replica_that_only_fails_is_out_after_five(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """At once, not at the next sweep of some task (case F67); its clients have seen nothing."""
    engine.answer(reply(b"", status=500))
    other.answer(ANSWER)
    settings = two_replicas(engine, other)
    settings["models"]["m"]["policy"] = "round_robin"
    serving = await gateway(settings)
    statuses = [(await ask(serving)).status for _ in range(30)]

    assert statuses == [200] * 30
    assert len(engine.requests) == 5
    assert serving.plane.engines["e"].engine.endpoints[0].state is EndpointState.EJECTED
    await serving.settled()


@pytest.mark.parametrize("script", [reply(b"", status=502), reset], ids=["502", "reset"])
async def test_working_health_with_failing_chats_is_noticed(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine, script: Callable[[Talk], Awaitable[None]]
) -> None:
    """Its health check passes all the while, and the reason names both signals (case F68)."""
    engine.answer(script)
    other.answer(ANSWER)
    serving = await gateway(two_replicas(engine, other, health={"interval": 0.2}), whole=True)
    first = serving.plane.engines["e"].engine.endpoints[0]
    await until(lambda: first.state is EndpointState.UP, what="the health check")
    for _ in range(20):
        assert (await ask(serving)).status == 200

    assert first.state is EndpointState.EJECTED
    assert "health check passes" in first.reason
    counted = {
        sample.name: sample.value
        for metric in serving.meters.collect()
        for sample in metric.samples
        if sample.name.startswith("turnout_ejections") or sample.labels.get("position") == "open"
    }
    assert counted == {"turnout_ejections_total": 1, "turnout_circuit_changes_total": 1}
    await serving.settled()


async def test_mistakes_of_clients_eject_nobody(gateway: Gateway, engine: ScriptedEngine) -> None:
    """Twenty prompts that are too long, then a good one (case F65)."""
    serving = await gateway(one_engine(engine))
    for status in (400, 404, 413, 422):
        engine.answer(reply(vllm_error("no", status), status=status))
        for _ in range(6):
            assert (await ask(serving)).status < 500
    engine.answer(ANSWER)

    assert (await ask(serving)).status == 200
    assert serving.plane.engines["e"].engine.endpoints[0].state is EndpointState.UNKNOWN


async def test_health_checks_go_on_after_the_configuration_has_changed(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    """Two changes, then the engine dies: that is still noticed (case F69)."""
    settings = one_engine(engine, health={"interval": 0.1})
    serving = await gateway(settings, whole=True)
    for workers in ("first", "second"):
        settings["models"][workers] = {"engine": "e"}
        serving.apply(settings)
    endpoint = serving.plane.engines["e"].engine.endpoints[0]
    await until(lambda: endpoint.state is EndpointState.UP, what="the health check")
    await engine.stop()

    await until(lambda: endpoint.state is EndpointState.DOWN, what="the end of the engine")


async def test_calls_on_a_dead_endpoint_move_elsewhere_at_once(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """A replica accepts and falls silent; when its health checks have failed, nobody waits for its timeout."""
    engine.answer(silent)
    other.answer(silent)
    serving = await gateway(two_replicas(engine, other), whole=True)
    tasks = [asyncio.ensure_future(ask(serving, body)) for body in (HELLO, STREAM) * 2]
    await engine.request(2)
    await other.request(2)

    async def by_mode(talk: Talk) -> None:
        await (stream(*EVENTS, DONE) if talk.request.json.get("stream") else ANSWER)(talk)

    other.answer(by_mode)
    take_down(serving, 0)
    await other.request(4)
    moved = [await task for task in tasks if (await asyncio.wait([task], timeout=LATE))[0]]

    assert len(moved) == 2
    assert all(answer.status == 200 and answer.header("x-turnout-attempts") == "2" for answer in moved)
    assert all(talk.left.is_set() for talk in engine.talks)
    assert serving.retries() == {"endpoint_down": 2}
    for talk in other.talks[:2]:
        talk.fin()
    await asyncio.gather(*tasks)
    await serving.settled()


async def test_calls_stay_where_there_is_nowhere_else(gateway: Gateway, engine: ScriptedEngine) -> None:
    """The only replica's health check fails while it works on an answer: the answer counts."""
    go = asyncio.Event()

    async def held(talk: Talk) -> None:
        await go.wait()
        await ANSWER(talk)

    engine.answer(held)
    serving = await gateway(one_engine(engine), whole=True)
    task = asyncio.ensure_future(ask(serving))
    talk = await engine.request()
    take_down(serving, 0)
    await pause(serving, 0.2)
    assert not talk.left.is_set()
    go.set()

    assert (await task).status == 200
    await serving.settled()


async def test_a_committed_stream_stays_on_a_replica_that_is_called_dead(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    go = asyncio.Event()

    async def slow(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*EVENTS[:3])
        await go.wait()
        await talk.chunk(*EVENTS[3:], DONE)
        await talk.end_chunks()

    for one in (engine, other):
        one.answer(slow)
    settings = two_replicas(engine, other)
    serving = await gateway(settings, whole=True)
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM)
        answer = await client.head()
        for at in (0, 1):
            take_down(serving, at)
        go.set()
        await client.body(answer)

    assert answer.events[-1] == b"[DONE]"
    assert answer.header("x-turnout-attempts") == "1"
    await serving.settled()


# ---- errors as clients see them


@pytest.mark.parametrize("path", [CHAT, EMBEDDINGS, "/v1/messages"])
async def test_the_engines_retry_after_reaches_clients_of_every_path(
    gateway: Gateway, engine: ScriptedEngine, path: str
) -> None:
    """A client that is told nothing comes back at once (cases F63 and F64)."""
    engine.on(path, reply(vllm_error("slow down", 429), status=429, headers=[b"retry-after: 7"]))
    serving = await gateway(one_engine(engine))
    body = {"model": "vectors", "input": "x"} if path == EMBEDDINGS else HELLO | {"max_tokens": 5}
    answer = await ask(serving, body, path=path)

    assert answer.status == 429
    assert answer.header("retry-after") == "7"


async def test_the_wrong_kind_of_model_is_the_clients_mistake(gateway: Gateway, engine: ScriptedEngine) -> None:
    """Embeddings of a chat model: a 400 in the one shape, no 503 (case F71)."""
    serving = await gateway(one_engine(engine))
    answer = await ask(serving, {"model": "m", "input": "x"}, path=EMBEDDINGS)

    assert answer.status == 400
    assert answer.error["type"] == "invalid_request_error"
    assert engine.requests == []


@pytest.mark.parametrize(
    ("status", "seen", "outcome"), [(400, 400, "rejected"), (422, 400, "rejected"), (500, 502, "failed")]
)
async def test_outcomes_say_whose_mistake_it_was(
    gateway: Gateway, engine: ScriptedEngine, status: int, seen: int, outcome: str
) -> None:
    """The class of an error is kept, and counted apart (case F72)."""
    engine.answer(reply(vllm_error("no", status), status=status))
    serving = await gateway(one_engine(engine))

    assert (await ask(serving)).status == seen
    await serving.settled()
    assert serving.outcomes() == {outcome: 1}


async def test_a_failed_stream_is_no_success(gateway: Gateway, engine: ScriptedEngine) -> None:
    """How a stream ended decides what is counted, not its status (case F73)."""
    engine.answer(stream(*EVENTS[:3], b'data: {"error":{"message":"CUDA error","code":500}}\n\n'))
    serving = await gateway(one_engine(engine))
    assert (await ask(serving, STREAM)).status == 200

    await serving.settled()
    assert serving.outcomes() == {"truncated": 1}


async def test_a_compressed_error_can_be_read(gateway: Gateway, engine: ScriptedEngine) -> None:
    """Whatever the engine compresses, the client gets plain JSON without a label (case F75)."""
    body = b"".join(gzipped(b'{"error":{"message":"slow down","type":"x","param":null,"code":429}}'))
    engine.answer(packets(whole(body, status=429, headers=[b"content-encoding: gzip"])))
    serving = await gateway(one_engine(engine))
    answer = await ask(serving)

    assert answer.status == 429
    assert answer.header("content-encoding") is None
    assert answer.error["message"]


async def test_a_body_that_is_too_large_is_a_413(gateway: Gateway, engine: ScriptedEngine) -> None:
    """In the one error shape (case F76)."""
    serving = await gateway(one_engine(engine, server={"max_body": 1000}))
    answer = await ask(serving, HELLO | {"user": "x" * 2000})

    assert (answer.status, answer.error["type"]) == (413, "invalid_request_error")


async def test_an_error_without_words_gets_some(gateway: Gateway, engine: ScriptedEngine) -> None:
    """And it stays the engine's (case F77)."""
    engine.answer(reply(vllm_error("", 500), status=500))
    serving = await gateway(one_engine(engine))
    answer = await ask(serving)

    assert answer.status == 502
    assert answer.error["message"]
    assert answer.header("x-request-id")


# ---- time limits


async def test_a_clients_own_limit_never_counts_against_an_engine(gateway: Gateway, engine: ScriptedEngine) -> None:
    """Six requests that wanted an answer sooner than it could be there, then one with patience (case D52)."""
    serving = await gateway(one_engine(engine))
    engine.answer(silent)
    for name in ("x-turnout-timeout", "x-stainless-read-timeout"):
        for _ in range(6):
            begun = serving.plane.loop.time()
            answer = await ask(serving, headers=[(name, "0.2")])
            assert (answer.status, answer.error["code"]) == (504, "engine_timeout")
            assert 0.2 <= serving.plane.loop.time() - begun < 0.2 + LATE
    endpoint = serving.plane.engines["e"].engine.endpoints[0]
    assert endpoint.state is EndpointState.UNKNOWN
    assert endpoint.breaker.counts(serving.plane.loop.time()) == (0, 0)
    engine.answer(ANSWER)

    assert (await ask(serving)).status == 200


@pytest.mark.parametrize(("value", "limit"), [("250ms", 0.25), ("0.25", 0.25), ("1h", None), ("600", None)])
async def test_a_client_can_only_lower_a_limit(
    gateway: Gateway, engine: ScriptedEngine, value: str, limit: float | None
) -> None:
    serving = await gateway(one_engine(engine, timeouts={"total": 0.6}))
    engine.answer(silent)
    begun = serving.plane.loop.time()
    answer = await ask(serving, headers=[("x-turnout-timeout", value)])
    spent = serving.plane.loop.time() - begun

    assert answer.status == 504
    assert (limit or 0.6) <= spent < (limit or 0.6) + LATE


@pytest.mark.parametrize("value", ["soon", "0", "-1", "", "1e9999", "1_0"])
async def test_a_limit_that_cannot_be_read_is_refused(gateway: Gateway, engine: ScriptedEngine, value: str) -> None:
    serving = await gateway(one_engine(engine))
    async with await serving.connect() as client:
        await client.send(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-turnout-timeout: "
            + value.encode()
            + b"\r\ncontent-length: 13\r\n\r\n"
            + b'{"model":"m"}'
        )
        answer = await client.answer()

    assert (answer.status, answer.error["code"]) == (400, "invalid_header")
    assert engine.requests == []
    await serving.settled()


async def test_a_hint_that_cannot_be_read_is_no_hint(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(ANSWER)
    serving = await gateway(one_engine(engine))

    assert (await ask(serving, headers=[("x-stainless-read-timeout", "None")])).status == 200


async def test_a_model_may_have_other_limits_than_its_engine(gateway: Gateway, engine: ScriptedEngine) -> None:
    settings = one_engine(engine, timeouts={"first_token": 0.2})
    settings["models"]["m"]["timeouts"] = {"first_token": 5}
    serving = await gateway(settings)

    async def slow(talk: Talk) -> None:
        await pause(serving, 0.5)
        await ANSWER(talk)

    engine.answer(slow)
    assert (await ask(serving)).status == 200
    assert (await ask(serving, HELLO | {"model": "same"})).status == 504


async def test_a_late_first_token_is_tried_elsewhere_if_wanted(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """`retry.on_timeout`: the other replica answers."""
    engine.answer(silent)
    other.answer(ANSWER)
    settings = two_replicas(engine, other, timeouts={"first_token": 0.2})
    settings["retry"] = {"on_timeout": True}
    serving = await gateway(settings)
    answers = [await ask(serving) for _ in range(2)]

    assert [answer.status for answer in answers] == [200, 200]
    assert serving.retries() == {"timeout": 1}
    await serving.settled()


async def test_an_empty_budget_stops_retries(gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine) -> None:
    """Ten a second are always granted; beyond them, the share of recent requests."""
    for one in (engine, other):
        one.answer(reply(b"", status=500))
    settings = two_replicas(engine, other)
    settings["retry"] = {"budget": "0%"}
    serving = await gateway(settings)
    answers = await asyncio.gather(*(ask(serving) for _ in range(60)))

    assert {answer.status for answer in answers} == {502}
    assert len(engine.requests) + len(other.requests) <= 60 + 25
    await serving.settled()


# ---- under load


async def test_the_control_plane_answers_while_large_prompts_pass(gateway: Gateway, engine: ScriptedEngine) -> None:
    """Prompts of a megabyte, and the liveness probe beside them (cases E59 and E60)."""
    engine.answer(ANSWER)
    serving = await gateway(one_engine(engine), whole=True)
    body = HELLO | {"messages": [{"role": "user", "content": "word " * 200_000}]}
    tasks = [asyncio.ensure_future(ask(serving, body)) for _ in range(20)]
    slowest = 0.0
    while not all(task.done() for task in tasks):
        begun = serving.plane.loop.time()
        async with await serving.connect() as client:
            await client.send(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            assert (await client.answer()).status == 200
        slowest = max(slowest, serving.plane.loop.time() - begun)

    assert {(await task).status for task in tasks} == {200}
    # The clients and the engine of this test share the loop, so the bound is wide.
    assert slowest < 1.0


async def test_many_open_streams_all_finish(gateway: Gateway, engine: ScriptedEngine) -> None:
    """Hundreds of slow streams, and the probe passes (case E61; thousands are the load test's)."""
    go = asyncio.Event()

    async def slow(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*EVENTS[:2])
        await go.wait()
        await talk.chunk(*EVENTS[2:], DONE)
        await talk.end_chunks()

    engine.answer(slow)
    serving = await gateway(one_engine(engine), whole=True)
    tasks = [asyncio.ensure_future(ask(serving, STREAM)) for _ in range(200)]
    await engine.request(200)
    async with await serving.connect() as client:
        await client.send(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await client.answer()).status == 200
    go.set()
    answers = await asyncio.gather(*tasks)

    assert all(answer.events[-1] == b"[DONE]" for answer in answers)
    await serving.settled()
