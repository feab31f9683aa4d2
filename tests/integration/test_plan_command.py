"""`turnout plan` as a process, against files, a scripted admin API, and engines that are really asked."""

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from engines.simulator import simulated
from gateway.settings.redacted import redacted_tree
from gateway.settings.tree import Settings
from tests.running import free_port
from tests.support.json_type import Json
from tests.support.process import Process
from tests.support.scripted import ScriptedEngine, Talk, reply

Run = Callable[..., Awaitable[Process]]


@pytest.fixture
async def run(tmp_path: Path, nothing_unheard: None) -> Run:
    """Runs `turnout plan` to its end in a folder with these files."""

    async def plan(*arguments: str, files: Mapping[str, Json], **environment: str) -> Process:
        for name, tree in files.items():
            (tmp_path / name).write_text(tree if isinstance(tree, str) else json.dumps(tree))
        process = Process(tmp_path, "plan", *arguments, environment=environment)
        await process.ended()
        return process

    return plan


def tree(engines: Mapping[str, Json], models: Mapping[str, Json], **more: Json) -> dict[str, Json]:
    return {"engines": dict(engines), "models": dict(models), **more}


def vllm(*urls: str, **more: Json) -> dict[str, Json]:
    return {"kind": "vllm", "urls": list(urls), **more}


def admin(gateway: ScriptedEngine, in_force: dict[str, Json], states: Mapping[str, str]) -> None:
    """Lets a scripted server answer as the admin API of a gateway with this configuration does."""
    settings = Settings.model_validate(in_force)
    config = {"hash": "0" * 64, "loaded_at": 1.0, "source": "/etc/turnout.yaml", "error": None, "restart_needed": []}
    gateway.on("/admin/config?full=true", reply(config | {"settings": redacted_tree(settings)}))
    engines = [
        {
            "name": name,
            "kind": engine.kind.value,
            "version": None,
            "endpoints": [{"url": url, "state": states[url], "reason": "", "in_flight": 0} for url in engine.urls],
        }
        for name, engine in settings.engines.items()
    ]
    gateway.on("/admin/engines", reply(json.dumps(engines).encode()))


async def test_a_plan_against_a_file_says_what_changes_and_looks_at_what_is_new(run: Run) -> None:
    async with simulated("vllm", ["m", "big"]) as url:
        old = tree({"q": vllm("http://127.0.0.1:1")}, {"m": {"engine": "q"}, "small": {"engine": "q"}})
        new = tree({"q": vllm("http://127.0.0.1:1", url)}, {"m": {"engine": "q", "policy": "round_robin"}})
        done = await run("new.yaml", "--against", "old.yaml", files={"old.yaml": old, "new.yaml": new})
        assert (done.popen.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines() == [
            "new.yaml against old.yaml",
            "",
            "Models",
            '  - small: "small" is gone: requests for it get 404  breaks clients',
            "  ~ m: policy: least_requests → round_robin",
            "",
            "Engines",
            f"  + q: new replica: {url}",
            "",
            "Looked at",
            f"  ✓ q at {url}: vLLM 0.32.0, lists m, big",
            "",
            "safe; 1 of its changes will break requests that work now",
        ]


async def test_the_same_file_is_safe(run: Run) -> None:
    same = tree({"q": vllm("http://127.0.0.1:1")}, {"m": {"engine": "q"}})
    done = await run("a.yaml", "--against", "b.yaml", files={"a.yaml": same, "b.yaml": same})
    assert done.stdout == "a.yaml against b.yaml\n  no difference\n\nsafe\n"
    assert done.popen.returncode == 0


async def test_a_new_engine_that_cannot_be_reached_is_unsafe(run: Run) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    old = tree({"q": vllm("http://127.0.0.1:1")}, {"m": {"engine": "q"}})
    new = tree({"q": vllm("http://127.0.0.1:1"), "x": vllm(url)}, {"m": {"engine": "q"}})
    files = {"old.yaml": old, "new.yaml": new}
    done = await run("new.yaml", "--against", "old.yaml", files=files)
    assert done.popen.returncode == 3
    assert f"✗ x at {url}: nobody listens at its address" in done.stdout
    assert done.stdout.endswith("unsafe: no replica of the new engine x can be used\n")

    done = await run("new.yaml", "--against", "old.yaml", "--json", files=files)
    told = json.loads(done.stdout)
    assert (done.popen.returncode, told["safe"], told["unreached"]) == (3, False, ["x"])
    assert told["looks"] == [
        {
            "engine": "x",
            "url": url,
            "ok": False,
            "fault": "nobody listens at its address",
            "kind": None,
            "version": None,
            "models": [],
        }
    ]
    done = await run("new.yaml", "--against", "old.yaml", "--no-probe", files=files)
    assert done.popen.returncode == 0


@pytest.mark.parametrize(
    ("kind", "more", "fault"),
    [
        ("triton", {}, "it is Triton, not vLLM (its models are owned by 'Triton Inference Server')"),
        ("trtllm", {}, "it is trtllm-serve, not vLLM (its models are owned by 'tensorrt_llm')"),
    ],
)
async def test_an_engine_of_another_kind_will_not_do(run: Run, kind: str, more: Json, fault: str) -> None:
    async with simulated(kind, ["m"]) as url:
        old = tree({"q": vllm("http://127.0.0.1:1")}, {"m": {"engine": "q"}})
        new = tree({"q": vllm(url)}, {"m": {"engine": "q"}})
        done = await run("new.yaml", "--against", "old.yaml", files={"old.yaml": old, "new.yaml": new})
        assert done.popen.returncode == 3
        assert f"✗ q at {url}: {fault}" in done.stdout
        assert f"unsafe: model m would lose its last healthy target (q at {url}: {fault})" in done.stdout


async def test_a_key_that_is_not_taken_will_not_do(run: Run, engine: ScriptedEngine) -> None:
    engine.on("/v1/models", reply({"error": "Unauthorized"}, status=401))
    old = tree({"q": vllm("http://127.0.0.1:1")}, {"m": {"engine": "q"}})
    for more, told in (({"api_key": "sk-marked"}, "does not take the key"), ({}, "asks for a key (api_key)")):
        new = tree({"q": vllm(engine.url, **more)}, {"m": {"engine": "q"}})
        done = await run("new.yaml", "--against", "old.yaml", files={"old.yaml": old, "new.yaml": new})
        assert done.popen.returncode == 3
        assert f"it {told}" in done.stdout
        assert "marked" not in done.stdout


async def test_names_with_several_addresses_are_looked_up(run: Run) -> None:
    async with simulated("vllm", ["m"]) as url:
        name = url.replace("127.0.0.1", "localhost")
        old = tree({"q": vllm("http://127.0.0.1:1")}, {"m": {"engine": "q"}})
        for host, code in ((f"dns+{name}", 0), ("dns+http://away.invalid:8000", 3)):
            new = tree({"q": vllm(host)}, {"m": {"engine": "q"}})
            done = await run("new.yaml", "--against", "old.yaml", files={"old.yaml": old, "new.yaml": new})
            assert done.popen.returncode == code


async def test_the_state_of_a_running_gateway_counts(run: Run, engine: ScriptedEngine) -> None:
    """Its address is the file's own; what it says is down will not serve after the change either."""
    in_force = tree({"q": vllm("http://a:1", "http://b:1")}, {"m": {"engine": "q"}})
    new = tree({"q": vllm("http://b:1")}, {"m": {"engine": "q"}}, server={"port": engine.port})
    admin(engine, in_force | {"server": {"port": engine.port}}, {"http://a:1": "up", "http://b:1": "down"})
    done = await run("new.yaml", files={"new.yaml": new})
    assert done.stdout.splitlines() == [
        f"new.yaml against {engine.url}",
        "",
        "Engines",
        "  - q: leaves: http://a:1",
        "",
        "unsafe: model m would lose its last healthy target (q at http://b:1: does not serve now)",
    ]
    assert done.popen.returncode == 3

    admin(engine, in_force | {"server": {"port": engine.port}}, {"http://a:1": "up", "http://b:1": "up"})
    assert (await run("new.yaml", "--against", engine.url, files={"new.yaml": new})).popen.returncode == 0


async def test_the_admin_token_is_shown_to_the_gateway_and_to_nobody_else(run: Run, engine: ScriptedEngine) -> None:
    new = tree({"q": vllm("http://b:1")}, {"m": {"engine": "q"}}, admin={"token": "tok-file"})
    admin(engine, new, {"http://b:1": "up"})
    shown: list[bytes | None] = []
    listing = engine.scripts["/admin/engines"]

    async def watched(talk: Talk) -> None:
        shown.append(talk.request.header("authorization"))
        await listing(talk)

    engine.on("/admin/engines", watched)
    for environment in ({}, {"TURNOUT_ADMIN_TOKEN": "tok-env"}):
        done = await run("new.yaml", "--against", engine.url, files={"new.yaml": new}, **environment)
        assert done.popen.returncode == 0
        assert "tok-" not in done.stdout + done.stderr
    assert shown == [b"Bearer tok-file", b"Bearer tok-env"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (reply({"error": {"message": "The admin token is missing or wrong."}}, status=401), "Set TURNOUT_ADMIN_TOKEN"),
        (reply(b"", status=404), "has no /admin/config"),
        (reply(b"<html>", content_type=b"text/html"), "does not answer as a Turnout gateway does"),
        (reply({"hash": "", "settings": {"server": {"sails": 3}}}), "runs another version of Turnout: server.sails"),
    ],
)
async def test_a_gateway_that_cannot_be_compared_with_is_explained(
    run: Run, engine: ScriptedEngine, answer: Json, told: str
) -> None:
    engine.on("/admin/config?full=true", answer)
    new = tree({"q": vllm("http://b:1")}, {"m": {"engine": "q"}})
    done = await run("new.yaml", "--against", engine.url, files={"new.yaml": new})
    assert (done.popen.returncode, done.stdout) == (1, "")
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


async def test_without_a_gateway_the_error_says_what_to_do(run: Run) -> None:
    new = tree({"q": vllm("http://b:1")}, {"m": {"engine": "q"}}, server={"port": free_port()})
    done = await run("new.yaml", files={"new.yaml": new})
    assert done.popen.returncode == 1
    assert "cannot be reached): start it, or say with --against" in done.stderr


async def test_an_invalid_file_is_code_2(run: Run) -> None:
    good = tree({"q": vllm("http://b:1")}, {"m": {"engine": "q"}})
    bad = tree({"q": vllm("http://b:1")}, {"m": {"engine": "qq"}})
    for new, old in (("bad.yaml", "good.yaml"), ("good.yaml", "bad.yaml")):
        done = await run(new, "--against", old, files={"good.yaml": good, "bad.yaml": bad})
        assert (done.popen.returncode, done.stdout) == (2, "")
        assert 'no engine has this name: "qq" (did you mean "q"?)' in done.stderr
