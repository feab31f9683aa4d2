"""`turnout admin`: the admin API on the command line."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.cli import main
from tests.integration.conftest import Gateway, one_engine
from tests.support.openai_bytes import CHAT, HELLO
from tests.support.scripted import ScriptedEngine, reply
from tests.support.serving import Serving

Admin = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Keeps the gateway's own log, which serves in this process, out of the command's output."""
    with capture_logs():
        yield


@pytest.fixture
def admin(capsys: pytest.CaptureFixture[str]) -> Admin:
    """Runs a command against a gateway; gives its exit code and its two outputs."""

    async def run(serving: Serving, *arguments: str) -> tuple[int, str, str]:
        code = await asyncio.to_thread(main, ["admin", *arguments, "--url", serving.url])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


async def test_the_configuration_is_shown_and_read_again(
    admin: Admin, gateway: Gateway, engine: ScriptedEngine, tmp_path: Path
) -> None:
    file = tmp_path / "turnout.yaml"
    serving = await gateway(one_engine(engine), whole=True, file=file)
    code, out, _ = await admin(serving, "config")
    assert code == 0
    assert f"source:          {file}\nhash: " in out
    assert json.loads((await admin(serving, "config", "--json"))[1])["error"] is None
    assert json.loads((await admin(serving, "config", "--full"))[1])["settings"]["engines"]["e"]["kind"] == "vllm"
    serving.write("modles: {}\n")
    code, out, err = await admin(serving, "reload")
    assert (code, out) == (1, "")
    assert 'did you mean "models"?' in err
    assert err.splitlines()[1].startswith(f"{file}:1:1: engines: ")
    assert "\\n" not in err
    assert "not in force:" in (await admin(serving, "config"))[1]
    serving.write(one_engine(engine, server={"port": 7}))
    code, out, _ = await admin(serving, "reload")

    assert code == 0
    assert "after a restart: server.port: 8080 until a restart, then 7\n" in out


async def test_replicas_are_shown_and_drained(admin: Admin, gateway: Gateway, engine: ScriptedEngine) -> None:
    """One line for each, to be cut at its tabs."""
    serving = await gateway(one_engine(engine), whole=True)
    code, out, _ = await admin(serving, "drain", "e", engine.url)
    assert (code, out) == (0, f"e\tvllm\t\t{engine.url}\tdraining\t0\tdrained by an operator\n")
    assert (await admin(serving, "engines"))[1] == out
    assert json.loads((await admin(serving, "undrain", "e", "--json"))[1])[0]["endpoints"][0]["state"] != "draining"
    code, out, err = await admin(serving, "drain", "nobody")

    assert (code, out) == (1, "")
    assert "There is no engine 'nobody'" in err


@pytest.mark.parametrize("name", ["e/undrain?x=", "..", "", "ü/é", "e#", "e%2fundrain%3f"])
async def test_what_is_no_name_reaches_no_other_path(
    admin: Admin, gateway: Gateway, engine: ScriptedEngine, name: str
) -> None:
    serving = await gateway(one_engine(engine), whole=True)
    code, out, err = await admin(serving, "drain", name)

    assert (code, out) == (1, "")
    assert f"There is no engine '{name}'" in err
    assert "draining" not in (await admin(serving, "engines"))[1]


async def test_errors_are_listed(admin: Admin, gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(reply({"error": {"message": "no", "code": 500}}, status=500))
    serving = await gateway(one_engine(engine), whole=True)
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO, [("x-request-id", "mine")])
        await client.answer()
    code, out, _ = await admin(serving, "errors")

    assert code == 0
    assert out.split("\t")[1:6] == ["mine", "m", "e", "502", "engine_error"]
    assert json.loads((await admin(serving, "errors", "--json"))[1])[0]["request_id"] == "mine"


async def test_the_token_comes_from_a_variable(
    admin: Admin, gateway: Gateway, engine: ScriptedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token on the command line would be in the list of processes."""
    serving = await gateway(one_engine(engine) | {"admin": {"token": "right"}}, whole=True)
    monkeypatch.delenv("TURNOUT_ADMIN_TOKEN", raising=False)
    code, _, err = await admin(serving, "log-level")
    assert (code, err.count("\n")) == (1, 1)
    assert "TURNOUT_ADMIN_TOKEN" in err
    monkeypatch.setenv("TURNOUT_ADMIN_TOKEN", "right")
    assert (await admin(serving, "log-level"))[0] == 0
    monkeypatch.setenv("OTHER", "wrong")

    code, _, err = await admin(serving, "log-level", "--token", "OTHER")
    assert code == 1
    assert "the token is taken from OTHER" in err


async def test_a_token_given_in_the_place_of_its_variable_is_not_repeated(
    admin: Admin, gateway: Gateway, engine: ScriptedEngine
) -> None:
    serving = await gateway(one_engine(engine) | {"admin": {"token": "sk-marked"}}, whole=True)
    code, out, err = await admin(serving, "log-level", "--token", "sk-marked")

    assert (code, out) == (2, "")
    assert "no variable of that name is set (it takes the name of the variable that holds the token" in err
    assert "marked" not in err


async def test_without_a_gateway_it_says_so(engine: ScriptedEngine, capsys: pytest.CaptureFixture[str]) -> None:
    engine.on("/admin/engines", reply(b"<html>", content_type=b"text/html"))
    assert await asyncio.to_thread(main, ["admin", "engines", "--url", engine.url]) == 1
    assert "is no Turnout gateway" in capsys.readouterr().err
    await engine.stop()
    assert await asyncio.to_thread(main, ["admin", "engines", "--url", engine.url]) == 1

    assert "(cannot be reached): start it, or say with --url where it is" in capsys.readouterr().err
