"""A Triton's models over KServe, by HTTP and by gRPC: the client, the command, the admin API and the prober."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from engines.kserve import ModelState, Order
from engines.profile import EngineKind
from engines.simulator import build_app, start
from engines.simulator.kserve.over_grpc import grpc_kserve
from engines.simulator.kserve.over_http import http_kserve
from engines.simulator.kserve.repository import SimulatedRepository
from engines.simulator.pace import Faults
from gateway.background.fetch import Fetch
from gateway.background.prober import Prober
from gateway.balance.endpoint import EndpointState
from gateway.kserve.control import (
    Address,
    KServeError,
    MissingExtraError,
    ModelRefusedError,
    TritonUnreachableError,
    carry_out,
    connect,
)
from gateway.metrics import Meters
from gateway.proxy.building import build_plane
from gateway.settings.tree import Settings
from tests.integration.conftest import Gateway
from tests.integration.test_admin import call
from tests.support.json_type import Json

Serve = Callable[[SimulatedRepository], contextlib.AbstractAsyncContextManager[Address]]
NAMES = ("embed", "trt_py", "vllm_chat")


@contextlib.asynccontextmanager
async def over_http(repository: SimulatedRepository) -> AsyncIterator[Address]:
    async with http_kserve(repository) as url:
        yield Address(http=url)


@contextlib.asynccontextmanager
async def over_grpc(repository: SimulatedRepository) -> AsyncIterator[Address]:
    async with grpc_kserve(repository) as address:
        yield Address(grpc=address)


@pytest.fixture(params=[over_http, over_grpc], ids=["http", "grpc"])
def serve(request: pytest.FixtureRequest) -> Serve:
    """Serves a repository, by each protocol."""
    found: Serve = request.param
    return found


def repository(**more: object) -> SimulatedRepository:
    return SimulatedRepository(NAMES, states={"trt_py": "READY", "vllm_chat": "READY"}, **more)  # type: ignore[arg-type]


async def no_time(_seconds: float) -> None:
    """Waits for nothing: each look at the simulated index brings the next state."""


async def test_the_index_tells_what_triton_told(serve: Serve) -> None:
    """`repo_index_after.json`, and `repo_index_after_unload.json` for a model on its way out."""
    one = repository()
    async with serve(one) as address, connect(address) as triton:
        before = [(entry.name, entry.version, entry.state) for entry in await triton.index()]
        await triton.unload("vllm_chat")
        during = {entry.name: entry.state for entry in await triton.index()}
        ready = (await triton.server_ready(), await triton.model_ready("trt_py"), await triton.model_ready("vllm_chat"))

    assert before == [
        ("embed", "", ModelState.NEVER),
        ("trt_py", "1", ModelState.READY),
        ("vllm_chat", "1", ModelState.READY),
    ]
    assert during["vllm_chat"] is ModelState.UNLOADING
    assert ready == (False, True, False)


async def test_unloading_is_waited_for_until_the_model_is_gone_and_the_server_ready_again(serve: Serve) -> None:
    one = repository(lingering=5)
    async with serve(one) as address, connect(address) as triton:
        (entry,) = await carry_out(triton, Order.UNLOAD, "vllm_chat", sleep=no_time)
        ready = await triton.server_ready()

    assert (entry.state, entry.reason) == (ModelState.UNAVAILABLE, "unloaded")
    assert ready


async def test_a_model_is_loaded(serve: Serve) -> None:
    one = repository()
    async with serve(one) as address, connect(address) as triton:
        (entry,) = await carry_out(triton, Order.LOAD, "embed", sleep=no_time)
        ready = await triton.model_ready("embed")

    assert entry.state is ModelState.READY
    assert ready
    assert one.calls == ["load embed"]


async def test_a_wait_ends_when_patience_does(serve: Serve) -> None:
    async with serve(repository(lingering=10**6)) as address, connect(address) as triton:
        with pytest.raises(TritonUnreachableError, match="vllm_chat is still unloading after 3 s"):
            await carry_out(triton, Order.UNLOAD, "vllm_chat", patience=3, sleep=no_time)


async def test_a_configuration_that_cannot_be_read_says_where_the_reason_is(serve: Serve) -> None:
    one = repository(unreadable=frozenset({"embed"}))
    async with serve(one) as address, connect(address) as triton:
        with pytest.raises(ModelRefusedError) as refused:
            await carry_out(triton, Order.LOAD, "embed", sleep=no_time)

    assert refused.value.message == "failed to load 'embed', failed to poll from model repository"
    assert "in Triton's log only" in refused.value.fix


async def test_what_a_backend_refuses_is_told_with_its_reason(serve: Serve) -> None:
    reason = "Invalid argument: unable to find backend library for backend 'x'"
    async with serve(repository(failing={"embed": reason})) as address, connect(address) as triton:
        with pytest.raises(ModelRefusedError, match="unable to find backend library") as refused:
            await carry_out(triton, Order.LOAD, "embed", sleep=no_time)

    assert "use the one with that backend" in refused.value.fix


async def test_a_triton_that_loads_by_itself_says_how_to_start_it(serve: Serve) -> None:
    one = repository(explicit=False)
    async with serve(one) as address, connect(address) as triton:
        with pytest.raises(ModelRefusedError, match="is not allowed") as refused:
            await carry_out(triton, Order.LOAD, "embed", sleep=no_time)

    assert "--model-control-mode=explicit" in refused.value.fix


async def test_a_model_that_the_repository_has_not_is_not_asked_for(serve: Serve) -> None:
    """Triton lets an unload of an unknown model pass."""
    one = repository()
    async with serve(one) as address, connect(address) as triton:
        with pytest.raises(ModelRefusedError, match='no model "nope"') as refused:
            await carry_out(triton, Order.UNLOAD, "nope", sleep=no_time)

    assert refused.value.unknown
    assert one.calls == []


async def test_statistics_and_metadata_are_read(serve: Serve) -> None:
    async with serve(repository()) as address, connect(address) as triton:
        (stats,) = await triton.statistics("trt_py")
        everything = await triton.statistics()
        server, model = await triton.metadata(), await triton.metadata("trt_py")
        with pytest.raises(ModelRefusedError) as refused:
            await triton.metadata("nope")

    assert (stats.succeeded, stats.failed, stats.took, stats.last) == (4, 0, 68_000_000, 1_796_089_429_370)
    assert [one.name for one in everything] == ["trt_py", "vllm_chat"]
    assert (server["version"], model["platform"]) == ("2.51.0", "python")
    assert refused.value.unknown


@pytest.mark.parametrize("kind", ["http", "grpc"])
async def test_nobody_there_is_told_with_the_usual_port(kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    address = Address(http=f"http://127.0.0.1:{port}") if kind == "http" else Address(grpc=f"127.0.0.1:{port}")
    async with connect(address) as triton:
        with pytest.raises(TritonUnreachableError, match=f"cannot be reached at .*{port}.*800[01]"):
            await triton.index()


async def test_something_else_there_is_not_taken_for_triton() -> None:
    """An OpenAI frontend's port instead of KServe's."""
    running = await start(build_app(EngineKind.TRITON))
    try:
        async with connect(Address(http=running.url)) as triton:
            with pytest.raises(KServeError):
                await triton.index()
            assert not await triton.server_ready()
    finally:
        await running.stop()


async def test_a_server_that_stays_silent_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        for where in (Address(http=f"http://{address}"), Address(grpc=address)):
            async with connect(where, patience=0.05) as triton:
                with pytest.raises(TritonUnreachableError):
                    await triton.index()


def test_without_the_extra_it_is_named() -> None:
    """In a program of its own, in which tritonclient cannot be imported."""
    script = (
        "import sys; sys.modules['tritonclient'] = None\n"
        "from gateway.kserve.control import Address, connect\n"
        "connect(Address(grpc='127.0.0.1:1'))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)

    assert done.stderr.splitlines()[-1].endswith("(pip install turnout[triton])")
    assert MissingExtraError.__name__ in done.stderr.splitlines()[-1]


def file(folder: Path, address: Address) -> Path:
    where = {"http": address.http} if address.http else {"grpc": address.grpc}
    path = folder / "turnout.yaml"
    engine = {"kind": "triton", "urls": ["http://127.0.0.1:9000"], "kserve": where}
    path.write_text(json.dumps({"engines": {"t": engine}, "models": {"vllm_chat": {"engine": "t"}}}))
    return path


async def command(path: Path, *words: str) -> tuple[int, str, str]:
    program = [sys.executable, "-m", "gateway", "engines", "triton", "t", *words, "--config", str(path)]
    pipe = asyncio.subprocess.PIPE
    running = await asyncio.create_subprocess_exec(*program, stdout=pipe, stderr=pipe)
    out, err = await running.communicate()
    return running.returncode or 0, out.decode(), err.decode()


async def test_the_command_shows_loads_and_unloads(serve: Serve, tmp_path: Path) -> None:
    one = repository(unreadable=frozenset({"embed"}))
    async with serve(one) as address:
        path = file(tmp_path, address)
        index = await command(path, "index")
        unload = await command(path, "unload", "vllm_chat")
        load = await command(path, "load", "vllm_chat", "--json")
        stats = await command(path, "stats", "trt_py")
        metadata = await command(path, "metadata")
        refused = await command(path, "load", "embed")

    assert index == (0, "embed: not loaded\ntrt_py version 1: ready\nvllm_chat version 1: ready\n", "")
    assert unload == (0, "vllm_chat version 1: unavailable (unloaded)\n", "")
    assert json.loads(load[1]) == [{"name": "vllm_chat", "version": "1", "state": "READY", "reason": ""}]
    assert stats[1] == "trt_py version 1: 4 served, 17.0 ms each, 0.1 ms of them queued, 0 failed\n"
    assert json.loads(metadata[1])["name"] == "triton"
    assert refused[0] == 1
    assert "failed to poll from model repository (the reason is in Triton's log only" in refused[2]
    assert refused[2].count("\n") == 1


async def test_the_command_says_what_it_lacks(tmp_path: Path) -> None:
    path = file(tmp_path, Address(grpc="127.0.0.1:1"))
    without = await command(path, "load")
    tree = json.loads(path.read_text())
    del tree["engines"]["t"]["kserve"]
    path.write_text(json.dumps(tree))
    unset = await command(path, "index")

    assert "load needs the name of a model" in without[2]
    assert "engines.t has no kserve address (add kserve: {grpc: 127.0.0.1:8001}" in unset[2]
    assert (without[0], unset[0]) == (1, 1)


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ({"kind": "vllm", "kserve": {"grpc": "127.0.0.1:8001"}}, "is for triton engines"),
        ({"kserve": {}}, "needs one address"),
        ({"kserve": {"grpc": "127.0.0.1:8001", "http": "http://127.0.0.1:8000"}}, "needs one address"),
        ({"kserve": {"grpc": "http://127.0.0.1:8001"}}, "expected host:port"),
        ({"kserve": {"http": "127.0.0.1:8000"}}, "expected a URL with http"),
        ({"kserve": {"grpc": "a:8001"}, "urls": ["http://a:9000", "http://b:9000"]}, "the address of one Triton"),
    ],
)
def test_addresses_are_checked(engine: dict[str, Json], said: str, tmp_path: Path) -> None:
    path = tmp_path / "turnout.yaml"
    base: dict[str, Json] = {"kind": "triton", "urls": ["http://127.0.0.1:9000"]}
    path.write_text(json.dumps({"engines": {"t": {**base, **engine}}, "models": {"m": {"engine": "t"}}}))
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "check", str(path)], check=False, capture_output=True, text=True
    )

    assert done.returncode == 2
    assert said in done.stderr


def settings_with(address: Address | None, url: str = "http://127.0.0.1:1") -> dict[str, Json]:
    engine: dict[str, Json] = {"kind": "triton", "urls": [url]}
    if address is not None:
        engine["kserve"] = {"http": address.http} if address.http else {"grpc": address.grpc}
    return {"engines": {"t": engine}, "models": {"vllm_chat": {"engine": "t"}}}


async def test_operators_list_load_and_unload_by_the_admin_api(serve: Serve, gateway: Gateway) -> None:
    one = repository(unreadable=frozenset({"embed"}), lingering=1)
    async with serve(one) as address:
        serving = await gateway(settings_with(address), whole=True)
        listed = await call(serving, "GET", "/admin/engines/t/models")
        path = "/admin/engines/t/models"
        unloaded = await call(serving, "POST", path, {"model": "vllm_chat", "action": "unload"})
        refused = await call(serving, "POST", path, {"model": "embed", "action": "load"})
        unknown = await call(serving, "POST", path, {"model": "nope", "action": "load"})
        odd = await call(serving, "POST", path, {"model": "embed", "action": "dance"})
        absent = await call(serving, "GET", "/admin/engines/x/models")

    assert [(model["name"], model["state"]) for model in listed.json] == [
        ("embed", ""),
        ("trt_py", "READY"),
        ("vllm_chat", "READY"),
    ]
    assert [model["state"] for model in unloaded.json] == ["UNAVAILABLE"]
    assert (refused.status, refused.json["error"]["code"]) == (409, "model_refused")
    assert "Triton's log only" in refused.json["error"]["message"]
    assert (unknown.status, odd.status, absent.status) == (404, 400, 404)


async def test_the_admin_api_says_when_there_is_no_kserve(gateway: Gateway) -> None:
    serving = await gateway(settings_with(None), whole=True)
    unset = await call(serving, "GET", "/admin/engines/t/models")
    serving.apply(settings_with(Address(grpc="127.0.0.1:1")))
    away = await call(serving, "GET", "/admin/engines/t/models")

    assert (unset.status, unset.json["error"]["code"]) == (400, "no_kserve")
    assert away.status == 503


@contextlib.asynccontextmanager
async def probed(settings: Mapping[str, Json]) -> AsyncIterator[Callable[[], Awaitable[EndpointState]]]:
    """Checks the one endpoint three times, and gives its state."""
    plane = build_plane(Settings.model_validate(settings), asyncio.get_running_loop(), Meters())
    fetch = Fetch()
    prober = Prober(lambda: plane, fetch)
    link = plane.engines["t"]

    async def check() -> EndpointState:
        for _ in range(3):
            await prober.check(plane, "t", link, link.engine.endpoints[0])
        return link.engine.endpoints[0].state

    try:
        yield check
    finally:
        await fetch.close()
        plane.close()


async def test_a_triton_that_unloads_another_model_stays_in_service_if_kserve_is_configured(serve: Serve) -> None:
    """Its frontend says that it is not ready; the models of the routes are."""
    running = await start(build_app(EngineKind.TRITON, ["vllm_chat"], faults=Faults(unhealthy=True)))
    try:
        one = repository(lingering=10**6)
        one.unload("trt_py")
        async with serve(one) as address, probed(settings_with(address, running.url)) as check:
            assert await check() is EndpointState.UP
            one.unload("vllm_chat")
            assert await check() is EndpointState.DOWN
        async with probed(settings_with(None, running.url)) as check:
            assert await check() is EndpointState.DOWN
    finally:
        await running.stop()


async def test_a_kserve_that_cannot_be_asked_is_logged_once_and_changes_nothing() -> None:
    running = await start(build_app(EngineKind.TRITON, ["vllm_chat"], faults=Faults(unhealthy=True)))
    try:
        with capture_logs() as logs:
            async with probed(settings_with(Address(grpc="127.0.0.1:1"), running.url)) as check:
                assert await check() is EndpointState.DOWN
    finally:
        await running.stop()

    assert [line["event"] for line in logs].count("KServe cannot be asked") == 1
