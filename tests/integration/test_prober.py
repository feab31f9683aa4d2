"""Active health checks against engines on real sockets."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from engines.faults import Fault, FaultKind
from engines.profile import EngineKind, Operation
from gateway.app import log_change
from gateway.background.fetch import Fetch, NoAnswer
from gateway.background.prober import Prober
from gateway.balance.endpoint import EndpointState
from gateway.metrics import Meters
from gateway.proxy.building import build_plane
from gateway.proxy.plane import Plane
from gateway.settings.tree import Settings
from tests.support.json_type import Json
from tests.support.scripted import ScriptedEngine, Talk, hang_up, packets, reply, reset, silent, whole
from tests.support.waiting import until

Engines = Callable[[], Awaitable[ScriptedEngine]]


@dataclass(slots=True)
class Watched:
    """A plane with one engine `e`, and a prober that checks it when told to."""

    plane: Plane
    prober: Prober

    async def check(self, times: int = 1, endpoint: int = 0) -> EndpointState:
        link = self.plane.engines["e"]
        target = link.engine.endpoints[endpoint]
        for _ in range(times):
            await self.prober.check(self.plane, "e", link, target)
        return target.state

    @property
    def reason(self) -> str:
        return self.plane.engines["e"].engine.endpoints[0].reason


Watch = Callable[..., Watched]


@pytest.fixture
async def watch() -> AsyncIterator[Watch]:
    """Makes watched planes."""
    fetch = Fetch()

    def make(
        *urls: str, kind: str = "vllm", model: str = "m", policy: str = "least_requests", **engine: Json
    ) -> Watched:
        settings = Settings.model_validate(
            {
                "engines": {"e": {"kind": kind, "urls": list(urls), **engine}},
                "models": {"m": {"engine": "e", "model": model, "policy": policy}},
            }
        )
        plane = build_plane(settings, asyncio.get_running_loop(), Meters(), notice=log_change)
        return Watched(plane, Prober(lambda: plane, fetch))

    yield make
    await fetch.close()


@pytest.mark.parametrize("kind", list(EngineKind))
async def test_a_healthy_engine_is_up_after_one_check(watch: Watch, engine: ScriptedEngine, kind: str) -> None:
    engine.otherwise = reply(b"", status=200)

    assert await watch(engine.url, kind=kind).check() is EndpointState.UP


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (reply(b"", status=503), "it is not ready (status 503)"),
        (reply(b"", status=500), "status 500"),
        (reply(b"<html>", status=404), "status 404"),
        (hang_up, "no HTTP answer"),
        (reset, "no HTTP answer"),
        (packets(b"SSH-2.0-OpenSSH_9\r\n", fin=True), "no HTTP answer"),
    ],
)
async def test_three_bad_answers_take_an_endpoint_out_and_two_good_ones_bring_it_back(
    watch: Watch, engine: ScriptedEngine, script: Callable[..., Awaitable[None]], why: str
) -> None:
    watched = watch(engine.url)
    assert await watched.check() is EndpointState.UP
    engine.on("/health", script)
    assert await watched.check(2) is EndpointState.UP
    assert await watched.check() is EndpointState.DOWN
    assert why in watched.reason
    assert engine.url not in watched.reason
    engine.on("/health", reply(b""))
    assert await watched.check() is EndpointState.DOWN
    assert await watched.check() is EndpointState.UP


async def test_an_engine_that_is_not_there_is_down(watch: Watch, engine: ScriptedEngine) -> None:
    await engine.stop()
    watched = watch(engine.url)

    assert await watched.check(3) is EndpointState.DOWN
    assert watched.reason == "nobody listens at its address"


async def test_a_name_that_cannot_be_resolved_is_called_so(watch: Watch) -> None:
    watched = watch("http://engine.invalid:8000")
    await watched.check(3)

    assert watched.reason == "its host name cannot be resolved"


async def test_an_engine_without_tls_is_called_so(watch: Watch) -> None:
    """HTTP servers answer a TLS greeting with a 400 in plain text."""

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        watched = watch(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await watched.check(3)

    assert watched.reason == "no TLS at its address: is it http:// rather than https://?"


async def test_a_refused_key_is_noticed_and_noticed_to_be_right_again(watch: Watch, engine: ScriptedEngine) -> None:
    """It is said once; as long as it lasts, each check looks again."""
    watched = watch(engine.url)
    link = watched.plane.engines["e"]
    (endpoint,) = link.engine.endpoints
    engine.on("/health", reply(b""))
    engine.on("/v1/models", reply(b"{}", status=401))
    with capture_logs() as logs:
        await watched.prober.visit(watched.plane, "e", link, endpoint)
        await watched.prober.visit(watched.plane, "e", link, endpoint)
    assert link.refusing == {endpoint}
    assert [line["event"] for line in logs].count("the engine refuses the gateway's key") == 1
    engine.on("/v1/models", reply(b'{"data": []}'))
    await watched.prober.visit(watched.plane, "e", link, endpoint)

    assert link.refusing == set()


async def test_a_key_that_is_refused_later_is_noticed_with_the_next_check(watch: Watch, engine: ScriptedEngine) -> None:
    """By a request that the engine has refused, or because the configuration has another key now."""
    watched = watch(engine.url)
    link = watched.plane.engines["e"]
    (endpoint,) = link.engine.endpoints
    engine.on("/health", reply(b""))
    engine.on("/v1/models", reply(b'{"data": []}'))
    await watched.prober.visit(watched.plane, "e", link, endpoint)
    engine.on("/v1/models", reply(b"{}", status=401))
    await watched.prober.visit(watched.plane, "e", link, endpoint)
    assert link.refusing == set()  # nothing says that it should be looked at again so soon

    link.heard(Fault(FaultKind.UNAUTHORIZED, 502, "no"), Operation.CHAT, endpoint)
    await watched.prober.visit(watched.plane, "e", link, endpoint)
    assert link.refusing == {endpoint}
    assert link.doubted == set()

    engine.on("/v1/models", reply(b'{"data": []}'))
    await watched.prober.visit(watched.plane, "e", link, endpoint)
    assert link.refusing == set()
    engine.on("/v1/models", reply(b"{}", status=401))
    other_key = link.settings.model_copy(update={"api_key": SecretStr("another")})
    link.adopt(other_key, {}, watched.plane.loop.time())
    await watched.prober.visit(watched.plane, "e", link, endpoint)
    assert link.refusing == {endpoint}


async def test_an_engine_of_another_kind_is_noticed(watch: Watch, engine: ScriptedEngine) -> None:
    """By whom its models are owned; it is said once, until it is right again."""
    watched = watch(engine.url)
    link = watched.plane.engines["e"]
    (endpoint,) = link.engine.endpoints
    link.refusing.add(endpoint)  # so that each check looks
    engine.on("/health", reply(b""))
    engine.on("/v1/models", reply(b'{"data": [{"id": "m", "owned_by": "Triton Inference Server"}]}'))
    with capture_logs() as logs:
        await watched.prober.visit(watched.plane, "e", link, endpoint)
        link.refusing.add(endpoint)
        await watched.prober.visit(watched.plane, "e", link, endpoint)
    assert link.mistaken == {endpoint: EngineKind.TRITON}
    (told,) = [line for line in logs if line["event"] == "the engine is of another kind"]
    assert (told["configured"], told["seems"]) == ("vllm", "triton")
    link.refusing.add(endpoint)
    engine.on("/v1/models", reply(b'{"data": [{"id": "m", "owned_by": "vllm"}]}'))
    await watched.prober.visit(watched.plane, "e", link, endpoint)

    assert link.mistaken == {}


async def test_an_engine_that_does_not_answer_in_two_seconds_fails_its_check(engine: ScriptedEngine) -> None:
    engine.on("/health", silent)
    fetch = Fetch()
    settings = Settings.from_engines([("vllm", engine.url)])
    plane = build_plane(settings, asyncio.get_running_loop(), Meters())
    found = await fetch.get(next(iter(plane.endpoints)), "/health")
    await fetch.close()

    assert found == NoAnswer("no answer within 2 s")


async def test_an_answer_without_end_is_none(watch: Watch, engine: ScriptedEngine) -> None:
    engine.on("/health", reply(b"x" * (5 * 2**20)))

    assert await watch(engine.url).check(3) is EndpointState.DOWN


async def test_a_path_of_ones_own_may_give_any_success(watch: Watch, engine: ScriptedEngine) -> None:
    """The key goes with it, since the path may be guarded."""
    seen: list[Talk] = []

    async def ready(talk: Talk) -> None:
        seen.append(talk)
        await talk.send(whole(b"", status=204))

    engine.on("/ready", ready)
    watched = watch(engine.url, health={"path": "/ready"}, api_key="sk-own")

    assert await watched.check() is EndpointState.UP
    assert [talk.request.header("authorization") for talk in seen] == [b"Bearer sk-own"]


async def test_everyone_is_checked_and_told_about_once(watch: Watch, engines: Engines) -> None:
    """The version is read; a model that an engine does not list is named once; no line holds the key."""
    healthy, broken = await engines(), await engines()
    healthy.on("/version", reply({"version": "0.32.0"}))
    healthy.on("/v1/models", reply({"data": [{"id": "other"}, {"id": "third"}]}))
    await broken.stop()
    watched = watch(healthy.url, broken.url, model="org/m", api_key="sk-own")
    first, second = watched.plane.engines["e"].engine.endpoints
    with capture_logs() as logs:
        task = asyncio.create_task(watched.prober.run())
        await until(lambda: second.state is EndpointState.DOWN, what="the verdict")
        await until(lambda: watched.plane.engines["e"].engine.version == "0.32.0", what="the version")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert first.state is EndpointState.UP
    assert [(line["event"], line["log_level"]) for line in logs if "endpoint" in line] == [
        ("endpoint is up", "info"),
        ("endpoint is down", "warning"),
    ]
    missing = [line for line in logs if line["event"] == "the engine does not list the model"]
    assert [(line["model"], line["listed"]) for line in missing] == [("org/m", "other, third")]
    assert "sk-own" not in str(logs)


async def test_the_interval_is_the_engine_s_own(watch: Watch, engine: ScriptedEngine) -> None:
    """Three checks at the default interval would take longer than this test waits."""
    engine.on("/health", reply(b"", status=503))
    watched = watch(engine.url, health={"interval": "200ms"})
    endpoint = watched.plane.engines["e"].engine.endpoints[0]
    task = asyncio.create_task(watched.prober.run())
    await until(lambda: endpoint.state is EndpointState.DOWN, 8, "the verdict")
    engine.on("/health", reply(b""))
    await until(lambda: endpoint.state is EndpointState.UP, 8, "the recovery")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


VLLM_METRICS = b"""# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 6.0
vllm:num_requests_waiting{engine="0",model_name="m"} 3.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.4
"""
TRTLLM_METRICS = b"trtllm_num_requests_running 6.0\ntrtllm_num_requests_waiting 3.0\n"


@pytest.mark.parametrize(
    ("kind", "path", "text"),
    [
        ("vllm", "/metrics", VLLM_METRICS),
        ("trtllm", "/prometheus/metrics", TRTLLM_METRICS),
        ("triton", "/metrics", b""),
    ],
)
async def test_the_load_of_others_is_read_from_an_engine_s_metrics(
    watch: Watch, engine: ScriptedEngine, other: ScriptedEngine, kind: str, path: str, text: bytes
) -> None:
    """Never from trtllm-serve's `/metrics`, which gives each of its lines to one reader only."""
    asked: list[str] = []

    async def metrics(talk: Talk) -> None:
        asked.append(talk.request.target.decode())
        await talk.send(whole(text, content_type=b"text/plain"))

    for one in (engine, other):
        one.otherwise = reply(b"")
        one.on("/metrics", metrics)
        one.on("/prometheus/metrics", metrics)
    watched = watch(engine.url, other.url, kind=kind)
    link = watched.plane.engines["e"]
    endpoint = link.engine.endpoints[0]
    await watched.prober.read_load(link, endpoint, {})

    assert asked == [path]
    assert endpoint.extra == (9 if text else 0)
    assert (endpoint.report is None) is (not text)


async def test_own_requests_are_no_load_of_others(watch: Watch, engine: ScriptedEngine, other: ScriptedEngine) -> None:
    engine.on("/metrics", reply(VLLM_METRICS, content_type=b"text/plain"))
    watched = watch(engine.url, other.url)
    link = watched.plane.engines["e"]
    link.engine.endpoints[0].in_flight = 5
    await watched.prober.read_load(link, link.engine.endpoints[0], {})

    assert link.engine.endpoints[0].extra == 4


@pytest.mark.parametrize("script", [reply(b"", status=404), hang_up, reply(b"\xff\x00")])
async def test_metrics_that_cannot_be_read_change_nothing(
    watch: Watch, engine: ScriptedEngine, other: ScriptedEngine, script: Callable[..., Awaitable[None]]
) -> None:
    engine.on("/metrics", script)
    watched = watch(engine.url, other.url)
    link = watched.plane.engines["e"]
    await watched.prober.read_load(link, link.engine.endpoints[0], {})

    assert link.engine.endpoints[0].report is None


@pytest.mark.parametrize(("policy", "reads"), [("least_requests", True), ("round_robin", False)])
async def test_metrics_are_read_only_where_the_policy_looks_at_load(
    watch: Watch, engine: ScriptedEngine, other: ScriptedEngine, policy: str, reads: bool
) -> None:
    checked: list[str] = []

    async def note(talk: Talk) -> None:
        checked.append(talk.request.target.decode())
        await reply(b"")(talk)

    for one in (engine, other):
        one.otherwise = note
    watched = watch(engine.url, other.url, policy=policy)
    task = asyncio.create_task(watched.prober.run())
    await until(lambda: checked.count("/version") == 2, what="the first checks")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert ("/metrics" in checked) is reads
