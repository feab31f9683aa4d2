"""`turnout plan` and `turnout apply` as processes, against a gateway that runs."""

import asyncio
import json
import os
import pty
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import httpx2
import pytest

from engines.simulator import simulated
from tests.running import free_port
from tests.support.json_type import Json
from tests.support.process import Process, clean_environment
from tests.support.scripted import ScriptedEngine, hang_up, reply
from tests.support.waiting import until, within

Start = Callable[..., Awaitable[str]]
Run = Callable[..., Awaitable[Process]]


@pytest.fixture
async def url(nothing_unheard: None) -> AsyncIterator[str]:
    async with simulated("vllm", ["m", "big"]) as listening:
        yield listening


@pytest.fixture
async def start(tmp_path: Path, nothing_unheard: None) -> AsyncIterator[Start]:
    """Starts a gateway in a folder of its own; gives its URL."""
    started: list[Process] = []

    async def serve(*arguments: str, **environment: str) -> str:
        folder = tmp_path / "gateway"
        folder.mkdir(exist_ok=True)
        started.append(Process(folder, "serve", *arguments, environment=environment))
        return f"http://127.0.0.1:{await started[-1].listening()}"

    yield serve
    for process in started:
        process.kill()


@pytest.fixture
async def run(tmp_path: Path) -> Run:
    async def turnout(*arguments: object, **environment: str) -> Process:
        process = Process(tmp_path, *map(str, arguments), environment=environment)
        await process.ended()
        return process

    return turnout


def tree(url: str, models: Mapping[str, Json], **more: Json) -> dict[str, Json]:
    return {"engines": {"q": {"kind": "vllm", "urls": [url]}}, "models": dict(models), **more}


def write(path: Path, content: Mapping[str, Json]) -> Path:
    path.write_text(json.dumps(content))
    return path


def names(folder: Path) -> set[str]:
    return {found.name for found in folder.iterdir()}


async def models(gateway: str) -> list[str]:
    async with httpx2.AsyncClient(base_url=gateway) as client:
        return [row["id"] for row in (await client.get("/v1/models")).json()["data"]]


async def config(gateway: str, token: str = "none") -> Json:
    async with httpx2.AsyncClient(base_url=gateway, headers={"authorization": f"Bearer {token}"}) as client:
        return (await client.get("/admin/config")).json()


async def healthy(gateway: str) -> None:
    """Returns when the gateway has asked its engines once."""
    async with httpx2.AsyncClient(base_url=gateway) as client:
        seen: list[str] = []

        async def look() -> None:
            while "up" not in seen:
                engines = (await client.get("/admin/engines")).json()
                seen[:] = [one["state"] for engine in engines for one in engine["endpoints"]]

        await look()


async def test_a_plan_against_a_running_gateway(start: Start, run: Run, tmp_path: Path, url: str) -> None:
    """Its configuration and the state of its endpoints come from its admin API, without a secret."""
    other = f"http://127.0.0.1:{free_port()}"
    old = tree(url, {"m": {"engine": "q"}}, server={"port": free_port()})
    old["engines"]["q"] |= {"urls": [url, other], "api_key": "sk-marked"}
    await healthy(await start("--config", str(write(tmp_path / "running.yaml", old))))

    done = await run("plan", tmp_path / "running.yaml")
    note = "secrets are not compared with a running gateway: engines.q.api_key"
    seen = ["  no difference that can be seen", "", f"note: {note}", "safe"]
    assert (done.popen.returncode, done.stdout.splitlines()[1:]) == (0, seen)
    assert json.loads((await run("plan", tmp_path / "running.yaml", "--json")).stdout)["notes"] == [note]

    fewer = json.loads(json.dumps(old))
    fewer["engines"]["q"]["urls"] = [other]

    async def lost() -> Process:
        return await run("plan", write(tmp_path / "fewer.yaml", fewer), "--json")

    done = await lost()
    while done.popen.returncode == 0:  # the gateway has not found out yet that nobody listens there
        done = await lost()
    told = json.loads(done.stdout)
    assert (done.popen.returncode, told["losses"]) == (3, [{"model": "m", "why": f"q at {other}: does not serve now"}])
    assert [change["meaning"] for change in told["changes"]] == [f"leaves: {url}"]
    assert "marked" not in done.stdout + done.stderr


async def test_an_edit_is_written_and_in_force_when_the_command_ends(
    start: Start, run: Run, tmp_path: Path, url: str
) -> None:
    """The file's permissions stay, and a link stays a link."""
    real = write(tmp_path / "real.yaml", tree(url, {"m": {"engine": "q"}}))
    real.chmod(0o640)
    link = tmp_path / "running.yaml"
    link.symlink_to("real.yaml")
    gateway = await start("--config", str(link), "--port", "0")

    new = write(tmp_path / "new.yaml", tree(url, {"m": {"engine": "q"}, "big": {"engine": "q"}}))
    done = await run("apply", new, "--against", gateway, "--yes")
    assert done.popen.returncode == 0, done.stderr
    assert "  + big: new: chat, big on q\n" in done.stdout
    assert done.stdout.splitlines()[-1] == f"{gateway} has it in force"
    assert await models(gateway) == ["m", "big"]
    assert link.readlink() == Path("real.yaml")
    assert (real.read_bytes(), stat.S_IMODE(real.stat().st_mode)) == (new.read_bytes(), 0o640)
    assert names(real.parent) == {"gateway", "new.yaml", "real.yaml", "running.yaml", "stderr", "stdout"}

    done = await run("apply", new, "--against", gateway)
    assert (done.popen.returncode, done.stdout) == (0, f"{gateway} has it in force already\n")


async def test_what_is_not_safe_is_not_written_unless_it_is_forced(
    start: Start, run: Run, tmp_path: Path, url: str
) -> None:
    running = write(tmp_path / "running.yaml", tree(url, {"m": {"engine": "q"}}))
    before = running.read_bytes()
    gateway = await start("--config", str(running), "--port", "0")
    new = write(tmp_path / "new.yaml", tree(f"http://127.0.0.1:{free_port()}", {"m": {"engine": "q"}}))
    done = await run("apply", new, "--against", gateway, "--yes")
    assert (done.popen.returncode, running.read_bytes()) == (3, before)
    assert done.stderr == "turnout: nothing is written: mend what is unsafe, or give --force\n"
    done = await run("apply", new, "--against", gateway, "--yes", "--force")
    assert (done.popen.returncode, running.read_bytes()) == (0, new.read_bytes())


async def test_nobody_is_asked_where_nobody_sits(start: Start, run: Run, tmp_path: Path, url: str) -> None:
    running = write(tmp_path / "running.yaml", tree(url, {"m": {"engine": "q"}}))
    before = running.read_bytes()
    gateway = await start("--config", str(running), "--port", "0")
    new = write(tmp_path / "new.yaml", tree(url, {"big": {"engine": "q"}}))
    done = await run("apply", new, "--against", gateway)
    assert (done.popen.returncode, running.read_bytes()) == (1, before)
    assert done.stderr == "turnout: nothing is written: nobody can be asked, so give --yes\n"


@pytest.mark.parametrize(("word", "code"), [("y", 0), ("n", 1)])
async def test_on_a_terminal_the_answer_counts(start: Start, tmp_path: Path, url: str, word: str, code: int) -> None:
    running = write(tmp_path / "running.yaml", tree(url, {"m": {"engine": "q"}}))
    before = running.read_bytes()
    gateway = await start("--config", str(running), "--port", "0")
    new = write(tmp_path / "new.yaml", tree(url, {"m": {"engine": "q", "policy": "round_robin"}}))
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "apply", str(new), "--against", gateway),
        env=clean_environment(),
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    os.write(ours, f"{word}\n".encode())
    _, asked = await within(process.communicate(), 60.0, "the end of the command")
    os.close(ours)
    os.close(theirs)
    assert asked.decode().startswith(f"Put this in force ({running})? [y/N]:")
    assert (process.returncode, running.read_bytes() == before) == (code, word == "n")


async def test_what_the_gateway_refuses_is_taken_back(start: Start, run: Run, tmp_path: Path, url: str) -> None:
    """It lives in another environment than the command."""
    running = write(tmp_path / "running.yaml", tree(url, {"m": {"engine": "q"}}))
    before = running.read_bytes()
    gateway = await start("--config", str(running), "--port", "0")
    new = tree(url, {"m": {"engine": "q"}})
    new["engines"]["q"]["api_key"] = "${ONLY_HERE}"
    done = await run("apply", write(tmp_path / "new.yaml", new), "--against", gateway, "--yes", ONLY_HERE="sk-marked")
    assert (done.popen.returncode, running.read_bytes()) == (2, before)
    assert f"the gateway refuses it, and {running} is as it was before: " in done.stderr
    assert "environment variable ONLY_HERE is not set" in done.stderr
    assert "marked" not in done.stderr + done.stdout
    assert (await config(gateway))["error"] is None


async def test_a_file_that_was_edited_in_place_is_only_waited_for(
    start: Start, run: Run, tmp_path: Path, url: str
) -> None:
    running = write(tmp_path / "running.yaml", tree(url, {"m": {"engine": "q"}}))
    gateway = await start("--config", str(running), "--port", "0")
    write(running, tree(url, {"big": {"engine": "q"}}))
    inode = running.stat().st_ino
    done = await run("apply", running, "--against", gateway, "--yes")
    assert (done.popen.returncode, await models(gateway)) == (0, ["big"])
    assert running.stat().st_ino == inode


async def test_a_change_of_the_token_is_followed(start: Start, run: Run, tmp_path: Path, url: str) -> None:
    """Before the edit the environment's token is right, after it the file's."""
    running = write(tmp_path / "running.yaml", tree(url, {"m": {"engine": "q"}}, admin={"token": "old"}))
    gateway = await start("--config", str(running), "--port", "0")
    new = write(tmp_path / "new.yaml", tree(url, {"m": {"engine": "q"}}, admin={"token": "new"}))
    done = await run("apply", new, "--against", gateway, "--yes", "--to", running, TURNOUT_ADMIN_TOKEN="old")
    assert done.popen.returncode == 0, done.stderr
    assert "note: secrets are not compared with a running gateway: admin.token\n" in done.stdout
    assert (await config(gateway, "new"))["error"] is None


async def test_what_needs_a_restart_is_told(start: Start, run: Run, tmp_path: Path, url: str) -> None:
    running = write(tmp_path / "running.yaml", tree(url, {"m": {"engine": "q"}}, server={"port": 0}))
    gateway = await start("--config", str(running))
    new = write(tmp_path / "new.yaml", tree(url, {"m": {"engine": "q"}}, server={"port": 0, "workers": 2}))
    done = await run("apply", new, "--against", gateway, "--yes")
    assert done.popen.returncode == 0, done.stderr
    assert "  ~ server: workers: 1 → 2  needs a restart\n" in done.stdout
    assert done.stdout.splitlines()[-1] == "  server.workers: 1 until a restart, then 2"


async def test_the_wrong_file_and_no_file_are_explained(start: Start, run: Run, tmp_path: Path, url: str) -> None:
    running = write(tmp_path / "running.yaml", tree(url, {"m": {"engine": "q"}}))
    gateway = await start("--config", str(running), "--port", "0")
    new = write(tmp_path / "new.yaml", tree(url, {"big": {"engine": "q"}}))
    other = tmp_path / "other.yaml"
    done = await run("apply", new, "--to", other, "--against", gateway, "--yes", "--timeout", "0")
    assert done.popen.returncode == 1
    why = f"{gateway} does not have it in force after 0 s: is {other} its file?"
    assert done.stderr == f"turnout: {why} (nothing stays written: {other} is as it was before)\n"
    assert not other.exists()
    other.write_bytes(b"# of somebody else")
    done = await run("apply", new, "--to", other, "--against", gateway, "--yes", "--timeout", "0")
    assert (done.popen.returncode, other.read_bytes()) == (1, b"# of somebody else")

    fileless = await start("--engine", f"vllm={url}", "--port", "0")
    done = await run("apply", new, "--against", fileless, "--yes")
    assert done.popen.returncode == 1
    assert done.stderr == f"turnout: {fileless} was started without a file: start it with --config FILE\n"


async def test_who_stops_waiting_leaves_the_file_as_it_was(start: Start, tmp_path: Path, url: str) -> None:
    running = write(tmp_path / "running.yaml", tree(url, {"m": {"engine": "q"}}))
    gateway = await start("--config", str(running), "--port", "0")
    new = write(tmp_path / "new.yaml", tree(url, {"big": {"engine": "q"}}))
    other = tmp_path / "other.yaml"
    process = Process(tmp_path, "apply", str(new), "--to", str(other), "--against", gateway, "--yes")
    await until(other.exists, what="the file")
    process.popen.send_signal(signal.SIGINT)
    await process.ended()

    assert process.popen.returncode == 130
    assert process.stderr == ""
    assert names(tmp_path) == {"gateway", "new.yaml", "running.yaml", "stderr", "stdout"}


async def test_a_gateway_that_ends_meanwhile_leaves_the_file_as_it_was(
    run: Run, tmp_path: Path, engine: ScriptedEngine
) -> None:
    """Whoever starts it again has what ran before."""
    running = write(tmp_path / "running.yaml", tree("http://127.0.0.1:1", {"m": {"engine": "q"}}))
    before = running.read_bytes()
    answer = {"hash": "0", "source": str(running), "error": None, "restart_needed": [], "settings": json.loads(before)}
    engine.on("/admin/config?full=true", reply(answer))
    engine.on("/admin/engines", reply(b"[]"))
    engine.on("/admin/reload", hang_up)
    new = write(tmp_path / "new.yaml", tree("http://127.0.0.1:1", {"m": {"engine": "q", "policy": "round_robin"}}))
    done = await run("apply", new, "--against", engine.url, "--yes", "--force")

    assert (done.popen.returncode, running.read_bytes()) == (1, before)
    assert f"(nothing stays written: {running} is as it was before)\n" in done.stderr


@pytest.mark.parametrize(
    ("to", "told"),
    [("nowhere/x.yaml", "there is no folder {at}/nowhere"), (".", "{at} is a folder, and a file is needed")],
)
async def test_a_place_that_cannot_be_written_is_named(
    start: Start, run: Run, tmp_path: Path, url: str, to: str, told: str
) -> None:
    running = write(tmp_path / "running.yaml", tree(url, {"m": {"engine": "q"}}))
    gateway = await start("--config", str(running), "--port", "0")
    done = await run("apply", running, "--to", f"{tmp_path}/{to}", "--against", gateway, "--yes")

    assert (done.popen.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"turnout: {told.format(at=tmp_path)}")


async def test_an_invalid_file_is_code_2(run: Run, tmp_path: Path) -> None:
    done = await run("apply", write(tmp_path / "bad.yaml", tree("http://h:1", {"m": {"engine": "x"}})), "--yes")
    assert done.popen.returncode == 2
    assert "models.m.engine: no engine has this name" in done.stderr
