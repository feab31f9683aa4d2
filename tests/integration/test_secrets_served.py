"""Secrets of all kinds, in a gateway that serves: they are in nothing that it says."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import httpx2
import pytest

from tests.running import free_port
from tests.support.json_type import Json
from tests.support.keys import key_entry
from tests.support.process import Process
from tests.support.scripted import ScriptedEngine, reply
from tests.support.waiting import until

MARK = "MARKED"
ENGINE_KEY, ADMIN_TOKEN, CLIENT_KEY = f"sk-engine-{MARK}", f"admin-{MARK}", f"sk-client-{MARK}"
REDIS_PASSWORD = f"redis-{MARK}"
CHAT: dict[str, Json] = {"model": "m", "messages": [{"role": "user", "content": "Hello!"}]}
SHOWN = (
    "/v1/models",
    "/healthz",
    "/readyz",
    "/metrics",
    "/",
    "/openapi.json",
    "/admin/config",
    "/admin/config?full=true",
    "/admin/engines",
    "/admin/engines/e/capabilities",
    "/admin/errors",
    "/admin/tools",
    "/admin/usage",
    "/admin/doctor",
    "/admin/log-level",
)
Start = Callable[[Mapping[str, Json]], Process]


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts `turnout serve` with all that it could say about itself."""
    started: list[Process] = []

    def start(settings: Mapping[str, Json]) -> Process:
        (tmp_path / "turnout.yaml").write_text(json.dumps(settings))
        environment = {"ENGINE_KEY": ENGINE_KEY, "ADMIN_TOKEN": ADMIN_TOKEN}
        started.append(Process(tmp_path, "serve", environment=environment))
        return started[-1]

    yield start
    for process in started:
        process.kill()


def settings_with(*engines: str) -> dict[str, Json]:
    return {
        "server": {"port": 0},
        "engines": {
            name: {"kind": "vllm", "urls": [url], "api_key": "${ENGINE_KEY}"}
            for name, url in zip("ef", engines, strict=False)
        },
        "models": {"m": {"engine": "e", "log_prompts": True}, "gone": {"engine": "f"}},
        "keys": [key_entry("team", CLIENT_KEY)],
        "state": {"redis": f"redis://:{REDIS_PASSWORD}@127.0.0.1:{free_port()}/0"},
        "admin": {"token": "${ADMIN_TOKEN}"},
        "logs": {"level": "debug", "requests": "all"},
    }


async def test_no_secret_is_in_anything_that_is_said(serve: Start, engine: ScriptedEngine, tmp_path: Path) -> None:
    """Whatever an engine answers, an echo of our key too; while engines and Redis are away; with a bad file."""
    echo: dict[str, Json] = {"error": {"message": f"Incorrect API key provided: {ENGINE_KEY}", "code": 401}}
    settings = settings_with(engine.url, f"http://127.0.0.1:{free_port()}")
    process = serve(settings)
    port = await process.listening()
    client_key = {"authorization": f"Bearer {CLIENT_KEY}"}
    operator = {"authorization": f"Bearer {ADMIN_TOKEN}"}
    said: list[str] = []
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:

        async def ask(headers: Mapping[str, str], **changed: Json) -> int:
            answer = await client.post("/v1/chat/completions", json=CHAT | changed, headers=dict(headers))
            said.append(f"{answer.headers} {answer.text}")
            return answer.status_code

        for status in (401, 403, 400, 422, 500, 503):
            engine.answer(reply(echo, status=status))
            assert await ask(client_key) >= 400
        assert await ask(client_key, model="gone") == 503
        assert await ask({"authorization": f"Bearer wrong-{CLIENT_KEY}"}) == 401
        assert await ask({"authorization": f"Basic {CLIENT_KEY}"}) == 401
        assert await ask({"x-api-key": CLIENT_KEY}) == 401
        written = json.dumps(settings)
        for bad in (written.replace("api_key", "api_kee"), written + "}", written.replace("${ENGINE_KEY}", f"é{MARK}")):
            (tmp_path / "turnout.yaml").write_text(bad.replace("${ENGINE_KEY}", ENGINE_KEY))
            answer = await client.post("/admin/reload", headers=operator)
            assert answer.status_code == 400
            said.append(answer.text)
        for path in SHOWN:
            headers = operator if path.startswith("/admin") else client_key
            answer = await client.get(path, headers=headers)
            assert answer.status_code in {200, 503}, path
            said.append(f"{path} {answer.text}")
        said.append((await client.get("/admin/config", headers={"authorization": f"Bearer x{ADMIN_TOKEN}"})).text)
    process.interrupt()
    await process.ended()
    assert len(process.logged("request")) == 10

    assert [text for text in (*said, process.stderr, process.stdout) if MARK in text] == []


async def test_nobody_forges_a_line_of_the_log(serve: Start, engine: ScriptedEngine) -> None:
    """Names, ids, and prompts of clients are in it, and every line is one JSON object that the gateway has made."""
    forged = 'a\nERROR forged\r\n{"event": "forged"}\x1b[2J\u2028\u0085'
    engine.answer(reply({"error": {"message": forged, "code": 400}}, status=400))
    settings = settings_with(engine.url)
    del settings["keys"], settings["models"]["gone"]
    process = serve(settings)
    port = await process.listening()
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
        for changed in ({"model": forged}, {"user": forged}, {"messages": [{"role": "user", "content": forged}]}):
            headers = {b"x-request-id": b"a\x85ERROR", b"user-agent": b"\x85ERROR"}
            answer = await client.post("/v1/chat/completions", json=CHAT | changed, headers=headers)
            assert answer.status_code in {400, 404}
            assert answer.headers["x-request-id"].isalnum()
        await client.get("/v1/models/a%0AERROR%20forged")
    await until(lambda: len(process.logged("request")) == 3, what="the lines about requests")

    assert process.stderr.isascii()
    assert all(line.startswith('{"timestamp": ') for line in process.stderr.splitlines())
    assert process.logged("forged") == []


async def test_who_is_no_operator_learns_nothing_of_the_inside(serve: Start, engine: ScriptedEngine) -> None:
    """No address, no file, no key's name; a wrong token is refused whatever it is made of."""
    away = free_port()
    process = serve(settings_with(engine.url, f"http://127.0.0.1:{away}"))
    port = await process.listening()
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        for path in ("/healthz", "/readyz", "/", "/openapi.json", "/v1/models", "/nowhere"):
            shown = (await client.get(path)).text
            for secret in (str(engine.port), str(away), "turnout.yaml", "team", MARK):
                assert secret not in shown, path
        for token in ("x", "x" * 5000, "\xe9", "\xff\xfe", ADMIN_TOKEN[:-1], ADMIN_TOKEN + "x"):
            answer = await client.get("/admin/config", headers={b"authorization": b"Bearer " + token.encode("latin-1")})
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_admin_token")
