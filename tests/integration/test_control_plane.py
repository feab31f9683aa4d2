"""Everything that is not a forwarded path: models, health, metrics, pages, and their errors."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Never

import httpx2
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_prometheus

from engines.profile import EngineKind
from gateway.app import Application, create_app
from gateway.balance import evidence
from gateway.balance.endpoint import EndpointState
from gateway.proxy.paths import PATHS
from gateway.proxy.plane import Asked
from gateway.settings.tree import Settings
from tests.integration.conftest import one_engine
from tests.support.client import error_in
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, COMPLETIONS, EMBEDDINGS, HELLO, completion
from tests.support.scripted import ScriptedEngine, reply, silent
from tests.support.waiting import until

NOWHERE = "http://127.0.0.1:9"
FORWARDED = (CHAT, COMPLETIONS, EMBEDDINGS)


class Running:
    """An application in its lifespan, and a client that speaks ASGI to it."""

    def __init__(self, application: Application, client: httpx2.AsyncClient) -> None:
        self.application = application
        self.client = client

    def take_down(self, engine: str = "e") -> None:
        """What three failed checks do."""
        plane = self.application.gateway.plane
        for endpoint in plane.engines[engine].engine.endpoints:
            while endpoint.state.value != "down":
                evidence.check_failed(
                    plane.engines[engine].engine, endpoint, "nobody listens at its address", plane.loop.time()
                )


class Fallible(dict[str, Asked]):
    """A table with a defect."""

    def get(self, key: str, default: object = None) -> Never:
        raise RuntimeError("a reason of the inside")

    def values(self) -> Never:
        raise RuntimeError("a reason of the inside")


Start = Callable[[Mapping[str, Json]], Awaitable[Running]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts gateways."""
    async with AsyncExitStack() as stack:

        async def start_one(settings: Mapping[str, Json]) -> Running:
            application = create_app(Settings.model_validate(settings), config_hash="abc123")
            api = application.gateway.api
            await stack.enter_async_context(api.router.lifespan_context(api))
            transport = httpx2.ASGITransport(application, raise_app_exceptions=False)
            client = httpx2.AsyncClient(transport=transport, base_url="http://gateway.test")
            return Running(application, await stack.enter_async_context(client))

        yield start_one


@pytest.fixture
async def client(start: Start, engine: ScriptedEngine) -> httpx2.AsyncClient:
    """A client of a gateway in front of one healthy engine."""
    return (await start(one_engine(engine))).client


async def test_every_name_and_alias_is_a_model(start: Start) -> None:
    """Whatever state the engines are in."""
    running = await start(
        {
            "engines": {"e": {"kind": "vllm", "urls": [NOWHERE]}},
            "models": {
                "org/m": {"engine": "e", "aliases": ["gpt-4o"]},
                "vectors": {"engine": "e", "task": "embedding"},
            },
        }
    )
    running.take_down()
    listed = (await running.client.get("/v1/models")).json()

    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == ["org/m", "gpt-4o", "vectors"]
    for model in listed["data"]:
        assert set(model) == {"id", "object", "created", "owned_by"}
        assert model["object"] == "model"
        assert model["created"] > 1_700_000_000
        assert (await running.client.get(f"/v1/models/{model['id']}")).json() == model


async def test_models_are_listed_while_engines_hang_fail_or_talk_nonsense(
    start: Start, engines: Callable[[], Awaitable[ScriptedEngine]]
) -> None:
    """What is configured is listed at once; no engine is asked for it."""
    scripts = {"hangs": silent, "fails": reply(b"", status=500), "html": reply(b"<html>", content_type=b"text/html")}
    settings: dict[str, Json] = {"engines": {"away": {"kind": "vllm", "urls": [NOWHERE]}}, "models": {}}
    for name, script in scripts.items():
        engine = await engines()
        engine.on("/v1/models", script)
        settings["engines"][name] = {"kind": "vllm", "urls": [engine.url]}
    for name in settings["engines"]:
        settings["models"][f"on-{name}"] = {"engine": name}
    running = await start(settings)
    answer = await running.client.get("/v1/models")

    assert answer.status_code == 200
    assert [model["id"] for model in answer.json()["data"]] == ["on-away", "on-hangs", "on-fails", "on-html"]


async def test_a_slash_at_the_end_makes_no_difference_to_the_list(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/v1/models/")).json() == (await client.get("/v1/models")).json()


async def test_an_unknown_model_is_a_404_that_says_where_to_look(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/v1/models/no/such")

    assert answer.status_code == 404
    error = error_in(answer.json())
    assert (error["type"], error["code"]) == ("not_found_error", "model_not_found")
    assert "/v1/models" in str(error["message"])


async def test_a_process_that_answers_is_alive(start: Start) -> None:
    running = await start({"engines": {"e": {"kind": "vllm", "urls": [NOWHERE]}}})
    answer = await running.client.get("/healthz")

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_readiness_follows_the_engines(start: Start, engine: ScriptedEngine) -> None:
    """Ready, degraded while one engine is away, not ready without any; reasons name engines and no addresses."""
    running = await start(
        {
            "engines": {"a": {"kind": "vllm", "urls": [engine.url]}, "b": {"kind": "triton", "urls": [NOWHERE]}},
            "models": {"m": {"targets": [{"engine": "a"}, {"engine": "b"}]}},
        }
    )

    async def readiness() -> tuple[int, Json]:
        answer = await running.client.get("/readyz")
        return answer.status_code, answer.json()

    assert await readiness() == (200, {"status": "ready", "reasons": []})
    running.take_down("b")
    down = "engine {}: no endpoint serves (down)"
    assert await readiness() == (200, {"status": "degraded", "reasons": [down.format("b")]})
    running.take_down("a")
    assert await readiness() == (503, {"status": "not_ready", "reasons": [down.format("a"), down.format("b")]})


async def test_an_ejected_engine_may_still_serve(start: Start) -> None:
    """It is the last resort, so traffic should keep coming here; but somebody should look."""
    running = await start(
        {
            "engines": {"e": {"kind": "vllm", "urls": [NOWHERE]}},
            "models": {"m": {"engine": "e"}},
            "retry": {"attempts": 1},
        }
    )
    engine = running.application.gateway.plane.engines["e"].engine
    while engine.endpoints[0].state is not EndpointState.EJECTED:
        assert engine.endpoints[0].state is EndpointState.UNKNOWN
        assert (await running.client.post(CHAT, json=HELLO)).status_code == 503
    answer = await running.client.get("/readyz")

    assert answer.status_code == 200
    reason = "engine e: requests fail, and are tried there only as a last resort (ejected)"
    assert answer.json() == {"status": "degraded", "reasons": [reason]}


async def test_one_missing_replica_is_told_and_a_drained_one_is_not(
    start: Start, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    settings = one_engine(engine)
    settings["engines"]["e"]["urls"].append(other.url)
    running = await start(settings)
    balance = running.application.gateway.plane.engines["e"].engine
    balance.drain(0.0, other.url)
    assert (await running.client.get("/readyz")).json() == {"status": "ready", "reasons": []}
    balance.undrain(0.0, other.url)
    while balance.endpoints[1].state is not EndpointState.DOWN:
        evidence.check_failed(balance, balance.endpoints[1], "no answer", 0.0, refused=True)
    answer = await running.client.get("/readyz")

    assert answer.status_code == 200
    assert answer.json() == {"status": "degraded", "reasons": ["engine e: 1 of 2 endpoints down"]}


async def test_an_engine_that_does_not_take_our_key_is_told(start: Start, engine: ScriptedEngine) -> None:
    """Until it does."""
    running = await start(one_engine(engine))
    link = running.application.gateway.plane.engines["e"]
    link.refusing.add(link.engine.endpoints[0])
    answer = await running.client.get("/readyz")

    assert answer.status_code == 200
    assert answer.json() == {"status": "degraded", "reasons": ["engine e: refuses the gateway's credentials"]}


async def test_an_engine_of_another_kind_is_told(start: Start, engine: ScriptedEngine) -> None:
    running = await start(one_engine(engine))
    link = running.application.gateway.plane.engines["e"]
    link.mistaken[link.engine.endpoints[0]] = EngineKind.TRITON
    answer = await running.client.get("/readyz")

    assert answer.json()["status"] == "degraded"
    assert answer.json()["reasons"] == ["engine e: seems to be triton, and is configured as vllm"]


async def test_without_any_model_it_is_not_ready(start: Start, engine: ScriptedEngine) -> None:
    running = await start({"engines": {"e": {"kind": "vllm", "urls": [engine.url]}}})
    answer = await running.client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["reasons"] == ["no model is known: no engine has listed one yet"]


@pytest.mark.parametrize(
    ("accept", "read"), [("", read_prometheus), ("application/openmetrics-text; version=1.0.0", read_openmetrics)]
)
async def test_metrics_can_be_read_by_prometheus(
    start: Start, engine: ScriptedEngine, accept: str, read: Callable[[str], object]
) -> None:
    engine.answer(reply(completion(model="org/m")))
    running = await start(one_engine(engine))
    assert (await running.client.post(CHAT, json=HELLO)).status_code == 200
    await running.client.post(CHAT, json=HELLO | {"model": "no such"})
    answer = await running.client.get("/metrics", headers={"accept": accept})
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in read(answer.text)  # type: ignore[attr-defined]
        for sample in family.samples
    }

    assert answer.headers["content-type"].startswith(accept.split(";", 1)[0] or "text/plain")
    served = ("turnout_requests_total", ("engine", "e"), ("model", "m"), ("outcome", "served"))
    assert samples[served] == 1
    assert samples["turnout_endpoint_up", ("endpoint", engine.url), ("engine", "e")] == 1
    assert samples["turnout_tokens_total", ("direction", "output"), ("engine", "e"), ("model", "m")] == 2
    assert samples["turnout_config_info", ("hash", "abc123")] == 1
    assert "process_resident_memory_bytes" in {name for name, *_ in samples}
    assert "no such" not in answer.text
    running.take_down()
    assert (
        f'turnout_endpoint_up{{endpoint="{engine.url}",engine="e"}} 0.0' in (await running.client.get("/metrics")).text
    )


async def test_nobody_waits_while_a_thousand_models_are_written_down(start: Start, engine: ScriptedEngine) -> None:
    """Whoever asks whether the gateway lives during a scrape has the answer before the scrape has its own."""
    running = await start(one_engine(engine))
    for number in range(1000):
        running.application.gateway.meters.meter(f"model-{number}", "e").ended("served", 0.1)
    answered: list[str] = []

    async def get(path: str) -> httpx2.Response:
        answer = await running.client.get(path)
        answered.append(path)
        return answer

    scrape = asyncio.ensure_future(get("/metrics"))
    meters = running.application.gateway.meters
    await until(lambda: bool(meters._endpoints) or scrape.done(), what="the scrape")
    alive = await get("/healthz")
    metrics = await scrape

    assert answered == ["/healthz", "/metrics"]
    assert alive.status_code == 200
    assert metrics.text.count('outcome="served"} 1.0') == 1000


async def test_the_status_page_is_plain_and_escaped(start: Start, engine: ScriptedEngine) -> None:
    """It shows states; it loads nothing from elsewhere, and names no address or key."""
    running = await start(
        {
            "engines": {"<b>e": {"kind": "vllm", "urls": [engine.url], "api_key": "sk-own"}},
            "models": {"<script>": {"engine": "<b>e", "aliases": ["other"]}},
        }
    )
    answer = await running.client.get("/")

    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert "&lt;script&gt;" in answer.text
    assert "<script" not in answer.text
    assert "<b>e" not in answer.text
    assert "://" not in answer.text
    assert "sk-own" not in answer.text
    assert f"{engine.port}" not in answer.text


async def test_the_openapi_document_describes_every_path(client: httpx2.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    schemas = document["components"]["schemas"]
    references = [part.split('"')[0] for part in json.dumps(document).split("#/components/schemas/")[1:]]

    assert document["openapi"].startswith("3.1")
    assert "HTTPValidationError" not in schemas
    for path, methods in document["paths"].items():
        for described in methods.values():
            assert "422" not in described["responses"]
            asks = "requestBody" in described or "query" in str(described.get("parameters"))
            assert ("400" in described["responses"]) == (asks or path == "/admin/reload"), path
    assert set(document["paths"]) == {
        *PATHS.values(),
        "/v1/models",
        "/v1/models/{model}",
        "/healthz",
        "/readyz",
        "/metrics",
        "/admin/config",
        "/admin/doctor",
        "/admin/plan",
        "/admin/reload",
        "/admin/errors",
        "/admin/log-level",
        "/admin/engines",
        "/admin/engines/{name}/capabilities",
        "/admin/engines/{name}/drain",
        "/admin/engines/{name}/models",
        "/admin/engines/{name}/undrain",
        "/admin/tools",
        "/admin/tools/parse",
        "/admin/usage",
    }
    for path in PATHS.values():
        described = document["paths"][path]["post"]
        assert "application/json" in described["requestBody"]["content"]
        assert {"200", "400", "404", "413", "502", "503", "504"} <= set(described["responses"])
    assert "text/event-stream" in document["paths"][CHAT]["post"]["responses"]["200"]["content"]
    assert set(references) <= set(schemas)


@pytest.mark.parametrize("path", ["/nope", "/v1", "/docs", "/redoc", "//v1/models"])
async def test_what_is_not_there_is_a_404_in_the_error_contract(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(f"http://gateway.test{path}")

    assert answer.status_code == 404
    assert error_in(answer.json())["type"] == "not_found_error"
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [*(("GET", path, "POST") for path in FORWARDED), ("PUT", CHAT, "POST"), ("POST", "/v1/models", "GET")],
)
async def test_another_method_is_a_405_that_names_the_right_one(
    client: httpx2.AsyncClient, method: str, path: str, allow: str
) -> None:
    answer = await client.request(method, path)

    assert answer.status_code == 405
    assert allow in answer.headers["allow"]
    assert error_in(answer.json())["code"] == "method_not_allowed"


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/metrics", "/v1/models", "/openapi.json"])
async def test_head_is_answered_as_get_is(client: httpx2.AsyncClient, path: str) -> None:
    assert (await client.head(path)).status_code == (await client.get(path)).status_code


async def test_a_clean_request_id_is_given_back_and_another_is_replaced(client: httpx2.AsyncClient) -> None:
    clean = await client.get("/healthz", headers={"x-request-id": "trace-1"})
    dirty = await client.get("/healthz", headers={"x-request-id": "a b"})

    assert clean.headers["x-request-id"] == "trace-1"
    assert dirty.headers["x-request-id"] not in {"", "a b"}
    assert int(clean.headers["openai-processing-ms"]) >= 0


async def test_a_fault_of_the_gateway_is_a_500_in_the_error_contract(start: Start, engine: ScriptedEngine) -> None:
    """On a forwarded path and beside it."""
    running = await start(one_engine(engine))
    running.application.gateway.plane.asked = Fallible()
    answers = [await running.client.get("/v1/models/m"), await running.client.post(CHAT, json=HELLO)]

    for answer in answers:
        assert answer.status_code == 500
        assert error_in(answer.json())["code"] == "internal_error"
        assert "of the inside" not in answer.text
        assert answer.headers["x-request-id"]


async def test_the_fastapi_application_serves_forwarded_paths_by_itself(start: Start, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion(model="org/m")))
    running = await start(one_engine(engine))
    transport = httpx2.ASGITransport(running.application.gateway.api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway.test") as client:
        answer = await client.post(CHAT, json=HELLO)

    assert (answer.status_code, answer.json()["model"]) == (200, "m")


@pytest.mark.parametrize("path", [*FORWARDED, "/v1/models"])
async def test_browsers_of_allowed_origins_get_their_preflight(start: Start, engine: ScriptedEngine, path: str) -> None:
    """Without a key, for the headers that OpenAI's SDKs send."""
    origin = "https://chat.example.org"
    running = await start(one_engine(engine, server={"cors_origins": [origin]}))
    asked = "authorization,content-type,x-stainless-lang"
    headers = {"access-control-request-method": "POST", "access-control-request-headers": asked}
    allowed = await running.client.options(path, headers=headers | {"origin": origin})
    foreign = await running.client.options(path, headers=headers | {"origin": "https://evil.example"})

    assert allowed.status_code in {200, 204}
    assert allowed.headers["access-control-allow-origin"] == origin
    assert {name.strip() for name in allowed.headers["access-control-allow-headers"].split(",")} >= set(
        asked.split(",")
    )
    assert "POST" in allowed.headers["access-control-allow-methods"]
    assert "access-control-allow-origin" not in foreign.headers


async def test_scripts_may_read_the_headers_that_tell_them_what_happened(start: Start, engine: ScriptedEngine) -> None:
    """On success and on errors alike."""
    origin = "https://chat.example.org"
    running = await start(one_engine(engine, server={"cors_origins": [origin]}))
    for answer in (
        await running.client.get("/v1/models", headers={"origin": origin}),
        await running.client.get("/nope", headers={"origin": origin}),
        await running.client.post(CHAT, json={}, headers={"origin": origin}),
    ):
        assert answer.headers["access-control-allow-origin"] == origin
        assert {"x-request-id", "retry-after"} <= {
            name.strip() for name in answer.headers["access-control-expose-headers"].split(",")
        }
