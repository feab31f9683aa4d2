"""Everything that can be asked and everything that can go wrong, with marked secrets: none of them is seen anywhere.

The secrets: a client's key that is known, one that is not, the engine's key, the admin token, Redis' password. Where it
is looked for: answers, the log, metrics, admin answers, the status page, what Redis holds, what commands print.
"""

import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from tests.support.client import Answer, Client
from tests.support.json_type import Json
from tests.support.keys import key_entry
from tests.support.named_bytes import MESSAGES
from tests.support.openai_bytes import CHAT, DONE, EMBEDDINGS, HELLO, STREAM, completion, deltas, vllm_error
from tests.support.process import Process
from tests.support.redis_server import RedisServer
from tests.support.scripted import Script, ScriptedEngine, hang_up, reply, reset, stream
from tests.support.waiting import until, until_told

MARK = "MARKEDSECRET"
CLIENT, STRANGER = f"sk-turnout-{MARK}-client", f"sk-{MARK}-stranger"
ENGINE, ADMIN, REDIS = f"sk-{MARK}-engine", f"{MARK}-admin", f"{MARK}-redis"
LOOKS = ("/metrics", "/readyz", "/healthz", "/", "/openapi.json", "/v1/models", "/v1/models/m")
ADMINS = ("engines", "config", "config?full=true", "usage", "usage?format=csv", "tools", "errors")


@pytest.fixture
async def redis(tmp_path: Path) -> AsyncIterator[RedisServer]:
    server = RedisServer(tmp_path / "redis", "--requirepass", REDIS)
    server.cli = type(server.cli)(port=server.port, password=REDIS, decode_responses=True)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def engine() -> AsyncIterator[ScriptedEngine]:
    async with ScriptedEngine() as started:
        yield started


def configuration(engine: ScriptedEngine, redis: RedisServer) -> dict[str, Json]:
    return {
        "server": {"port": 0, "access_log": True},
        "engines": {"e": {"kind": "vllm", "urls": [engine.url], "api_key": ENGINE}},
        "models": {"m": {"engine": "e", "model": "org/m"}, "vectors": {"engine": "e", "task": "embedding"}},
        "keys": [
            key_entry("team-a", CLIENT, limits={"rpm": 60}),
            key_entry("narrow", f"{CLIENT}-2", models=["vectors"]),
        ],
        "keys_file": "keys.yaml",
        "state": {"redis": f"redis://:{REDIS}@127.0.0.1:{redis.port}/0"},
        "admin": {"token": ADMIN},
    }


def echo(status: int) -> Script:
    """An engine that repeats the credentials that it was shown, as an error: some print the headers of a request."""

    async def script(talk: object) -> None:
        await reply(vllm_error(f"headers: Bearer {ENGINE}", status), status=status)(talk)  # type: ignore[arg-type]

    return script


async def post(port: int, headers: Iterable[tuple[str, str]], body: Json = HELLO, path: str = CHAT) -> bytes:
    async with await Client.open(port) as client:
        await client.post(path, body, headers)
        return shown(await client.answer())


async def get(port: int, path: str, *headers: tuple[str, str]) -> bytes:
    async with await Client.open(port) as client:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        await client.send(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{lines}\r\n".encode())
        return shown(await client.answer())


async def told(port: int, path: str, header: tuple[str, str], text: bytes) -> bool:
    return text in await get(port, path, header)


def shown(answer: Answer) -> bytes:
    return repr(answer.headers).encode() + answer.body


async def everything_asked(port: int, engine: ScriptedEngine) -> list[bytes]:
    """What a client hears, whatever happens."""
    found = []
    known, unknown = ("authorization", f"Bearer {CLIENT}"), ("authorization", f"Bearer {STRANGER}")
    scripts = [reply(completion()), echo(400), echo(401), echo(500), hang_up, reset, stream(*deltas("a"), DONE)]
    for script in scripts:
        engine.answer(script)
        found += [await post(port, [known], body) for body in (HELLO, STREAM)]
    for headers in (
        [unknown],
        [("x-api-key", STRANGER)],
        [("authorization", STRANGER)],
        [("authorization", f"Basic {STRANGER}")],
    ):
        found += [
            await post(port, headers, body, path) for body in (HELLO, b"{") for path in (CHAT, EMBEDDINGS, MESSAGES)
        ]
    found.append(await post(port, [("authorization", f"Bearer {CLIENT}-2")]))
    found.append(await post(port, [known], HELLO | {"model": "nothing"}))
    found.append(await post(port, [known], b"{", CHAT))
    found += [await get(port, f"{CHAT}?api_key={STRANGER}", known), await get(port, "/v1/models", unknown)]
    engine.answer(reply(completion()))
    found += [await post(port, [known]) for _ in range(60)]
    assert any(b'"rate_limit_exceeded"' in answer for answer in found)
    assert any(b'"invalid_api_key"' in answer for answer in found)
    return found


async def test_no_secret_is_seen_anywhere(tmp_path: Path, engine: ScriptedEngine, redis: RedisServer) -> None:
    (tmp_path / "keys.yaml").write_text(json.dumps([key_entry("filed", f"{CLIENT}-3")]))
    (tmp_path / "turnout.yaml").write_text(json.dumps(configuration(engine, redis)))
    process = Process(tmp_path, "serve")
    try:
        port = await process.listening()
        found = await everything_asked(port, engine)
        found += [await get(port, path, ("authorization", f"Bearer {CLIENT}")) for path in LOOKS]
        token = ("authorization", f"Bearer {ADMIN}")
        await until_told(lambda: told(port, "/admin/usage", token, b"team-a"), what="the usage")
        admin = [await get(port, f"/admin/{path}", ("authorization", f"Bearer {ADMIN}")) for path in ADMINS]
        found += [*admin, await get(port, "/admin/engines", ("authorization", f"Bearer {STRANGER}"))]
        found += [repr(await redis.kept()).encode()]
        redis.kill()
        await until(lambda: bool(process.logged("redis is away: each process holds the limits by itself")))
        found += [await get(port, "/readyz"), await post(port, [("authorization", f"Bearer {CLIENT}")])]
        (tmp_path / "turnout.yaml").write_text(
            f"engines: {{e: {{kind: vllm, api_key: {ENGINE}}}}}\nkeys: [{{hash: {STRANGER}}}]\n"
        )
        await until(lambda: "configuration" in process.stderr, 20)
        found.append(await get(port, "/admin/config", ("authorization", f"Bearer {ADMIN}")))
    finally:
        process.interrupt()
        await process.ended()

    command = Process(tmp_path, "check", "turnout.yaml")
    assert await command.ended() == 2
    said = process.stdout + process.stderr + command.stdout + command.stderr
    assert [answer for answer in found if MARK.encode() in answer] == []
    assert [line for line in said.splitlines() if MARK in line] == []
    assert [request for request in engine.requests if CLIENT.encode() in repr(request).encode()] == []


async def test_the_name_of_the_key_is_in_the_log(tmp_path: Path, engine: ScriptedEngine, redis: RedisServer) -> None:
    """So that operators know who asked without knowing the key."""
    (tmp_path / "keys.yaml").write_text("[]")
    (tmp_path / "turnout.yaml").write_text(json.dumps(configuration(engine, redis)))
    engine.answer(reply(completion()))
    process = Process(tmp_path, "serve")
    try:
        await post(await process.listening(), [("authorization", f"Bearer {CLIENT}")])
    finally:
        process.interrupt()
        await process.ended()

    (line,) = process.logged("request")
    assert line["key"] == "team-a"
