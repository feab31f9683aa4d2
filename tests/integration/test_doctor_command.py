"""`turnout doctor` as a process: what it prints, its exit codes, what it remembers, what it costs."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from engines.profile import EngineKind
from engines.simulator import SimulatedModel, build_app
from engines.simulator.server import RunningEngine, start
from engines.simulator.wire import Request
from tests.integration.doctor import PATIENCE, engine, examination
from tests.support.process import Process, clean_environment


async def turnout_doctor(
    folder: Path, *arguments: str, results: str | None = "results", **environment: str
) -> tuple[int, str, str]:
    """Exit code and both outputs; the engines go on answering meanwhile, in the test's own loop."""
    kept = () if results is None else ("--results", results)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "doctor", *arguments, *kept),
        cwd=folder,
        env=clean_environment(**environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    def file(kind: str, url: str, more: str = "") -> Path:
        text = f"engines:\n  e: {{kind: {kind}, urls: [{url}]}}\nmodels:\n  m: {{engine: e{more}}}\n"
        (tmp_path / "turnout.yaml").write_text(text)
        return tmp_path

    return file


async def test_a_good_set_up_gets_exit_code_0_and_the_cost_beforehand(write: Callable[..., Path]) -> None:
    async with engine("vllm", "m") as url:
        code, out, err = await turnout_doctor(write("vllm", url), "turnout.yaml", "--strict")
    assert (code, out) == (0, "all is well\n")
    assert err == "engine e: vllm, 1 replica: at most 27 requests, 550 tokens\n"


async def test_an_error_gets_exit_code_1_and_its_remedy(write: Callable[..., Path]) -> None:
    async with engine("vllm", "right") as url:
        code, out, _ = await turnout_doctor(write("vllm", url, ", model: wrong"), "turnout.yaml")
    assert code == 1
    assert out.splitlines() == [
        "error e / m: model",
        "    the engine does not list 'wrong'; it lists right",
        "    fix: turnout.yaml:4: models.m.model: right",
        "1 error",
    ]


async def test_warnings_fail_only_when_it_is_strict_and_json_says_the_same(write: Callable[..., Path]) -> None:
    async with engine("triton", "m") as url:
        folder = write("triton", url, ", tools: {format: llama3_json}")
        code, out, err = await turnout_doctor(folder, "turnout.yaml", "--json")
        strict, _, _ = await turnout_doctor(folder, "turnout.yaml", "--json", "--strict")
    told: dict[str, Any] = json.loads(out)
    assert (code, strict, err) == (0, 1, "")
    assert told["ok"] is True
    (finding,) = told["findings"]
    assert list(finding) == ["level", "engine", "model", "check", "evidence", "fix"]
    assert (finding["level"], finding["check"]) == ("warning", "default_tokens")


async def test_a_file_that_is_not_valid_gets_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "turnout.yaml").write_text("engines: {e: {kind: vlm, urls: [http://h:1]}}\n")
    code, out, err = await turnout_doctor(tmp_path, "turnout.yaml")
    assert (code, out) == (2, "")
    assert "turnout.yaml:1:" in err
    code, _, err = await turnout_doctor(tmp_path, "missing.yaml")
    assert (code, "no such file" in err) == (2, True)


async def test_what_is_new_since_the_last_run_and_what_is_gone_is_shown(write: Callable[..., Path]) -> None:
    async with engine("vllm", "m") as url:
        folder = write("vllm", url, ", model: wrong")
        assert (await turnout_doctor(folder, "turnout.yaml", "--diff"))[1].startswith("+ error e / m: model\n")
        again = (await turnout_doctor(folder, "turnout.yaml", "--diff"))[1]
        assert again.startswith("error e / m: model\n")
        assert "nothing has changed since the last run" in again
        write("vllm", url)
        _, out, _ = await turnout_doctor(folder, "turnout.yaml", "--diff", "--json")
    assert [finding["check"] for finding in json.loads(out)["diff"]["gone"]] == ["model"]


async def test_results_hold_no_key(write: Callable[..., Path]) -> None:
    async with engine("vllm", "m", keys=["marked-secret"]) as url:
        folder = write("vllm", url)
        file = folder / "turnout.yaml"
        file.write_text(file.read_text().replace("]}", "], api_key: '${ENGINE_KEY}'}", 1))
        code, out, err = await turnout_doctor(folder, "turnout.yaml", ENGINE_KEY="marked-secret")
    kept = "".join(path.read_text() for path in (folder / "results").rglob("*.json"))
    assert (code, "open_paths" in kept) == (0, True)
    assert "marked-secret" not in out + err + kept


async def test_a_file_without_models_is_examined_with_those_that_the_engines_list(tmp_path: Path) -> None:
    async with engine("vllm", SimulatedModel("plain", parser=False)) as url:
        (tmp_path / "turnout.yaml").write_text(f"engines: {{e: {{kind: vllm, urls: [{url}]}}}}\n")
        _, out, _ = await turnout_doctor(tmp_path, "turnout.yaml")
    assert "warning e / plain: tool_calls" in out


class Counted:
    """A running engine that counts what it is asked."""

    def __init__(self, kind: str) -> None:
        self.requests = 0
        models = [SimulatedModel("m", guided=False, parser=False)]
        self._engine = build_app(EngineKind(kind), models, observer=self._count)

    def _count(self, request: Request) -> None:
        self.requests += 1

    async def start(self) -> RunningEngine:
        return await start(self._engine)

    @property
    def tokens(self) -> int:
        return sum(model.generated_tokens for model in self._engine.load.models.values())


@pytest.mark.parametrize("kind", ["vllm", "trtllm", "triton"])
async def test_an_engine_is_never_asked_for_more_than_was_stated(tmp_path: Path, kind: str) -> None:
    """Counted by the engine itself. Triton tells the brief story to its end, which nobody can limit for certain."""
    counted = Counted(kind)
    running = await counted.start()
    text = f"engines: {{e: {{kind: {kind}, urls: [{running.url}]}}}}\nmodels: {{m: {{engine: e}}}}\n"
    ready = examination(tmp_path / "turnout.yaml", text, PATIENCE)
    await ready.run()
    cost = ready.cost("e")
    await running.stop()
    assert 8 < counted.requests <= cost.requests
    assert 30 < counted.tokens <= cost.tokens


async def test_the_admin_api_gives_the_last_results_of_the_file_in_force(tmp_path: Path) -> None:
    """Nothing before the first run; afterwards what it found, with the version that told it."""
    async with engine("triton", "m") as url:
        text = f"engines: {{e: {{kind: triton, urls: [{url}]}}}}\nmodels: {{m: {{engine: e}}}}\n"
        (tmp_path / "turnout.yaml").write_text(text)
        state = {"XDG_STATE_HOME": str(tmp_path / "state")}
        serving = Process(tmp_path, "serve", "--config", "turnout.yaml", "--port", "0", environment=state)
        try:
            admin = f"http://127.0.0.1:{await serving.listening()}/admin/doctor"
            async with httpx2.AsyncClient(trust_env=False) as client:
                assert (await client.get(admin)).json() == []
                await turnout_doctor(tmp_path, "turnout.yaml", results=None, **state)
                (run,) = (await client.get(admin)).json()
        finally:
            serving.kill()
    assert (run["engine"], run["version"]) == ("e", "unknown")
    assert [(finding["check"], finding["level"]) for finding in run["findings"]] == [("default_tokens", "warning")]
