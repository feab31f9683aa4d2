"""Commands whose standard input, output or errors are closed, or full."""

import json
import resource
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx2
import pytest

from tests.running import free_port
from tests.support.process import START, Process, clean_environment
from tests.support.waiting import until_told

FILE = "engines: {q: {kind: vllm, urls: [http://127.0.0.1:1]}}\nmodels: {m: {engine: q}}\n"
ALWAYS_FULL = Path("/dev/full")

needs_full = pytest.mark.skipif(not ALWAYS_FULL.is_char_device(), reason="no device that is always full")


def shell(folder: Path, arguments: str, redirected: str) -> subprocess.CompletedProcess[str]:
    """Runs the command as a shell does with these redirections."""
    (folder / "turnout.yaml").write_text(FILE)
    return subprocess.run(
        ["sh", "-c", f"exec {shlex.quote(sys.executable)} -m gateway {arguments} {redirected}"],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("redirected", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("arguments", "code"), [("check", 0), ("check away.yaml", 2), ("tools parse -f hermes", 0)])
def test_a_closed_stream_changes_neither_exit_code_nor_the_others(
    tmp_path: Path, arguments: str, code: int, redirected: str
) -> None:
    done = shell(tmp_path, arguments, redirected if "<" in redirected else f"{redirected} </dev/null")

    assert done.returncode == code
    assert "Traceback" not in done.stderr
    if redirected in {">&-", "<&-"}:
        assert ("away.yaml: no such file" in done.stderr) == (code == 2)


@needs_full
@pytest.mark.parametrize("arguments", ["check", "check --schema", "version"])
def test_output_that_cannot_be_written_is_one_line_and_code_1(tmp_path: Path, arguments: str) -> None:
    done = shell(tmp_path, arguments, "> /dev/full")

    assert done.returncode == 1
    assert done.stderr == "turnout: standard output: No space left on device\n"


def test_a_reader_that_leaves_changes_nothing(tmp_path: Path) -> None:
    done = shell(tmp_path, "check --reference", "| true")

    assert (done.returncode, done.stderr) == (0, "")


@needs_full
@pytest.mark.parametrize(("arguments", "code"), [("check", 0), ("check away.yaml", 2), ("serve --port x", 2)])
def test_errors_that_cannot_be_written_do_not_change_the_exit_code(tmp_path: Path, arguments: str, code: int) -> None:
    assert shell(tmp_path, arguments, "2> /dev/full").returncode == code


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Callable[..., Process]]:
    """Starts `turnout serve` in the folder, whose files `stdout` and `stderr` may be something else already."""
    started: list[Process] = []

    def start(*arguments: str) -> Process:
        (tmp_path / "turnout.yaml").write_text(FILE)
        started.append(Process(tmp_path, "serve", *arguments))
        return started[-1]

    yield start
    for process in started:
        process.kill()


@needs_full
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_a_gateway_serves_where_one_of_its_outputs_is_full(
    tmp_path: Path, serve: Callable[..., Process], stream: str
) -> None:
    (tmp_path / stream).symlink_to(ALWAYS_FULL)
    port = free_port()
    process = serve("--port", str(port))
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:

        async def answers() -> bool:
            try:
                return (await client.get("/healthz")).status_code == 200
            except httpx2.ConnectError:
                return process.popen.poll() is not None

        await until_told(answers, START, "an answer")
        asked = await client.post("/admin/engines/q/drain")
        process.interrupt()

    assert asked.status_code == 200
    assert await process.ended() == 0
    if stream == "stdout":
        (said,) = process.logged("standard output cannot be written")
        assert said["reason"] == "No space left on device"


async def test_the_control_plane_s_document_and_bodies_leave_no_word_of_libraries_in_the_log(
    serve: Callable[..., Process],
) -> None:
    process = serve("--port", "0")
    url = f"http://127.0.0.1:{await process.listening()}"
    async with httpx2.AsyncClient(base_url=url, trust_env=False) as client:
        document = await client.get("/openapi.json")
        changed = await client.put("/admin/log-level", json={"level": "info"})
    process.interrupt()

    assert (document.status_code, changed.status_code, await process.ended()) == (200, 200, 0)
    assert [line["logger"] for line in process.logs if "logger" in line] == []


async def test_a_log_without_room_changes_no_answer_and_goes_on_when_there_is_some(
    tmp_path: Path, serve: Callable[..., Process]
) -> None:
    """The file may not grow by more than half a line, as on a full disk; then it may."""
    process = serve("--port", "0")
    port = await process.listening()
    drained: list[int] = []
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        full = len(process.stderr) + 50
        usual = resource.prlimit(process.popen.pid, resource.RLIMIT_FSIZE, (full, resource.RLIM_INFINITY))
        drained = [
            (await client.post(f"/admin/engines/q/{what}")).status_code for what in ("drain", "undrain", "drain")
        ]
        cut = process.stderr
        resource.prlimit(process.popen.pid, resource.RLIMIT_FSIZE, usual)
        drained.append((await client.post("/admin/engines/q/undrain")).status_code)
        (engine,) = (await client.get("/admin/engines")).json()
    process.interrupt()

    assert await process.ended() == 0
    assert drained == [200] * 4
    assert "drain" not in {one["state"] for one in engine["endpoints"]}.pop()
    assert len(cut) == full
    later = [json.loads(line) for line in process.stderr.removeprefix(cut).splitlines() if line]
    assert later[0]["event"] == f"{later[0]['lines']} lines of the log were lost"
    assert later[0]["reason"] == "File too large"
    assert later[-1]["event"] == "stopped"
