"""Where a gateway is, and the token for it: what every command that speaks to one says of what it was given."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.settings.redacted import redacted_tree
from gateway.settings.tree import Settings
from tests.support.json_type import Json
from tests.support.scripted import Script, ScriptedEngine, Talk, reply

COMMANDS = {
    "plan": (["plan", "new.yaml"], "--against"),
    "apply": (["apply", "new.yaml", "--yes"], "--against"),
    "usage": (["usage"], "--url"),
    "admin": (["admin", "config"], "--url"),
}
FILE: dict[str, Json] = {
    "engines": {"q": {"kind": "vllm", "urls": ["http://127.0.0.1:1"]}},
    "models": {"m": {"engine": "q"}},
}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file and an environment without tokens."""
    monkeypatch.chdir(tmp_path)
    for name in ("TURNOUT_ADMIN_TOKEN", "TURNOUT_ADMIN_URL", "TURNOUT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "new.yaml").write_text(json.dumps(FILE))
    return tmp_path


@pytest.fixture
async def gateway(engine: ScriptedEngine, place: Path) -> ScriptedEngine:
    """A scripted server that answers as the admin API of a gateway does that has the file in force."""
    in_force: Json = {"hash": "0", "source": str(place / "new.yaml"), "error": None, "loaded_at": 1.0}
    in_force["restart_needed"] = []
    tree = redacted_tree(Settings.model_validate(FILE))
    for path, script in {
        "/admin/config": reply(in_force),
        "/admin/config?full=true": reply(in_force | {"settings": tree}),
        "/admin/engines": reply(b"[]"),
        "/admin/usage": reply(b"[]"),
        "/admin/reload": reply({"error": {"message": "stays as it is"}}, status=400),
    }.items():
        engine.on(path, noted(engine, script))
    return engine


def noted(engine: ScriptedEngine, script: Script) -> Script:
    """The script, whose requests are kept among the engine's."""

    async def note(talk: Talk) -> None:
        engine.requests.append(talk.request)
        await script(talk)

    return note


async def run(name: str, *where: str, token: Sequence[str] = ()) -> int:
    arguments, option = COMMANDS[name]
    return await asyncio.to_thread(main, [*arguments, *(text for at in where for text in (option, at)), *token])


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("http://", "a valid host"),
        ("http://[", "a valid host"),
        ("ftp://h:1", "http:// or https://"),
        ("http://127.0.0.1:99999", "a port from 1 to 65535"),
        ("http://a b:1", "a valid host"),
        ("http://h:1?x=1", "no query"),
        ("http://name:marked@h:1", "must not hold credentials"),
        ("dns+http://h:1", "http:// or https://"),
        ("", "http:// or https://"),
    ],
)
async def test_what_is_no_address_is_said_to_be_none(
    capsys: pytest.CaptureFixture[str], name: str, where: str, told: str
) -> None:
    code = await run(name, where)
    said = capsys.readouterr()

    assert (code, said.out, said.err.count("\n")) == (2, "", 1)
    assert told in said.err
    assert f"{COMMANDS[name][1]}: " in said.err or f"{COMMANDS[name][1]} " in said.err
    assert "marked" not in said.err


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("spelled", ["{url}/", "{host}", "{url}/v1", "{url}/v1/"])
async def test_an_address_may_be_spelled_as_people_paste_it(
    gateway: ScriptedEngine, capsys: pytest.CaptureFixture[str], name: str, spelled: str
) -> None:
    url = spelled.format(url=gateway.url, host=gateway.url.removeprefix("http://"))
    code = await run(name, url)

    assert (code, gateway.requests != []) == (2 if name == "apply" else 0, True), capsys.readouterr().err


@pytest.mark.parametrize("name", ["usage", "admin"])
async def test_the_usual_variable_says_where_the_gateway_is(
    gateway: ScriptedEngine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """No file is needed then; what is wrong with it is said."""
    monkeypatch.setenv("TURNOUT_ADMIN_URL", gateway.url)
    assert (await run(name), gateway.requests != []) == (0, True), capsys.readouterr().err
    monkeypatch.setenv("TURNOUT_ADMIN_URL", "http://[")
    assert await run(name) == 2
    assert "a valid host" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
async def test_who_does_not_answer_is_named_with_the_option_that_names_another(
    engine: ScriptedEngine, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    await engine.stop()
    code = await run(name, engine.url)
    said = capsys.readouterr()

    assert (code, said.out, said.err.count("\n")) == (1, "", 1)
    assert f"no gateway at {engine.url}" in said.err
    options = {option for _, option in COMMANDS.values() if option in said.err}
    assert options == {COMMANDS[name][1]}


@pytest.mark.parametrize("name", COMMANDS)
async def test_what_is_no_gateway_is_said_to_be_none(
    engine: ScriptedEngine, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """An engine, for one, has no such path either."""
    for path in ("/admin/config", "/admin/config?full=true", "/admin/usage"):
        engine.on(path, reply({"detail": "Not Found"}, status=404))
    code = await run(name, engine.url)
    said = capsys.readouterr()

    assert (code, said.out, said.err.count("\n")) == (1, "", 1)
    assert "is it a Turnout gateway, and as new as this command?" in said.err


@pytest.mark.parametrize("name", COMMANDS)
async def test_the_token_of_an_option_goes_before_that_of_the_usual_variable(
    gateway: ScriptedEngine, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """And that one before the file's."""
    monkeypatch.setenv("TURNOUT_ADMIN_TOKEN", "usual")
    monkeypatch.setenv("OTHER", "other")
    await run(name, gateway.url)
    await run(name, gateway.url, token=["--token", "OTHER"])
    shown = {request.header("authorization"): None for request in gateway.requests}

    assert list(shown) == [b"Bearer usual", b"Bearer other"]


@pytest.mark.parametrize("name", ["plan", "apply", "usage"])
async def test_the_files_token_is_the_last(
    gateway: ScriptedEngine, monkeypatch: pytest.MonkeyPatch, place: Path, name: str
) -> None:
    (place / "new.yaml").write_text(json.dumps(FILE | {"admin": {"token": "of-the-file"}}))
    config = ["--config", "new.yaml"] if name == "usage" else []
    monkeypatch.setenv("TURNOUT_ADMIN_TOKEN", "")
    await run(name, gateway.url, token=config)

    assert {request.header("authorization") for request in gateway.requests} == {b"Bearer of-the-file"}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("token", ["m\xe4rked", "mar ked", "mar\nked", "\udcffrked"])
async def test_what_is_no_token_is_not_sent_and_not_repeated(
    gateway: ScriptedEngine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, token: str
) -> None:
    monkeypatch.setenv("TURNOUT_ADMIN_TOKEN", token)
    code = await run(name, gateway.url)
    said = capsys.readouterr()

    assert (code, said.out, said.err.count("\n")) == (2, "", 1)
    assert "TURNOUT_ADMIN_TOKEN" in said.err
    assert "rked" not in said.err
    assert gateway.requests == []


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_token_that_is_not_taken_is_named_by_its_variable(
    engine: ScriptedEngine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for path in ("/admin/config", "/admin/config?full=true", "/admin/usage"):
        engine.on(path, reply({"error": {"message": "The admin token is missing or wrong."}}, status=401))
    monkeypatch.setenv("OTHER", "marked")
    code = await run(name, engine.url, token=["--token", "OTHER"])
    said = capsys.readouterr().err

    assert (code, said.count("\n")) == (1, 1)
    assert "The admin token is missing or wrong." in said
    assert "OTHER" in said
    assert "marked" not in said


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_token_in_the_place_of_a_variables_name_is_not_repeated(
    gateway: ScriptedEngine, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    code = await run(name, gateway.url, token=["--token", "marked"])
    said = capsys.readouterr().err

    assert (code, said.count("\n")) == (2, 1)
    assert "it takes the name of the variable that holds the token, not the token" in said
    assert "marked" not in said
