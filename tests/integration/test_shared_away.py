"""A Redis that cannot be used, in each of its forms: requests are served all the same, and the reason is told."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.app import Gateway as RunningGateway
from gateway.background.shared.store import SharedAccounts
from gateway.settings.source import Configuration
from gateway.settings.tree import Settings
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
    """Makes Redis servers with options, and starts them."""
    async with AsyncExitStack() as stack:

        async def begin(*options: str) -> RedisServer:
            server = RedisServer(tmp_path / f"redis-{free_port()}", *options)
            stack.push_async_callback(server.stop)
            await server.start()
            return server

        yield begin


def settings(engine: ScriptedEngine, url: str, **state: Json) -> dict[str, Json]:
    keys: list[Json] = [key_entry("team-a", limits={"rpm": 1_000})]
    return one_engine(engine) | {"keys": keys, "state": {"redis": url, **state}}


def shared(serving: Serving) -> SharedAccounts:
    assert isinstance(serving._source, RunningGateway)
    return serving._source.shared


async def ask(serving: Serving) -> int:
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO, bearer())
        return (await client.answer()).status


@dataclass
class Form:
    """A Redis: its URL, and the servers that it consists of."""

    url: str
    servers: list[RedisServer]


async def form_of(name: str, start: Start, tmp_path: Path) -> Form:
    if name == "cluster":
        nodes = [await start("--cluster-enabled", "yes", "--cluster-port", str(free_port())) for _ in range(3)]
        places = [f"127.0.0.1:{node.port}" for node in nodes]
        command = [shutil.which("redis-cli") or "redis-cli", "--cluster", "create", *places, "--cluster-yes"]
        await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
        for node in nodes:
            await until_told(lambda node=node: whole(node))  # type: ignore[misc]
        return Form(f"redis+cluster://{','.join(places)}", nodes)
    if name == "unix":
        path = tmp_path / "r.sock"
        return Form(f"unix://{path}?db=1", [await start("--unixsocket", str(path))])
    if name == "sentinel":
        master = await start()
        watch = tmp_path / "sentinel.conf"
        watch.write_text(f"sentinel monitor mine 127.0.0.1 {master.port} 1\n")
        sentinel = await start(str(watch), "--sentinel")
        return Form(f"redis+sentinel://127.0.0.1:{sentinel.port}/mine", [sentinel, master])
    server = await start()
    return Form(server.url, [server])


async def whole(node: RedisServer) -> bool:
    return "cluster_state:ok" in str(await node.command("CLUSTER", "INFO"))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["redis", "unix", "sentinel", "cluster"])
async def test_requests_are_served_before_while_and_after(
    gateway: Gateway, engine: ScriptedEngine, start: Start, tmp_path: Path, name: str
) -> None:
    """One gateway loses it while serving, one begins without it, one is reloaded to it; all go on by themselves."""
    engine.answer(reply(completion()))
    form = await form_of(name, start, tmp_path)
    first = await gateway(settings(engine, form.url), whole=True)
    assert shared(first).availability.up
    assert await ask(first) == 200

    for server in form.servers:
        server.kill()
    await until(lambda: not shared(first).availability.up)
    second = await gateway(settings(engine, form.url), whole=True)
    third = await gateway(one_engine(engine) | {"keys": [key_entry("team-a")]}, whole=True)
    third.apply(settings(engine, form.url))
    for serving in (first, second, third):
        await until(lambda serving=serving: "not reached" not in shared(serving).trouble)  # type: ignore[misc]
        assert await ask(serving) == 200
        assert shared(serving).trouble.startswith("redis: away (")
        assert "cannot be talked with" not in shared(serving).trouble

    for server in reversed(form.servers):
        await server.start()
    for serving in (first, second, third):
        await until(lambda serving=serving: shared(serving).availability.up, 60)  # type: ignore[misc]
        assert await ask(serving) == 200
        assert shared(serving).trouble == ""


@pytest.mark.parametrize(
    ("url", "option", "reason"),
    [
        ("redis://127.0.0.1:{port}/0", ("requirepass", "x"), "it needs a password (state.password)"),
        ("redis://:y@127.0.0.1:{port}/0", ("requirepass", "x"), "wrong user or password"),
        ("redis://127.0.0.1:{port}/99", (), "it has no database of this number"),
        ("redis+cluster://127.0.0.1:{port}", (), "it is no cluster (use redis:// or rediss://)"),
        ("rediss://127.0.0.1:{port}/0", (), "no connection within 1 s: a wrong address, a firewall, or no TLS there"),
        ("rediss://127.0.0.1:{port}/0?ssl_ca_certs=/none.pem", (), "no such file: the socket, or"),
        ("rediss://127.0.0.1:{port}/0?ssl_ciphers=none", (), "TLS fails: no cipher can be selected"),
        ("redis://no-host.invalid:{port}/0", (), "unknown host"),
        ("redis+sentinel://127.0.0.1:{port}/mine", (), "it is no sentinel"),
        ("redis://127.0.0.1:{port}/0", ("replicaof", "127.0.0.1 1"), "READONLY: it is a replica"),
        ("unix:///nowhere/{port}.sock", (), "no such file: the socket"),
    ],
)
async def test_the_address_and_the_cause_are_told_in_words(
    gateway: Gateway, engine: ScriptedEngine, start: Start, url: str, option: tuple[str, str] | tuple[()], reason: str
) -> None:
    engine.answer(reply(completion()))
    server = await start()
    if option:
        name, value = option
        await (
            server.command("REPLICAOF", *value.split()) if name == "replicaof" else server.cli.config_set(name, value)
        )
    url = url.format(port=server.port)
    serving = await gateway(settings(engine, url), whole=True)

    place = url.partition("://")[2].rpartition("@")[2].partition("?")[0]
    place = place if url.startswith("unix") else place.partition("/")[0]
    assert shared(serving).trouble.startswith(f"redis: away ({place}: {reason}")
    assert await ask(serving) == 200


async def reload(serving: Serving, wanted: dict[str, Json]) -> list[int]:
    """Puts a configuration in force as a reload does; gives what was answered meanwhile and just after."""
    assert isinstance(serving._source, RunningGateway)
    found = Configuration(Settings.model_validate(wanted), str(len(str(wanted))), loaded_at=0.0)
    taking = asyncio.ensure_future(serving._source.take(found))
    statuses = []
    while not taking.done():
        statuses.append(await ask(serving))
    await taking
    return [*statuses, *await asyncio.gather(*(ask(serving) for _ in range(5)))]


async def test_a_reload_to_a_redis_that_is_well_refuses_nobody(
    gateway: Gateway, engine: ScriptedEngine, start: Start
) -> None:
    """Added, with other names, another one, in place of one that is away: it is heard from before it is in force."""
    engine.answer(reply(completion()))
    one, other = await start(), await start()
    wanted = settings(engine, one.url, when_away="closed")
    serving = await gateway({name: value for name, value in wanted.items() if name != "state"}, whole=True)

    assert set(await reload(serving, wanted)) == {200}
    assert set(await reload(serving, settings(engine, one.url, when_away="closed", prefix="p"))) == {200}
    assert set(await reload(serving, settings(engine, other.url, when_away="closed"))) == {200}
    other.kill()
    await until(lambda: not shared(serving).availability.up)
    assert (await reload(serving, wanted))[-5:] == [200] * 5
    assert shared(serving).trouble == ""
    assert set(await reload(serving, {name: value for name, value in wanted.items() if name != "state"})) == {200}


async def test_a_redis_that_is_not_heard_from_takes_force_with_its_own_reason(
    gateway: Gateway, engine: ScriptedEngine, start: Start
) -> None:
    engine.answer(reply(completion()))
    one = await start()
    serving = await gateway(settings(engine, one.url, when_away="closed"), whole=True)
    answers = await reload(serving, settings(engine, "redis://no-host.invalid:7", when_away="closed"))
    assert answers[-5:] == [503] * 5
    assert shared(serving).trouble == "redis: away (no-host.invalid:7: unknown host); what is limited is refused"


async def test_connections_to_what_was_left_are_closed(gateway: Gateway, engine: ScriptedEngine, start: Start) -> None:
    engine.answer(reply(completion()))
    one, other = await start(), await start()
    serving = await gateway(settings(engine, one.url), whole=True)
    await reload(serving, settings(engine, other.url))

    async def alone() -> bool:
        return len(await one.cli.client_list()) == 1

    await until_told(alone)
