"""Which headers cross, in both directions, and what every answer carries."""

import re
from functools import partial

import pytest

from engines.profile import EngineKind
from engines.simulator import build_app, start
from gateway.balance.endpoint import EndpointState
from gateway.proxy.links import EngineLink
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Client
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, completion, deltas, vllm_error
from tests.support.scripted import ScriptedEngine, Talk, in_turn, reply, stream
from tests.support.serving import Serving
from tests.support.waiting import until

SECRETS = [
    ("authorization", "Bearer sk-client-secret"),
    ("proxy-authorization", "Basic c2VjcmV0"),
    ("cookie", "session=client-secret"),
    ("x-api-key", "client-secret"),
    ("api-key", "client-secret"),
    ("x-goog-api-key", "client-secret"),
    ("x-amz-security-token", "client-secret"),
    ("openai-organization", "client-secret"),
]
HOP_BY_HOP = [
    ("connection", "keep-alive, x-private"),
    ("keep-alive", "timeout=5"),
    ("te", "trailers"),
    ("trailer", "x-sum"),
    ("upgrade-insecure-requests", "1"),
    ("x-private", "1"),
    ("x-forwarded-for", "10.0.0.1"),
    ("forwarded", "for=10.0.0.1"),
    ("user-agent", "OpenAI/Python"),
    ("accept", "text/html"),
    ("accept-encoding", "gzip, br, zstd"),
]
SENT = ["host", "content-type", "accept-encoding", "x-request-id", "content-length"]
"""All that an engine gets without being told otherwise, in this order."""


async def test_engines_get_the_gateways_headers_only(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion()))
    await client.post(CHAT, HELLO, [*SECRETS, *HOP_BY_HOP])

    assert (await client.answer()).status == 200
    request = engine.requests[0]
    assert request.names == SENT
    assert request.header("host") == f"127.0.0.1:{engine.port}".encode()
    assert request.header("content-type") == b"application/json"
    assert request.header("accept-encoding") == b"identity"
    assert not [value for _, value in request.headers if b"secret" in value]


async def test_an_engine_gets_its_own_key_and_never_the_clients(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, api_key="sk-engine%d"))
    engine.answer(reply(completion()))
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO, SECRETS)
        answer = await client.answer()

    assert answer.status == 200
    assert engine.requests[0].header("authorization") == b"Bearer sk-engine%d"
    assert "sk-engine" not in str(answer.headers)


async def test_a_key_may_have_a_header_of_its_own(gateway: Gateway, engine: ScriptedEngine) -> None:
    """Triton restricts its APIs by a header that its operator names; a bearer token says nothing to it."""
    serving = await gateway(one_engine(engine, "triton", api_key="sk-engine%d", api_key_header="Triton-Key"))
    engine.answer(reply(completion()))
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO, [*SECRETS, ("triton-key", "client-secret")])
        assert (await client.answer()).status == 200

    assert engine.requests[0].header("triton-key") == b"sk-engine%d"
    assert engine.requests[0].header("authorization") is None


def is_up(link: EngineLink) -> bool:
    return link.engine.endpoints[0].state is EndpointState.UP


async def test_a_restricted_triton_is_served_with_its_key(gateway: Gateway) -> None:
    """Requests and checks alike; with another key it is told that it refuses."""
    keys = ["inference:triton-key:k", "model-repository:triton-key:k", "health:triton-key:k"]
    triton = await start(build_app(EngineKind.TRITON, ["tiny"], api_keys=keys))
    engine: dict[str, Json] = {"kind": "triton", "urls": [triton.url], "api_key_header": "triton-key"}
    for key, status in (("k", 200), ("other", 502)):
        settings = {"engines": {"e": engine | {"api_key": key}}, "models": {"tiny": {"engine": "e"}}}
        serving = await gateway(settings, whole=True)
        link = serving.plane.engines["e"]
        async with await serving.connect() as client:
            await client.post(CHAT, HELLO | {"model": "tiny"})
            assert (await client.answer()).status == status
        if status == 200:
            await until(partial(is_up, link), what="a check that passes")
            assert link.refusing == set()
    await triton.stop()


async def test_an_empty_engine_key_is_no_key(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, api_key=""))
    engine.answer(reply(completion()))
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO, SECRETS)
        assert (await client.answer()).status == 200

    assert engine.requests[0].names == SENT


async def test_a_base_path_comes_before_every_path(gateway: Gateway, engine: ScriptedEngine) -> None:
    settings = one_engine(engine)
    settings["engines"]["e"]["urls"] = [engine.url + "/replica%20one/"]
    serving = await gateway(settings)
    engine.on("/replica%20one" + CHAT, reply(completion()))
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO)
        assert (await client.answer()).status == 200


async def test_trace_context_goes_on(client: Client, engine: ScriptedEngine) -> None:
    trace = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), ("tracestate", "a=1,b=2")]
    engine.answer(reply(completion()))
    await client.post(CHAT, HELLO, trace)

    assert (await client.answer()).status == 200
    for name, value in trace:
        assert engine.requests[0].header(name) == value.encode()


async def test_a_value_that_is_no_plain_text_does_not_go_on(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion()))
    await client.post(CHAT, HELLO, [("tracestate", "a=\xe9"), ("traceparent", "%s%d")])

    assert (await client.answer()).status == 200
    assert engine.requests[0].header("tracestate") is None
    assert engine.requests[0].header("traceparent") == b"%s%d"


@pytest.mark.parametrize("turned", [False, True], ids=["length first", "coding first"])
async def test_two_framings_at_once_are_refused(
    client: Client, serving: Serving, engine: ScriptedEngine, turned: bool
) -> None:
    """A request with a length and a transfer coding is one request to some and two to others."""
    lines = ["content-length: 4", "transfer-encoding: chunked"]
    head = "\r\n".join([f"POST {CHAT} HTTP/1.1", "host: x", *(reversed(lines) if turned else lines), "", ""])
    await client.send(head.encode() + b"0\r\n\r\n")
    answer = await client.answer()

    assert answer.status == 400
    assert await client.closed()
    assert engine.requests == []
    await serving.settled()


# ---- answers


LEAKS = (
    b"server: uvicorn",
    b"set-cookie: a=b",
    b"x-powered-by: vllm",
    b"x-echo-authorization: Bearer sk-engine",
    b"authorization: Bearer sk-engine",
    b"connection: keep-alive, x-private",
    b"x-private: 1",
    b"keep-alive: timeout=5",
    b"x-request-id: from-the-engine",
    b"location: http://10.0.0.1/",
    b"access-control-allow-origin: *",
    b"www-authenticate: Bearer",
)
ALWAYS = {"content-type", "x-request-id", "openai-processing-ms", "x-turnout-engine", "x-turnout-attempts"}


@pytest.mark.parametrize("kind", ["whole", "streamed", "error"])
async def test_clients_get_headers_of_the_allow_list_only(client: Client, engine: ScriptedEngine, kind: str) -> None:
    script = {
        "whole": reply(completion(), headers=LEAKS),
        "streamed": stream(*deltas("a"), DONE, headers=LEAKS),
        "error": reply(vllm_error("no"), status=400, headers=LEAKS),
    }[kind]
    framing = {
        "whole": {"content-length"},
        "streamed": {"transfer-encoding", "cache-control", "x-accel-buffering"},
        "error": {"content-length"},
    }[kind]
    engine.answer(script)
    await client.post(CHAT, STREAM if kind == "streamed" else HELLO)
    answer = await client.answer()

    assert sorted(name for name, _ in answer.headers) == sorted(ALWAYS | framing)
    assert answer.header("x-turnout-engine") == "e"
    assert answer.header("x-turnout-attempts") == "1"
    assert answer.header("x-request-id") != "from-the-engine"
    assert answer.header("transfer-encoding") == ("chunked" if kind == "streamed" else None)
    assert re.fullmatch(r"\d+", answer.header("openai-processing-ms") or "")


async def test_processing_time_is_in_milliseconds(client: Client, engine: ScriptedEngine, serving: Serving) -> None:
    async def late(talk: Talk) -> None:
        now = serving.plane.loop.time
        while now() < begun + 0.15:
            await client_is_waiting(talk)
        await reply(completion())(talk)

    async def client_is_waiting(talk: Talk) -> None:
        assert not talk.left.is_set()
        await serving.plane.loop.run_in_executor(None, lambda: None)

    begun = serving.plane.loop.time()
    engine.answer(late)
    await client.post(CHAT, HELLO)
    spent = int((await client.answer()).header("openai-processing-ms") or "")

    assert 100 <= spent <= (serving.plane.loop.time() - begun) * 1000 + 1


# ---- request ids


async def test_a_clean_id_of_the_client_comes_back_and_the_engine_gets_another(
    client: Client, engine: ScriptedEngine
) -> None:
    engine.answer(reply(completion()))
    ids = []
    for _ in range(2):
        await client.post(CHAT, HELLO, [("x-request-id", "my-id_1.2:3/4+5=6@7")])
        answer = await client.answer()
        assert answer.header("x-request-id") == "my-id_1.2:3/4+5=6@7"
    ids = [request.header("x-request-id") for request in engine.requests]

    assert len(set(ids)) == 2
    assert all(re.fullmatch(rb"[A-Za-z0-9-]{16,64}", one or b"") for one in ids)


@pytest.mark.parametrize(
    "dirty", ["", " ", "a b", "x" * 129, "\xe9", "<script>", "a\tb", "%0d%0aset-cookie:x", '"', "a;b", "x" * 60_000]
)
async def test_an_id_that_is_not_clean_is_replaced(client: Client, engine: ScriptedEngine, dirty: str) -> None:
    engine.answer(reply(completion()))
    await client.post(CHAT, HELLO, [("x-request-id", dirty)])
    answer = await client.answer()

    assert answer.status == 200
    assert re.fullmatch(r"[0-9a-f]{24}", answer.header("x-request-id") or "")


async def test_without_an_id_each_request_gets_its_own(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion()))
    seen = set()
    for _ in range(5):
        await client.post(CHAT, HELLO)
        seen.add((await client.answer()).header("x-request-id"))

    assert len(seen) == 5


async def test_each_attempt_has_an_id_of_its_own(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    settings = one_engine(engine)
    settings["engines"]["e"]["urls"].append(other.url)
    for one in (engine, other):
        one.answer(reply(vllm_error("x", 500), status=500))
    serving = await gateway(settings)
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO, [("x-request-id", "mine")])
        answer = await client.answer()

    assert answer.status == 502
    assert answer.header("x-request-id") == "mine"
    assert answer.header("x-turnout-attempts") == "2"
    first, second = (one.requests[0].header("x-request-id") for one in (engine, other))
    assert first != second


# ---- every error has them too


REFUSED: dict[str, tuple[Json, int]] = {
    "no JSON": (b"{", 400),
    "no model": ({"messages": []}, 400),
    "unknown model": ({"model": "nope", "messages": []}, 404),
    "wrong task": ({"model": "vectors", "messages": []}, 400),
    "too large": (b"[" + b" " * 5000, 413),
}


@pytest.mark.parametrize(("body", "status"), REFUSED.values(), ids=REFUSED)
async def test_refusals_carry_the_clients_id_and_the_time(
    gateway: Gateway, engine: ScriptedEngine, body: Json, status: int
) -> None:
    serving = await gateway(one_engine(engine, server={"max_body": 4096}))
    async with await serving.connect() as client:
        await client.post(CHAT, body, [("x-request-id", "mine")])
        answer = await client.answer()

    assert answer.status == status
    assert answer.error["type"] in {"invalid_request_error", "not_found_error"}
    assert answer.header("x-request-id") == "mine"
    assert answer.header("openai-processing-ms") is not None
    assert engine.requests == []


# ---- origins


PAGE = "https://chat.example.org"
CORS: dict[str, Json] = {"server": {"cors_origins": [PAGE]}}


@pytest.mark.parametrize("kind", ["whole", "streamed", "refused", "failed", "too large"])
async def test_an_allowed_page_may_read_every_answer(gateway: Gateway, engine: ScriptedEngine, kind: str) -> None:
    serving = await gateway(one_engine(engine, server={"cors_origins": [PAGE], "max_body": 4096}))
    engine.answer(
        {
            "whole": reply(completion()),
            "streamed": stream(*deltas("a"), DONE),
            "failed": reply(b"", status=500),
        }.get(kind, in_turn(reply(b"")))
    )
    body = {"streamed": STREAM, "refused": {"model": "nope"}, "too large": HELLO | {"x": "y" * 5000}}.get(kind, HELLO)
    async with await serving.connect() as client:
        await client.post(CHAT, body, [("origin", PAGE)])
        answer = await client.answer()

    assert answer.header("access-control-allow-origin") == PAGE
    assert answer.header("vary") == "origin"
    exposed = (answer.header("access-control-expose-headers") or "").lower().split(", ")
    assert {"x-request-id", "retry-after", "x-should-retry"} <= set(exposed)
    assert answer.header("access-control-allow-credentials") is None


@pytest.mark.parametrize("origin", ["https://evil.example.org", "null", PAGE + ".evil.org", PAGE.upper()])
async def test_another_page_may_read_nothing(gateway: Gateway, engine: ScriptedEngine, origin: str) -> None:
    serving = await gateway(one_engine(engine, server={"cors_origins": [PAGE]}))
    engine.answer(reply(completion()))
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO, [("origin", origin)])
        answer = await client.answer()

    assert answer.status == 200
    assert not [name for name, _ in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("origin", [PAGE, "https://evil.example.org"])
async def test_preflight_needs_no_key_and_follows_the_allow_list(
    gateway: Gateway, engine: ScriptedEngine, origin: str
) -> None:
    serving = await gateway(one_engine(engine, server={"cors_origins": [PAGE]}), whole=True)
    wanted = "authorization,content-type,x-stainless-os,x-stainless-retry-count"
    async with await serving.connect() as client:
        await client.send(
            f"OPTIONS {CHAT} HTTP/1.1\r\nhost: x\r\norigin: {origin}\r\naccess-control-request-method: POST\r\n"
            f"access-control-request-headers: {wanted}\r\n\r\n".encode()
        )
        answer = await client.head()

    if origin == PAGE:
        assert answer.status in (200, 204)
        assert answer.header("access-control-allow-origin") == PAGE
        allowed = {name.strip().lower() for name in (answer.header("access-control-allow-headers") or "").split(",")}
        assert set(wanted.split(",")) <= allowed or {"*", "authorization"} <= allowed
        assert "POST" in (answer.header("access-control-allow-methods") or "")
    else:
        assert answer.header("access-control-allow-origin") is None
