"""Redis as sentinels watch it, with a failover; Redis as a cluster; Redis behind TLS."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.app import Gateway as RunningGateway
from tests.integration.conftest import Gateway, one_engine
from tests.running import free_port
from tests.support.json_type import Json
from tests.support.keys import bearer, key_entry
from tests.support.openai_bytes import CHAT, HELLO, completion
from tests.support.redis_server import RedisServer
from tests.support.scripted import ScriptedEngine, reply
from tests.support.serving import Serving
from tests.support.waiting import until, until_told

Start = Callable[..., Awaitable[RedisServer]]


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts Redis servers with options."""
    async with AsyncExitStack() as stack:

        async def begin(*options: str, port: int = 0) -> RedisServer:
            server = RedisServer(tmp_path / f"redis-{free_port()}", *options, port=port)
            stack.push_async_callback(server.stop)
            await server.start()
            return server

        yield begin


def settings(engine: ScriptedEngine, url: str) -> dict[str, Json]:
    return one_engine(engine) | {
        "keys": [
            key_entry("team-a", limits={"rpm": 3, "parallel": 9, "tokens_per_day": 100_000}),
            key_entry("b", "sk-b"),
        ],
        "limits": {"overall": {"rpm": 1_000}},
        "state": {"redis": url},
    }


def up(serving: Serving) -> bool:
    assert isinstance(serving._source, RunningGateway)
    return serving._source.shared.availability.up


def trouble(serving: Serving) -> str:
    assert isinstance(serving._source, RunningGateway)
    return serving._source.shared.trouble


async def ask(serving: Serving) -> int:
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO, bearer())
        return (await client.answer()).status


@pytest.mark.timeout(180)
async def test_a_failover_by_sentinel_is_followed(
    gateway: Gateway, engine: ScriptedEngine, start: Start, tmp_path: Path
) -> None:
    """The counts go on at the new master; while there is none, the gateway does without."""
    engine.answer(reply(completion()))
    master = await start()
    replica = await start("--replicaof", "127.0.0.1", str(master.port))
    watch = tmp_path / "sentinel.conf"
    watch.write_text(
        f"sentinel monitor mine 127.0.0.1 {master.port} 1\n"
        "sentinel down-after-milliseconds mine 500\nsentinel failover-timeout mine 3000\n"
    )
    sentinel = await start(str(watch), "--sentinel")
    serving = await gateway(settings(engine, f"redis+sentinel://127.0.0.1:{sentinel.port}/mine/0"), whole=True)
    assert up(serving)
    assert [await ask(serving) for _ in range(2)] == [200, 200]
    await until_told(lambda: replica.cli.keys("*team-a*"))
    await until_told(lambda: sentinel.command("SENTINEL", "REPLICAS", "mine"))
    master.kill()
    await until(lambda: not up(serving))
    assert await ask(serving) == 200
    await until(lambda: up(serving), 80, "the failover")  # a sentinel that was not scheduled in time waits 30 s more
    assert (await replica.cli.info("replication"))["role"] == "master"
    assert [await ask(serving) for _ in range(2)] == [200, 429]


async def whole(node: RedisServer) -> bool:
    return "cluster_state:ok" in str(await node.command("CLUSTER", "INFO"))


async def test_a_cluster_keeps_all_counts_in_one_slot(gateway: Gateway, engine: ScriptedEngine, start: Start) -> None:
    engine.answer(reply(completion()))
    nodes = [await start("--cluster-enabled", "yes", "--cluster-port", str(free_port())) for _ in range(3)]
    places = [f"127.0.0.1:{node.port}" for node in nodes]
    command = [shutil.which("redis-cli") or "redis-cli", "--cluster", "create", *places, "--cluster-yes"]
    made = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert "All 16384 slots covered" in made.stdout, made.stdout + made.stderr

    for node in nodes:
        await until_told(lambda node=node: whole(node))  # type: ignore[misc]
    both = [await gateway(settings(engine, f"redis+cluster://{places[0]},{places[1]}"), whole=True) for _ in range(2)]
    for one in both:
        await until(lambda one=one: up(one))  # type: ignore[misc]
    assert [await ask(both[turn % 2]) for turn in range(4)] == [200, 200, 200, 429]
    holding = [node.port for node in nodes if await node.cli.dbsize()]
    assert len(holding) == 1


async def test_redis_may_be_behind_tls(gateway: Gateway, engine: ScriptedEngine, start: Start, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "1",
    ]
    make += ["-keyout", str(key), "-out", str(certificate), "-subj", "/CN=localhost"]
    make += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    await asyncio.to_thread(subprocess.run, make, check=True, capture_output=True)
    port = free_port()
    tls = ["--tls-port", str(port), "--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
    await start(*tls, "--tls-ca-cert-file", str(certificate), "--tls-auth-clients", "no")
    engine.answer(reply(completion()))

    trusted = await gateway(settings(engine, f"rediss://localhost:{port}/0?ssl_ca_certs={certificate}"), whole=True)
    doubtful = await gateway(settings(engine, f"rediss://localhost:{port}/0"), whole=True)
    await until(lambda: up(trusted))
    assert not up(doubtful)
    assert "its certificate is not trusted: self-signed certificate (option ssl_ca_certs)" in trouble(doubtful)
    plain = await gateway(settings(engine, f"redis://localhost:{port}/0"), whole=True)
    assert "the connection was closed: if it wants TLS, begin the URL with rediss" in trouble(plain)
    assert [await ask(trusted) for _ in range(4)] == [200, 200, 200, 429]
