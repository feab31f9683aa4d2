"""Who may look at the inside, what is shown, and draining."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, completion, deltas
from tests.support.scripted import ScriptedEngine, Talk, reply, stream
from tests.support.serving import Serving
from tests.support.waiting import until

EVENTS = deltas("a", "b")


async def call(
    serving: Serving,
    method: str,
    path: str,
    body: Json = None,
    headers: Sequence[tuple[str, str]] = (),
    host: str = "localhost",
) -> Answer:
    data = b"" if body is None else str(body).replace("'", '"').encode()
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", "content-type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers]
    async with await serving.connect() as client:
        await client.send("\r\n".join([*lines, f"content-length: {len(data)}", "", ""]).encode() + data)
        return await client.answer()


async def ask(serving: Serving, body: Mapping[str, Json] = HELLO) -> Answer:
    async with await serving.connect() as client:
        await client.post(CHAT, dict(body))
        return await client.answer()


async def test_engines_are_shown_with_their_endpoints(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    settings = one_engine(engine, api_key="sk-own")
    settings["engines"]["e"]["urls"].append(other.url)
    serving = await gateway(settings, whole=True)
    answer = await call(serving, "GET", "/admin/engines")

    assert answer.status == 200
    (shown,) = answer.json
    assert (shown["name"], shown["kind"], set(shown)) == ("e", "vllm", {"name", "kind", "version", "endpoints"})
    assert [endpoint["url"] for endpoint in shown["endpoints"]] == [engine.url, other.url]
    assert {frozenset(endpoint) for endpoint in shown["endpoints"]} == {
        frozenset({"url", "state", "reason", "in_flight"})
    }
    assert b"sk-own" not in answer.body


async def test_what_an_engine_does_with_each_parameter(gateway: Gateway, engine: ScriptedEngine) -> None:
    """As its build and its settings have it: the usual profile with the variants that fit."""
    engine.on("/version", reply({"version": "0.32.0", "rust_frontend_version": "0.1.0"}))
    settings = one_engine(engine)
    settings["engines"]["t"] = {"kind": "trtllm", "urls": [engine.url + "/t"], "guided_decoding": False}
    serving = await gateway(settings, whole=True)
    await until(lambda: serving.plane.engines["e"].build.rust_frontend, what="a look at the version")
    rust = (await call(serving, "GET", "/admin/engines/e/capabilities")).json
    trtllm = (await call(serving, "GET", "/admin/engines/t/capabilities")).json

    assert (rust["kind"], trtllm["kind"]) == ("vllm", "trtllm")
    assert "responses" not in rust["operations"]
    assert rust["operations"]["chat"]["parameters"]["n"]["policy"] == "emulate"
    assert trtllm["operations"]["chat"]["parameters"]["response_format"]["policy"] == "reject"
    missing = await call(serving, "GET", "/admin/engines/x/capabilities")
    assert (missing.status, missing.error["code"]) == (404, "engine_not_found")


async def test_a_drained_endpoint_finishes_what_it_has_and_gets_nothing_new(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    go = asyncio.Event()

    async def slow(talk: Talk) -> None:
        await talk.start_stream()
        await talk.chunk(*EVENTS[:3])
        await go.wait()
        await talk.chunk(*EVENTS[3:], DONE)
        await talk.end_chunks()

    engine.answer(slow)
    other.answer(stream(*EVENTS, DONE))
    settings = one_engine(engine)
    settings["engines"]["e"]["urls"].append(other.url)
    serving = await gateway(settings, whole=True)
    async with await serving.connect() as client:
        await client.post(CHAT, STREAM)
        await engine.request()
        drained = await call(serving, "POST", "/admin/engines/e/drain", {"url": engine.url})
        assert drained.json["endpoints"][0] == {
            "url": engine.url,
            "state": "draining",
            "reason": "drained by an operator",
            "in_flight": 1,
        }
        for _ in range(3):
            assert (await ask(serving, STREAM)).events[-1] == b"[DONE]"
        go.set()
        assert (await client.answer()).events[-1] == b"[DONE]"

    assert len(engine.requests) == 1
    back = await call(serving, "POST", "/admin/engines/e/undrain", {"url": engine.url})
    assert back.json["endpoints"][0]["state"] in {"up", "unknown"}
    engine.answer(stream(*EVENTS, DONE))
    for _ in range(4):
        await ask(serving, STREAM)
    assert len(engine.requests) > 1
    await serving.settled()


@pytest.mark.parametrize("spelled", ["{url}/", "{url}//", "HTTP://{host}", "{host}", "{host}/", " {url} "])
async def test_a_replica_may_be_spelled_as_in_the_file(gateway: Gateway, engine: ScriptedEngine, spelled: str) -> None:
    serving = await gateway(one_engine(engine), whole=True)
    url = spelled.format(url=engine.url, host=engine.url.removeprefix("http://"))
    for order, states in (("drain", {"draining"}), ("undrain", {"up", "unknown"})):
        answer = await call(serving, "POST", f"/admin/engines/e/{order}", {"url": url})
        assert answer.status == 200
        assert answer.json["endpoints"][0]["state"] in states


@pytest.mark.parametrize(
    ("path", "url", "told"),
    [
        ("/admin/engines/e/drain", "http://127.0.0.1:1", "no replica http://127.0.0.1:1; it has {url}."),
        ("/admin/engines/e/drain", "not a url", "no replica not a url; it has {url}."),
        ("/admin/engines/e/undrain", "", "it has {url}."),
        ("/admin/engines/E/undrain", "{url}", "There is no engine 'E' (did you mean \"e\"?)."),
        ("/admin/engines/zzz/undrain", "{url}", "There is no engine 'zzz' (there is: e)."),
    ],
)
async def test_who_names_what_is_not_there_is_told_what_is(
    gateway: Gateway, engine: ScriptedEngine, path: str, url: str, told: str
) -> None:
    serving = await gateway(one_engine(engine), whole=True)
    answer = await call(serving, "POST", path, {"url": url.format(url=engine.url)})

    assert (answer.status, answer.error["code"]) == (404, "engine_not_found")
    assert told.format(url=engine.url) in str(answer.error["message"])


async def test_a_whole_engine_is_drained_without_a_url(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion()))
    serving = await gateway(one_engine(engine), whole=True)
    assert (await call(serving, "POST", "/admin/engines/e/drain")).status == 200
    refused = await ask(serving)
    assert (refused.status, refused.error["code"]) == (503, "engine_unavailable")
    assert (await call(serving, "POST", "/admin/engines/e/undrain", {})).status == 200

    assert (await ask(serving)).status == 200


async def test_what_is_drained_stays_so_when_the_configuration_changes(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """Even if the change is to the engine itself; a replica that it gains drains with it."""
    engine.answer(reply(completion()))
    serving = await gateway(one_engine(engine), whole=True)
    assert (await call(serving, "POST", "/admin/engines/e/drain")).status == 200
    changed = one_engine(engine, timeouts={"idle": "30s"})
    changed["engines"]["e"]["urls"].append(other.url)
    serving.apply(changed)
    shown = await call(serving, "GET", "/admin/engines")
    assert [endpoint["state"] for endpoint in shown.json[0]["endpoints"]] == ["draining", "draining"]
    await call(serving, "POST", "/admin/engines/e/undrain")
    serving.apply(one_engine(engine))

    assert (await ask(serving)).status == 200


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/admin/engines/nope/drain", None, 404),
        ("/admin/engines/e/drain", {"url": "http://127.0.0.1:1"}, 404),
        ("/admin/engines/e/drain", {"urls": "x"}, 400),
        ("/admin/engines/e/drain", [], 400),
    ],
)
async def test_what_is_not_there_cannot_be_drained(
    gateway: Gateway, engine: ScriptedEngine, path: str, body: Json, status: int
) -> None:
    serving = await gateway(one_engine(engine), whole=True)
    answer = await call(serving, "POST", path, body)

    assert answer.status == status
    assert answer.error["message"]
    assert [endpoint.state.value for endpoint in serving.plane.endpoints] != ["draining"]


@pytest.mark.parametrize(
    ("header", "status"),
    [(None, 401), ("Bearer wrong", 401), ("Bearer ", 401), ("sk-admin", 401), ("Bearer sk-admin", 200)],
)
async def test_a_token_is_asked_for_where_there_is_one(
    gateway: Gateway, engine: ScriptedEngine, header: str | None, status: int
) -> None:
    serving = await gateway(one_engine(engine) | {"admin": {"token": "sk-admin"}}, whole=True)
    headers = [] if header is None else [("authorization", header)]
    for method, path in (("GET", "/admin/engines"), ("POST", "/admin/engines/e/undrain")):
        answer = await call(serving, method, path, headers=headers, host="gateway.example")
        assert answer.status == status
        assert status == 200 or answer.error["type"] == "authentication_error"


@pytest.mark.parametrize(
    ("host", "headers"),
    [
        ("gateway.example", []),
        ("127.0.0.1.evil.example", []),
        ("localhost", [("origin", "http://evil.example")]),
        ("", []),
    ],
)
async def test_without_a_token_no_web_page_gets_in(
    gateway: Gateway, engine: ScriptedEngine, host: str, headers: Sequence[tuple[str, str]]
) -> None:
    """A browser on this machine connects from this machine, for whichever page it shows."""
    serving = await gateway(one_engine(engine), whole=True)
    answer = await call(serving, "POST", "/admin/engines/e/drain", headers=headers, host=host)

    assert (answer.status, answer.error["type"]) == (403, "permission_error")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST"])
async def test_without_a_token_this_machine_gets_in(gateway: Gateway, engine: ScriptedEngine, host: str) -> None:
    serving = await gateway(one_engine(engine), whole=True)

    assert (await call(serving, "GET", "/admin/engines", host=host)).status == 200


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("engines/e/drain", b'{"urls": "x"}', "'urls' is not known here."),
        ("engines/e/drain", b'{"url": 5}', "'url' should be a valid string."),
        ("engines/e/drain", b"[]", "The request body must be a JSON object, and its content-type: application/json."),
        ("engines/e/drain", b"{", "The request body is not valid JSON: "),
        ("tools/parse", b"", "The request has no body; a JSON object is expected."),
        ("tools/parse", b'{"text": "x"}', "'format' is required."),
    ],
)
async def test_a_body_that_does_not_fit_is_refused_in_words(
    gateway: Gateway, engine: ScriptedEngine, path: str, body: bytes, message: str
) -> None:
    """Whether or not its type is given."""
    serving = await gateway(one_engine(engine), whole=True)
    for line in ("content-type: application/json\r\n", ""):
        async with await serving.connect() as client:
            head = f"POST /admin/{path} HTTP/1.1\r\nhost: localhost\r\n{line}content-length: {len(body)}\r\n\r\n"
            await client.send(head.encode() + body)
            answer = await client.answer()
        assert (answer.status, answer.error["type"]) == (400, "invalid_request_error")
        assert str(answer.error["message"]).startswith(message)


async def test_a_body_without_a_type_is_taken_for_json(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine), whole=True)
    body = f'{{"url": "{engine.url}"}}'
    async with await serving.connect() as client:
        line = f"POST /admin/engines/e/drain HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
        await client.send(line.encode() + body.encode())
        answer = await client.answer()

    assert answer.json["endpoints"][0]["state"] == "draining"
