"""`POST /admin/plan`: what an edit would change, as the running gateway sees it."""

import json
from pathlib import Path

import pytest

from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.scripted import ScriptedEngine, reply
from tests.support.serving import Serving
from tests.support.waiting import until


async def call(serving: Serving, method: str, path: str, body: Json = None) -> Answer:
    text = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(text)}\r\n"
    async with await serving.connect() as client:
        await client.send(f"{head}content-type: application/json\r\n\r\n".encode() + text)
        return await client.answer()


async def in_force(serving: Serving) -> Json:
    return (await call(serving, "GET", "/admin/config?full=true")).json["settings"]


def up(serving: Serving) -> bool:
    return {endpoint.state for endpoint in serving.plane.endpoints} == {"up"}


async def test_what_is_in_force_is_no_change(gateway: Gateway, engine: ScriptedEngine) -> None:
    """As the admin API shows it, stars included."""
    serving = await gateway(one_engine(engine, api_key="sk-marked"), whole=True)
    told = await call(serving, "POST", "/admin/plan", {"settings": await in_force(serving)})
    assert told.status == 200
    assert (told.json["safe"], told.json["changes"], told.json["looks"]) == (True, [], [])


async def test_the_state_of_endpoints_counts_and_what_is_new_is_asked(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    owner = {"owned_by": "vllm"}
    other.on("/v1/models", reply(json.dumps({"object": "list", "data": [{"id": "org/m", **owner}]}).encode()))
    serving = await gateway(one_engine(engine), whole=True)
    await until(lambda: up(serving))
    edited = await in_force(serving)
    edited["engines"]["e"]["urls"] = [other.url]

    told = (await call(serving, "POST", "/admin/plan", {"settings": edited})).json
    assert [(look["url"], look["ok"], look["models"]) for look in told["looks"]] == [(other.url, True, ["org/m"])]
    assert {loss["model"] for loss in told["losses"]} == {"same", "vectors"}

    told = (await call(serving, "POST", "/admin/plan", {"settings": edited, "probe": False})).json
    assert (told["safe"], told["looks"]) == (True, [])
    assert serving.plane.settings.engines["e"].urls == (engine.url,)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"e": {"kind": "vlm", "urls": ["http://h:1"]}}, "engines.e.kind: expected one of vllm, trtllm, triton"),
        ({"x": {"kind": "vllm", "urls": ["http://h:1"]}}, "models.m.engine: no engine has this name"),
    ],
)
async def test_settings_that_cannot_be_used_are_explained(
    gateway: Gateway, engine: ScriptedEngine, section: Json, said: str
) -> None:
    serving = await gateway(one_engine(engine), whole=True)
    answer = await call(
        serving, "POST", "/admin/plan", {"settings": {"engines": section, "models": {"m": {"engine": "e"}}}}
    )
    assert (answer.status, answer.error["code"]) == (400, "invalid_config")
    assert said in answer.error["message"]


async def test_nothing_of_this_machine_is_read_for_a_plan(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a file nor a variable: both would be sent to whatever address stands beside."""
    (tmp_path / "secret").write_text("sk-marked")
    monkeypatch.setenv("MARKED", "sk-marked")
    serving = await gateway(one_engine(engine), whole=True)
    edited = await in_force(serving)
    edited["engines"]["e"] |= {"urls": [other.url], "api_key": f"file:{tmp_path}/secret"}
    answer = await call(serving, "POST", "/admin/plan", {"settings": edited})
    assert (answer.status, answer.error["code"]) == (400, "invalid_config")
    assert "engines.e.api_key: no file is read for a plan" in answer.error["message"]

    edited["engines"]["e"]["api_key"] = "${MARKED}"
    answer = await call(serving, "POST", "/admin/plan", {"settings": edited})
    assert answer.status == 200
    assert b"marked" not in answer.body
