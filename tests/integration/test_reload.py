"""A configuration that changes while the gateway serves."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.balance.endpoint import EndpointState
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, completion, deltas
from tests.support.scripted import Script, ScriptedEngine, Talk, reply, stream
from tests.support.serving import Serving
from tests.support.waiting import until

EVENTS = deltas("a", "b")


async def call(serving: Serving, method: str, path: str, headers: tuple[str, ...] = (), body: str = "") -> Answer:
    async with await serving.connect() as client:
        lines = [f"{method} {path} HTTP/1.1", "host: localhost", *headers, f"content-length: {len(body)}", "", body]
        await client.send("\r\n".join(lines).encode())
        return await client.answer()


async def ask(serving: Serving, body: Mapping[str, Json] = HELLO) -> Answer:
    async with await serving.connect() as client:
        await client.post(CHAT, dict(body))
        return await client.answer()


async def reload(serving: Serving, settings: Mapping[str, Json] | str) -> Answer:
    serving.write(settings)
    return await call(serving, "POST", "/admin/reload")


async def models(serving: Serving) -> list[str]:
    return [one["id"] for one in (await call(serving, "GET", "/v1/models")).json["data"]]


def held_back(go: asyncio.Event) -> Script:
    """A stream that goes on when it may."""

    async def talk(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*EVENTS[:3])
        await go.wait()
        await talk.chunk(*EVENTS[3:], DONE)
        await talk.end_chunks()

    return talk


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "turnout.yaml"


async def test_an_edit_is_noticed_and_put_in_force(gateway: Gateway, engine: ScriptedEngine, file: Path) -> None:
    """Nobody has to ask for it; hash, load time, metrics and listing say so."""
    engine.answer(reply(completion()))
    serving = await gateway(one_engine(engine), whole=True, file=file)
    before = (await call(serving, "GET", "/admin/config")).json
    edited = one_engine(engine)
    edited["models"] = {"other": {"engine": "e"}}
    serving.write(edited)
    await until(lambda: list(serving.plane.asked) == ["other"], what="the new configuration")
    after = (await call(serving, "GET", "/admin/config")).json

    assert await models(serving) == ["other"]
    assert set(after) == {"hash", "loaded_at", "source", "error", "restart_needed"}
    assert (after["source"], after["error"], after["restart_needed"]) == (str(file), None, [])
    assert after["hash"] != before["hash"]
    assert after["loaded_at"] > before["loaded_at"]
    metrics = (await call(serving, "GET", "/metrics")).body.decode()
    assert f'turnout_config_info{{hash="{after["hash"]}"}} 1.0' in metrics
    assert "turnout_config_last_reload_successful 1.0" in metrics


async def test_a_running_stream_ends_on_the_configuration_it_began_with(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine, file: Path
) -> None:
    """Even if its engine and its model are gone by then."""
    go = asyncio.Event()
    engine.answer(held_back(go))
    other.answer(stream(*EVENTS, DONE))
    serving = await gateway(one_engine(engine), whole=True, file=file)
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM)
        await engine.request()
        old = serving.plane
        edited = one_engine(other)
        edited["models"] = {"n": {"engine": "e"}}
        assert (await reload(serving, edited)).status == 200
        assert (await ask(serving, STREAM)).error["code"] == "model_not_found"
        assert (await ask(serving, STREAM | {"model": "n"})).events[-1] == b"[DONE]"
        go.set()
        answer = await client.answer()

    assert answer.events[-1] == b"[DONE]"
    assert len(engine.requests) == 1
    await until(lambda: not any(endpoint.in_flight for endpoint in old.endpoints), what="gauges at zero")
    await serving.settled()


async def test_a_bad_file_leaves_the_old_one_in_force_until_a_good_one_comes(
    gateway: Gateway, engine: ScriptedEngine, file: Path
) -> None:
    """It is still ready, and says in every place that something is wrong."""
    engine.answer(reply(completion()))
    serving = await gateway(one_engine(engine), whole=True, file=file)
    await until(lambda: serving.plane.engines["e"].engine.endpoints[0].state is EndpointState.UP, what="health")
    good = (await call(serving, "GET", "/admin/config")).json
    assert (await call(serving, "GET", "/readyz")).json == {"status": "ready", "reasons": []}

    refused = await reload(serving, "engines: {e: {kind: vlm, urls: [http://127.0.0.1:1]}}\nmodels: {m: {engine: e}}\n")
    assert (refused.status, refused.error["code"]) == (400, "invalid_config")
    assert f'{file}:1:21: engines.e.kind: expected one of vllm, trtllm, triton, not "vlm"' in refused.error["message"]
    shown = (await call(serving, "GET", "/admin/config")).json
    assert (shown["hash"], shown["loaded_at"]) == (good["hash"], good["loaded_at"])
    assert 'did you mean "vllm"?' in shown["error"]
    ready = await call(serving, "GET", "/readyz")
    assert (ready.status, ready.json["status"]) == (200, "degraded")
    (reason,) = ready.json["reasons"]
    assert reason.startswith("config: ")
    assert str(file) not in reason
    metrics = (await call(serving, "GET", "/metrics")).body.decode()
    assert "turnout_config_last_reload_successful 0.0" in metrics
    assert f'turnout_config_info{{hash="{good["hash"]}"}} 1.0' in metrics
    assert (await ask(serving)).status == 200

    edited = one_engine(engine)
    edited["models"] = {"n": {"engine": "e"}}
    serving.write(edited)
    await until(lambda: list(serving.plane.asked) == ["n"], what="the good file")
    assert (await call(serving, "GET", "/readyz")).json == {"status": "ready", "reasons": []}
    assert (await call(serving, "GET", "/admin/config")).json["error"] is None


async def test_the_way_back_to_what_is_in_force_is_a_repair_too(
    gateway: Gateway, engine: ScriptedEngine, file: Path
) -> None:
    serving = await gateway(one_engine(engine), whole=True, file=file)
    assert (await reload(serving, "engines: [")).status == 400
    repaired = await reload(serving, one_engine(engine))

    assert (repaired.status, repaired.json["error"]) == (200, None)


async def test_what_is_known_of_endpoints_outlasts_a_change_of_their_engine(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine, file: Path
) -> None:
    """Health, connections and load stay; new keys, limits and timeouts hold."""
    engine.answer(reply(completion()))
    settings = one_engine(engine, api_key="sk-1")
    serving = await gateway(settings, whole=True, file=file)
    assert (await ask(serving)).status == 200
    ((endpoint, link),) = serving.plane.endpoints.items()
    await until(lambda: endpoint.state is EndpointState.UP, what="health")
    edited = one_engine(engine, api_key="sk-2", max_in_flight=7, timeouts={"connect": "1s"})
    edited["engines"]["e"]["urls"].insert(0, other.url)
    assert (await reload(serving, edited)).status == 200

    now = serving.plane.endpoints
    assert [one.url for one in now] == [other.url, engine.url]
    assert now[endpoint].pool is link.pool
    assert link.pool.idle == 1
    assert (endpoint.state, endpoint.max_in_flight) == (EndpointState.UP, 7)
    other.answer(reply(completion()))
    for _ in range(4):
        assert (await ask(serving)).status == 200
    assert engine.requests[-1].header("authorization") == b"Bearer sk-2"
    assert len({request.connection for request in engine.requests}) == 1


async def test_a_replica_that_was_taken_back_does_not_drain_for_a_moment(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine, file: Path
) -> None:
    """All replicas of an engine were drained, then one was taken back: a reload changes nothing, and logs nothing."""
    settings = one_engine(engine)
    settings["engines"]["e"]["urls"].append(other.url)
    serving = await gateway(settings, whole=True, file=file)
    endpoints = serving.plane.engines["e"].engine.endpoints
    await until(lambda: all(one.state is EndpointState.UP for one in endpoints), what="health")
    assert (await call(serving, "POST", "/admin/engines/e/drain")).status == 200
    back = json.dumps({"url": other.url})
    json_type = ("content-type: application/json",)
    assert (await call(serving, "POST", "/admin/engines/e/undrain", json_type, back)).status == 200
    with capture_logs() as logs:
        edited = settings | {"models": {"n": {"engine": "e"}}}
        assert (await reload(serving, edited)).status == 200

    assert list(serving.plane.asked) == ["n"]
    states = [one.state for one in serving.plane.engines["e"].engine.endpoints]
    assert states == [EndpointState.DRAINING, EndpointState.UP]
    assert [line for line in logs if line["event"].startswith("endpoint is")] == []


async def test_what_needs_a_restart_is_said_and_the_rest_holds(
    gateway: Gateway, engine: ScriptedEngine, file: Path
) -> None:
    serving = await gateway(one_engine(engine), whole=True, file=file)
    answer = await reload(serving, one_engine(engine, server={"port": 7000, "max_body": 10}))

    assert answer.json["restart_needed"] == ["server.port: 8080 until a restart, then 7000"]
    assert (await ask(serving)).status == 413
    back = await reload(serving, one_engine(engine))
    assert back.json["restart_needed"] == []


async def test_keys_of_the_control_plane_change_too(gateway: Gateway, engine: ScriptedEngine, file: Path) -> None:
    """The admin token and the origins of web pages."""
    origin = "origin: https://chat.example.org"
    serving = await gateway(one_engine(engine), whole=True, file=file)
    assert (await call(serving, "GET", "/v1/models", (origin,))).header("access-control-allow-origin") is None
    edited = one_engine(engine, server={"cors_origins": ["https://chat.example.org"]})
    edited["admin"] = {"token": "secret-token"}
    assert (await reload(serving, edited)).status == 200

    allowed = (await call(serving, "GET", "/v1/models", (origin,))).header("access-control-allow-origin")
    assert allowed == "https://chat.example.org"
    assert (await call(serving, "GET", "/admin/config")).status == 401
    token = ("authorization: Bearer secret-token",)
    full = await call(serving, "GET", "/admin/config?full=true", token)
    assert full.json["settings"]["server"] == {"cors_origins": ["https://chat.example.org"]}
    assert b"secret-token" not in full.body


async def test_without_a_file_there_is_nothing_to_reload(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine), whole=True)
    refused = await call(serving, "POST", "/admin/reload")

    assert (refused.status, refused.error["code"]) == (400, "no_config_file")
    shown = (await call(serving, "GET", "/admin/config")).json
    assert (shown["hash"], shown["source"]) == (None, None)


async def test_models_are_discovered_or_not_as_the_file_says(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine, file: Path
) -> None:
    """A change is in force when it is complete: requests for discovered models are served from the first one on."""
    for number, one in enumerate((engine, other)):
        one.on("/v1/models", reply({"object": "list", "data": [{"id": f"found-{number}"}]}))
        one.answer(reply(completion()))
    serving = await gateway(one_engine(engine), whole=True, file=file)
    listing: dict[str, Json] = {"engines": {"e": {"kind": "triton", "urls": [engine.url]}}}
    assert (await reload(serving, listing)).status == 200
    assert await models(serving) == ["found-0"]
    listing["engines"]["f"] = {"kind": "triton", "urls": [other.url]}
    assert (await reload(serving, listing)).status == 200
    assert await models(serving) == ["found-0", "found-1"]
    assert (await ask(serving, HELLO | {"model": "found-1"})).status == 200
    assert (await reload(serving, one_engine(engine))).status == 200

    assert await models(serving) == ["m", "gpt-4o", "same", "vectors"]


async def test_under_load_no_reload_costs_a_request(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine, file: Path
) -> None:
    """Engines come, go, and change their settings, again and again; streams and short requests go on all the while."""
    go = asyncio.Event()
    engine.answer(stream(*EVENTS, DONE))
    other.answer(stream(*EVENTS, DONE))
    both = one_engine(engine, max_in_flight=50)
    both["engines"]["e"]["urls"].append(other.url)
    one = one_engine(other, timeouts={"idle": "20s"})
    renamed = one_engine(engine)
    renamed["engines"]["f"] = {"kind": "trtllm", "urls": [other.url]}
    renamed["models"]["m"] = {"targets": [{"engine": "f", "model": "org/m"}, {"engine": "e", "model": "org/m"}]}
    serving = await gateway(both, whole=True, file=file)
    answers: list[Answer] = []

    async def caller() -> None:
        async with await serving.connect() as client:
            while not go.is_set():
                await client.post(CHAT, STREAM)
                answers.append(await client.answer())

    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(caller())
        for number in range(30):
            answer = await reload(serving, (one, renamed, both)[number % 3])
            assert answer.status == 200, answer.body
            served = len(answers)
            await until(lambda: len(answers) > served, what="requests between two reloads")  # noqa: B023 - awaited here
        go.set()

    assert {(answer.status, answer.events[-1]) for answer in answers} == {(200, b"[DONE]")}
    assert len(engine.requests) + len(other.requests) == len(answers)
    await serving.settled()
